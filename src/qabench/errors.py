"""qabench's exceptions, and helpers for their messages.

Each message says what is wrong and where, what is allowed, and how to fix it.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Collection, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote

# A message names at most this many items, and counts the others.
MAX_ITEMS_NAMED = 5
_EXTRA = re.compile(r"""(['"])qabench\[([\w,-]+)\]\1""")


class QabenchError(Exception):
    """Base class of all errors that qabench raises. The command line exits with 1."""


class InputError(QabenchError, ValueError):
    """Invalid input from the user: an option, a name or a file. The command line exits with 2."""


class FallbackWarning(UserWarning):
    """Warns that a substitute was used, because the official package or model is not installed.

    The deviations of each score say so, too. Commands show such a warning only once on a machine.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(installable(message))


def unknown_name(
    what: str, name: object, allowed: Iterable[str], listed: str | None = None
) -> InputError:
    """Return the error for an unknown name, with the nearest valid name and all valid ones.

    Args:
        what: the beginning of the message, such as "unknown method".
        name: the unknown name.
        allowed: the valid names.
        listed: how the message lists them. By default, they are separated by commas.
    """
    names = list(allowed)
    nearest = nearest_name(str(name), names)
    suggestion = f" (did you mean {nearest!r}?)" if nearest else ""
    return InputError(
        f"{what} {name!r}{suggestion}; allowed: {listed or ', '.join(names) or 'none'}"
    )


def nearest_name(name: str, allowed: Collection[str]) -> str | None:
    """Return the valid name that a misspelled or abbreviated name most likely means, or None."""
    close = difflib.get_close_matches(name, allowed, 1)
    if close:
        return close[0]
    for valid in allowed:
        shorter, longer = sorted((name.lower(), valid.lower()), key=len)
        if len(shorter) >= 3 and longer.startswith(shorter):
            return valid
    return None


def check_name(what: str, name: object, allowed: Collection[object]) -> None:
    """Raise the error of ``unknown_name`` unless the name is allowed."""
    if name not in allowed:
        raise unknown_name(what, name, map(str, allowed))


def unreadable(what: object, error: Exception) -> InputError:
    """Return the error for a file that cannot be read. ``what`` is its path or a description."""
    return InputError(f"cannot read {what}: {getattr(error, 'strerror', None) or error}")


def some(items: Iterable[object]) -> str:
    """Return a text that lists the first items, and counts the others."""
    texts = list(map(str, items))
    text = ", ".join(texts[:MAX_ITEMS_NAMED])
    if len(texts) > MAX_ITEMS_NAMED:
        text += f" and {len(texts) - MAX_ITEMS_NAMED} more"
    return text


class DataError(InputError):
    """A row of a data file does not match the schema. The message names file, row and field."""


class SourceError(QabenchError):
    """A source file could not be provided."""


class SourceUnavailable(SourceError):
    """A source file is neither in a mirror nor in the cache, and could not be downloaded."""


class DigestMismatch(SourceError):
    """A file does not have the pinned content, so it is not used."""


class MissingExtra(QabenchError, ImportError):
    """An optional dependency is not installed. The message has the command that installs it."""

    def __init__(self, message: str = "") -> None:
        super().__init__(installable(message))


def installable(text: str) -> str:
    """Return ``text`` with pip commands that use the source from which qabench was installed."""
    origin = install_origin()
    url = str(origin.get("url", ""))
    if not url:
        return text
    if origin.get("dir_info", {}).get("editable"):
        folder = unquote(url.removeprefix("file://"))
        return _EXTRA.sub(lambda match: f"-e '{folder}[{match[2]}]'", text)
    if vcs := origin.get("vcs_info"):
        url = f"{vcs.get('vcs')}+{url}@{vcs.get('commit_id')}"
    return _EXTRA.sub(lambda match: f"'qabench[{match[2]}] @ {url}'", text)


@functools.cache
def install_origin() -> Mapping[str, Any]:
    """Return pip's record of where it installed qabench from (PEP 610), or {} for an index."""
    try:
        origin = json.loads(distribution("qabench").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        # qabench is not installed, for example if a copy of its folders is on PYTHONPATH.
        return {}
    return origin if isinstance(origin, dict) else {}
