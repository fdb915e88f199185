"""Versions of installed packages."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def package_version(name: str) -> str:
    """The installed version of a package. Cached: reading it takes a millisecond, and signatures need it per sample.

    Raises:
        importlib.metadata.PackageNotFoundError: the package is not installed.
    """
    return metadata.version(name)
