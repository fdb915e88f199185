"""The exceptions of qabench.

Each message says what is wrong and where, what is allowed, and how to fix it.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable


class QabenchError(Exception):
    """Base class of all errors that qabench raises. The command line exits with 1."""


class InputError(QabenchError, ValueError):
    """Invalid input from the user: an option, a name or a file. The command line exits with 2."""


def unknown_name(
    what: str, name: object, allowed: Iterable[str], listed: str | None = None
) -> InputError:
    """Return the error for an unknown name, with the nearest valid name and all valid ones.

    ``listed`` shows the valid names in another way than separated by commas.
    """
    names = list(allowed)
    nearest = difflib.get_close_matches(str(name), names, 1)
    suggestion = f" (did you mean {nearest[0]!r}?)" if nearest else ""
    return InputError(f"{what} {name!r}{suggestion}; allowed: {listed or ', '.join(names) or 'none'}")


def check_name(what: str, name: object, allowed: Collection[object]) -> None:
    """Raise the error of ``unknown_name`` unless the name is allowed."""
    if name not in allowed:
        raise unknown_name(what, name, map(str, allowed))


def unreadable(what: object, error: Exception) -> InputError:
    """Return the error for a file that cannot be read.

    ``what`` is its path, or such as "the suite FILE".
    """
    return InputError(f"cannot read {what}: {getattr(error, 'strerror', None) or error}")


class DataError(InputError):
    """A row of a data file does not match the benchmark's schema.

    The message names file, row and field.
    """


class SourceError(QabenchError):
    """A source file could not be provided."""


class SourceUnavailable(SourceError):
    """A source file is neither in a mirror nor in the cache, and could not be downloaded."""


class DigestMismatch(SourceError):
    """A file does not have the pinned content, so it is not used."""


class MissingExtra(QabenchError, ImportError):
    """An optional dependency is not installed.

    The message names the extra and the command that installs it.
    """
