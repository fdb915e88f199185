"""Whether ``--quiet`` was given. A separate module, because the parser sets it before ``output`` is imported."""

from __future__ import annotations

_STATE = {"quiet": False}


def set_quiet(value: bool) -> None:
    """Called by the parser of every command."""
    _STATE["quiet"] = value


def is_quiet() -> bool:
    """Whether progress and hints are suppressed."""
    return _STATE["quiet"]
