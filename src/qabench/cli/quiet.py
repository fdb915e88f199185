"""Whether ``--quiet`` was given; its own module, because the parser sets it and only some commands load the output."""

from __future__ import annotations

_STATE = {"quiet": False}


def set_quiet(value: bool) -> None:
    """Called by the parser of every command."""
    _STATE["quiet"] = value


def is_quiet() -> bool:
    """Whether progress and hints are not to be printed."""
    return _STATE["quiet"]
