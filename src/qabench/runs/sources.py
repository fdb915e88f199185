"""Evaluations from logs of runs, folders of logs, and files of predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from qabench.benchmarks import evaluate_predictions
from qabench.data.predictions import STDIN
from qabench.errors import InputError
from qabench.evaluation import FAILED, Evaluation
from qabench.evaluation.comparison import without_superseded
from qabench.runs.log import read_header, read_run

LOG = ".eval"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Found:
    """Evaluations in the given order, and notes for the user."""

    evaluations: list[Evaluation]
    notes: list[str] = field(default_factory=list)


def read_evaluations(
    paths: Sequence[str | Path],
    benchmark: str | None = None,
    config: str | None = None,
    *,
    logs_only: bool = False,
    metrics: Sequence[str] | None = None,
    questions: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Found:
    """The evaluations of logs, folders of logs and files of predictions.

    Args:
        paths: a log is a file that ends in ".eval" or a JSON log of Inspect AI; any other file is a file of
            predictions; "-" is standard input.
        benchmark: the benchmark of the predictions; None if there are only logs. A log of another benchmark is an
            error.
        config: the config of the predictions; logs must have this config, too.
        logs_only: whether a file of predictions is an error.
        metrics: for predictions; see ``qabench.evaluate_predictions``, also for the other arguments.

    Raises:
        InputError: a path that does not exist, a folder without logs, predictions without a benchmark.
    """
    evaluations = []
    files, notes = _expanded(paths, benchmark, config)
    for path in files:
        if is_log(path):
            found = read_run(path, questions, **options)
            _check(found, benchmark, config)
        elif benchmark is None:
            if not Path(path).exists() and str(path) != STDIN:
                raise InputError(f"cannot read {path}: No such file or directory")
            if logs_only:
                raise InputError(f"{path} is not a log of a run; allowed: {LOG} files, and folders of them")
            raise InputError(f"{path} is a file of predictions, which needs a benchmark: --benchmark NAME")
        else:
            found = evaluate_predictions(
                benchmark, config, path, metrics, questions=questions, progress=progress, **options
            )
        evaluations.append(found)
    kept, superseded = without_superseded(evaluations)
    newer = {one.origin: one.path for one in kept}
    notes += [f"{one.path} is left out, because {newer[one.origin]} resumed this run" for one in superseded]
    notes += filter(None, map(incomplete, kept))
    return Found(_told_apart(kept), notes)


def is_log(path: str | Path) -> bool:
    """Whether a path names a log of Inspect AI."""
    path = Path(path)
    if path.suffix != ".json":
        return path.suffix == LOG
    try:
        with path.open("rb") as file:
            return file.read(1 << 12).lstrip()[:1] == b"{" and {"eval", "version"} <= _keys(path)
    except OSError:
        return False


def logs_in(folder: Path) -> list[Path]:
    """The logs in a folder and its subfolders, oldest first. Raises InputError if there are none."""
    if not (logs := sorted(folder.rglob(f"*{LOG}"), key=lambda path: (path.name, path))):
        raise InputError(f"the folder {folder} has no logs (files that end in {LOG})")
    return logs


def incomplete(evaluation: Evaluation) -> str | None:
    """A sentence about a run without all answers, with the command to resume it; None for a complete run."""
    if evaluation.setting == "predictions":
        return None
    counts = evaluation.counts()
    lacking = counts[FAILED] + counts["missing"]
    if not lacking and evaluation.status == "success":
        return None
    there = evaluation.expected - lacking
    return (
        f"{evaluation.path} has {there} of {evaluation.expected} answers; "
        f"`qabench run --resume {evaluation.path}` asks for the others"
    )


def _expanded(
    paths: Sequence[str | Path], benchmark: str | None, config: str | None
) -> tuple[list[str | Path], list[str]]:
    """The paths, with a folder's logs instead of the folder, and notes about logs that are left out."""
    files: list[str | Path] = []
    notes = []
    for path in paths:
        if not Path(path).is_dir():
            files.append(path)
            continue
        logs, others = _matching(Path(path), benchmark, config)
        files += logs
        if others:
            notes.append(f"{path}: {others} logs of other benchmarks or configs are left out")
    return files, notes


def _matching(folder: Path, benchmark: str | None, config: str | None) -> tuple[list[Path], int]:
    """The logs in a folder of a benchmark and a config (None for any), and the number of others."""
    logs = logs_in(folder)
    wanted = {"benchmark": benchmark and benchmark.removeprefix("qabench/"), "config": config}
    wanted = {name: value for name, value in wanted.items() if value}
    found = [path for path in logs if not wanted or wanted.items() <= read_header(path).metadata.items()]
    if not found:
        raise InputError(f"the folder {folder} has no log of {' '.join(filter(None, wanted.values()))}")
    return found, len(logs) - len(found)


def _keys(path: Path) -> set[str]:
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return set()
    return set(document) if isinstance(document, dict) else set()


def _check(found: Evaluation, benchmark: str | None, config: str | None) -> None:
    if benchmark and found.benchmark != benchmark.removeprefix("qabench/"):
        raise InputError(f"{found.path} is the log of a run of {found.benchmark}, not of {benchmark}")
    if config and found.config != config:
        raise InputError(f"{found.path} is the log of a run of the config {found.config}, not of {config}")


def _told_apart(evaluations: list[Evaluation]) -> list[Evaluation]:
    """Gives files of predictions with the same name their paths as names."""
    names = [found.model for found in evaluations if found.setting == "predictions"]
    return [
        replace(found, model=found.path) if found.setting == "predictions" and names.count(found.model) > 1 else found
        for found in evaluations
    ]
