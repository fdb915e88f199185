"""The configurations of the runs that were started on this machine.

A log may come from somebody else, so it must not decide which model is paid, which server gets a key, or whose
code runs. If this user started a run with exactly this configuration before, it may.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from qabench.io.files import cache_dir

FOLDER = "started-runs"
# The fields of Inspect's EvalSpec that can name code, models, servers and files.
FIELDS = ("task", "task_args_passed", "model", "model_base_url", "model_args", "solver")


def note_started(spec: Any) -> None:
    """Remember the configuration of a run that this user starts."""
    path = _path(spec)
    with suppress(OSError):
        # If the folder cannot be written, resuming only needs a longer command.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)


def was_started_here(spec: Any) -> bool:
    """Tell whether this user started a run with the configuration of a log."""
    return _path(spec).exists()


def _path(spec: Any) -> Path:
    facts = spec.model_dump(mode="json", include=set(FIELDS))
    facts["epochs"] = spec.config.epochs or 1
    facts["digest of the solver"] = (spec.metadata or {}).get("solver")
    text = json.dumps(facts, sort_keys=True, default=str)
    return cache_dir() / FOLDER / hashlib.sha256(text.encode()).hexdigest()
