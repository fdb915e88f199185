"""Reads the logs in a folder, and names those that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qabench.benchmarks import Benchmark
from qabench.data.rows import without_none
from qabench.errors import DataError, InputError, some
from qabench.evaluation import Evaluation
from qabench.evaluation.score_spec import Names
from qabench.runs.file_kinds import LOG, SUFFIXES, is_log
from qabench.runs.foreign_logs import read_foreign
from qabench.runs.selection import with_scores


def read_folder(
    folder: Path,
    benchmark: Benchmark | None,
    config: str | None,
    notes: list[str],
    *,
    scores: Names = None,
    **options: Any,
) -> list[Evaluation]:
    """Return the logs of a folder and its subfolders, oldest first.

    Args:
        folder: the folder.
        benchmark: the benchmark. None for logs of any task.
        config: a config of the benchmark. None for all.
        notes: a list to which one note is added for each log that cannot be read, and one for all
            files that are not logs.
        scores: names of scores. None for all.
        **options: see ``qabench.runs.log.read_run``.

    Raises:
        InputError: the folder has no such logs, or an unknown score.
    """
    required = without_none({"benchmark": benchmark and benchmark.name, "config": config})
    evaluations: list[Evaluation] = []
    left_out: list[str] = []
    other_files: list[str] = []
    files = [file for file in folder.rglob("*") if file.suffix in SUFFIXES]
    # Inspect's log names begin with the date, so sorting by name sorts by time.
    for file in sorted(files, key=lambda path: (path.name, path)):
        if not file.is_file():
            # Reading a pipe would wait for its writer.
            if not file.is_dir() or is_log(file):
                left_out.append(f"{file} is left out: it is not a regular file")
            continue
        try:
            foreign = read_foreign(file)
            run = None if foreign else _run_in(file, required, options)
        except (DataError, InputError) as error:
            # One bad log must not stop the others. Files that are not logs, such as other tables,
            # are counted in one note.
            if is_log(file):
                # The note already names the file, so "FILE has no samples" becomes "it has no
                # samples".
                reason = re.sub(rf"^{re.escape(str(file))}(:\s+)?", "", str(error))
                if reason.startswith(" "):
                    reason = f"it{reason}"
                left_out.append(f"{file} is left out: {reason}")
            else:
                other_files.append(file.name)
            continue
        if foreign and benchmark is None:
            evaluations += [with_scores(evaluation, scores) for evaluation in foreign]
        elif run is not None and run.status == "started" and not run.records:
            left_out.append(f"{run.path} is left out: the run has no answers yet")
        elif run is not None:
            evaluations.append(with_scores(run, scores))
        elif foreign or file.suffix != ".json":
            other_files.append(file.name)

    what = "log"
    if required:
        what = f"log of {' '.join(required.values())}"
    if not evaluations and not left_out:
        kinds = "" if benchmark else "; .jsonl or .parquet samples of other harnesses"
        raise InputError(
            f"the folder {folder} has no {what} (allowed: {LOG} or .json logs of runs{kinds}). "
            "To score files of predictions, pass the path of each file"
        )
    notes += left_out
    if other_files:
        count = f"{len(other_files)} ({some(other_files)})"
        notes.append(f"{folder}: left out, not a {what}: {count}")
    return evaluations


def _run_in(
    file: Path, required: Mapping[str, str], options: Mapping[str, Any]
) -> Evaluation | None:
    """Return the run in a log of this benchmark and config, or None for another file."""
    if not is_log(file):
        return None
    # Imported here because it imports the model client.
    from qabench.runs.log import header_of, read_run

    # The header names benchmark and config. Reading the samples takes longest.
    if not required.items() <= header_of(file).metadata.items():
        return None
    return read_run(file, **options)
