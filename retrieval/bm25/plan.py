"""The plan of a build that can continue: a JSON file with the source and the options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.io.limits import json_of


def read_plan(path: Path, format: int) -> dict[str, Any] | None:
    """The content of a plan; None if there is none. Raises InputError if it is damaged or has another format."""
    try:
        plan = json_of(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if not isinstance(plan, dict) or plan.get("format") != format:
        raise InputError(f"{path} is not of this version of qabench: build the index again")
    return plan
