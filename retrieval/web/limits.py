"""The limits within which pages are fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from qabench.errors import InputError


@dataclass(frozen=True, slots=True)
class PageLimits:
    """What is fetched, and how fast; the table [pages] of a search configuration.

    Attributes:
        results: search results per query, at most; their pages are fetched.
        delay: seconds between two requests to the same host; a longer Crawl-delay of its robots.txt takes precedence.
        timeout: seconds for one page, from the connection to the last byte.
        max_bytes: the largest page, uncompressed.
        redirects: redirects followed per page; the address of each target is checked.
        at_once: pages fetched at the same time.
        private_addresses: also fetch pages from loopback and private addresses, for tests and intranets.
    """

    results: int = 10
    delay: float = 1.0
    timeout: float = 20.0
    max_bytes: int = 5 << 20
    redirects: int = 5
    at_once: int = 8
    private_addresses: bool = False


def page_limits(given: Mapping[str, Any], where: str) -> PageLimits:
    """The limits of a configuration; the others have their defaults.

    Raises:
        InputError: an unknown name, a value of another type, or a number out of range; names ``where``.
    """
    types: dict[str, type] = {field.name: type(getattr(PageLimits(), field.name)) for field in fields(PageLimits)}
    for name, value in given.items():
        if name not in types:
            raise InputError(f"{where}: [pages] has no {name!r}; allowed: {', '.join(types)}")
        wanted = types[name]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if (wanted is bool and not isinstance(value, bool)) or (wanted is not bool and not number):
            raise InputError(f"{where}: {name} in [pages] is {value!r}; it must be of type {wanted.__name__}")
        least = 0 if name in ("delay", "redirects") else 1
        if wanted is not bool and value < least:
            raise InputError(f"{where}: {name} in [pages] is {value!r}; it must be at least {least}")
    return PageLimits(**{name: types[name](value) for name, value in given.items()})
