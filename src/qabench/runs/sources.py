"""Evaluations from logs of runs, folders of logs, and files of predictions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from qabench.benchmarks import OTHER_TASK, Benchmark
from qabench.data.joining import SYSTEM
from qabench.data.prediction_files import STDIN, is_saved_dataset
from qabench.errors import InputError
from qabench.evaluation import FAILED, MISSING, Evaluation
from qabench.evaluation.records import PREDICTIONS
from qabench.evaluation.resumed import without_superseded
from qabench.evaluation.score_spec import Names, pass_of, split_names, stems
from qabench.evaluation.scoring import Progress
from qabench.runs.file_kinds import LOG, is_log
from qabench.runs.folders import read_folder
from qabench.runs.foreign_logs import read_foreign
from qabench.runs.predictions import evaluations_of
from qabench.runs.selection import check_is_of, with_scores


@dataclass(frozen=True)
class Evaluations:
    """Evaluations in the order of their paths, and notes for the user."""

    evaluations: list[Evaluation]
    notes: list[str] = field(default_factory=list)

    def check_any(self, purpose: str) -> None:
        """Raise InputError if there are no evaluations. It says what was left out."""
        if not self.evaluations:
            reasons = "; ".join(self.notes) or "no logs were given"
            raise InputError(f"nothing to {purpose}: {reasons}")


def read_evaluations(
    paths: Sequence[str | Path | Evaluation],
    benchmark: Benchmark | None = None,
    config: str | None = None,
    *,
    scores: Names = None,
    samples: bool = False,
    ks: Sequence[int] = (),
    **options: Any,
) -> Evaluations:
    """Return the evaluations of logs, folders of logs and files of predictions.

    Evaluations among the paths are not scored again. Files joined by commas are samples of one
    system. NAME=FILE names a system. Logs of a folder that have no answers yet are left out. Files
    of predictions need ``benchmark``. The logs must be of this benchmark and config, too.

    Args:
        paths: files and folders. "-" is standard input.
        benchmark: the benchmark of all paths. None or ``OTHER_TASK`` for logs, which name their own
            or are of any other task.
        config: a config of the benchmark.
        scores: names of scores and groups. None for the default groups.
        samples: whether all files are samples of one system.
        ks: the values of k of pass@k and pass^k. See ``with_passes``.
        **options: see ``evaluate_predictions``, and ``read_run`` for logs.

    Raises:
        InputError: a file that cannot be read, or is of another benchmark or config.
    """
    # Read the systems that the arguments name.
    evaluations: list[Evaluation] = []
    notes: list[str] = []
    if benchmark is OTHER_TASK:
        benchmark = None
    for argument in paths:
        name, path = ("", argument)
        if not isinstance(argument, Evaluation):
            name, path = name_and_path(argument)
        files = _sample_files(path)
        systems: list[Evaluation] = []
        for file in files:
            # pass@k is computed below, when all samples are together. One file has only the score
            # that pass@k is computed from.
            systems += _read(file, benchmark, config, notes, scores=stems(scores), **options)
        if len(files) > 1:
            systems = _samples_of_systems(systems)
        if name:
            systems = with_name(systems, name)
        evaluations += systems
    if any(evaluation.setting != PREDICTIONS for evaluation in evaluations):
        evaluations = _latest_runs(evaluations, notes)

    # Join samples of one system, and add pass@k, which needs all of them.
    if samples and evaluations:
        evaluations = _samples_of_systems(evaluations)
        if _have_one_answer(evaluations):
            notes.append("--samples: each question has one answer, so there is no pass@k")
    evaluations = _with_named_passes(evaluations, scores, ks)
    if len(evaluations) > 1:
        evaluations = _with_distinct_names(evaluations)
    return Evaluations(evaluations, notes)


def _latest_runs(evaluations: Sequence[Evaluation], notes: list[str]) -> list[Evaluation]:
    """Leave out runs that other runs resumed, and add notes about these and incomplete runs.

    A log that was resumed and the newer log have the same answers, which must not count twice.
    """
    latest, superseded = without_superseded(evaluations)
    resumed_by = {evaluation.origin: evaluation.path for evaluation in latest}
    for evaluation in superseded:
        newer_log = resumed_by[evaluation.origin]
        notes.append(f"{evaluation.path} is left out, because {newer_log} resumed this run")
    notes += filter(None, map(incomplete, latest))
    return latest


def _with_named_passes(
    evaluations: list[Evaluation], scores: Names, ks: Sequence[int]
) -> list[Evaluation]:
    """Return evaluations with pass@k and pass^k for these k, and for those in names of scores."""
    named_ks = []
    for name in split_names(scores or ()):
        named_pass = pass_of(name)[1]
        if named_pass:
            named_ks.append(named_pass.k)
    if not ks and not named_ks:
        return evaluations
    from qabench.evaluation.passes import with_passes

    all_ks = sorted({*ks, *named_ks})
    evaluations = [with_passes(evaluation, all_ks) for evaluation in evaluations]
    if named_ks:
        # The readers have selected the scores that pass@k is computed from. Select the named ones.
        evaluations = [with_scores(evaluation, scores) for evaluation in evaluations]
    return evaluations


def name_and_path(argument: str | Path) -> tuple[str, str | Path]:
    """Return the name and the path of NAME=FILE, or "" and the path of a file without a name.

    An existing path with an equals sign is not taken for NAME=FILE. Neither are several paths,
    joined by commas, if the first one exists.
    """
    name, equals, path = str(argument).partition("=")
    first_file = str(argument).partition(",")[0]
    if not equals or not name.strip() or not path or os.path.exists(first_file):
        return "", argument
    return name.strip(), path


def with_name(evaluations: Sequence[Evaluation], name: str) -> list[Evaluation]:
    """Return evaluations of a system to which the user gave a name."""
    return [replace(evaluation, given_name=name) for evaluation in evaluations]


def _have_one_answer(evaluations: Sequence[Evaluation]) -> bool:
    """Return whether no question has several samples."""
    for evaluation in evaluations:
        if any(record.epoch != 1 for record in evaluation.records):
            return False
    return True


def _with_distinct_names(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Name files of predictions by their paths where several of them have the same name."""
    counts: Counter[str] = Counter()
    for evaluation in evaluations:
        # An evaluation of a file of predictions has the file's name as its model, a run the
        # model's.
        if evaluation.setting == PREDICTIONS:
            counts[evaluation.model] += 1
    renamed = []
    for evaluation in evaluations:
        if counts[evaluation.model] > 1:
            evaluation = replace(evaluation, model=evaluation.path)
        renamed.append(evaluation)
    return renamed


def _samples_of_systems(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Join evaluations that are samples of one system, or of each system that lines of files name."""
    from qabench.evaluation.matching import as_samples

    by_system: dict[str | None, list[Evaluation]] = {}
    for evaluation in evaluations:
        system = None
        # A run can have an argument with this name, such as a system prompt.
        if evaluation.setting == PREDICTIONS:
            system = evaluation.arguments.get(SYSTEM)
        by_system.setdefault(system, []).append(evaluation)
    joined = []
    for system, samples in by_system.items():
        if len(samples) > 1 or system is None:
            evaluation = as_samples(samples)
        else:
            evaluation = samples[0]
        if system is not None:
            evaluation = replace(evaluation, model=system)
        joined.append(evaluation)
    return joined


def _sample_files(path: str | Path | Evaluation) -> list[str | Path | Evaluation]:
    """Return the files of "A,B,C", the samples of one system. A file's name may have commas."""
    if isinstance(path, Evaluation) or "," not in str(path) or Path(path).exists():
        return [path]
    return [file for file in str(path).split(",") if file]


def _read(
    path: str | Path | Evaluation,
    benchmark: Benchmark | None,
    config: str | None,
    notes: list[str],
    *,
    scores: Names = None,
    questions: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[Evaluation]:
    """Return the evaluations of one path, and add notes about logs that are left out."""
    if isinstance(path, Evaluation):
        check_is_of(path, benchmark, config)
        return [with_scores(path, scores)]
    if Path(path).is_dir() and not is_saved_dataset(path):
        return read_folder(
            Path(path), benchmark, config, notes, scores=scores, questions=questions, **options
        )
    if benchmark is None and (foreign := read_foreign(Path(path))):
        return [with_scores(evaluation, scores) for evaluation in foreign]
    if is_log(path):
        # Imported here because it imports the model client.
        from qabench.runs.log import read_run

        run = with_scores(read_run(path, questions, **options), scores)
        check_is_of(run, benchmark, config)
        return [run]
    if benchmark is None:
        # As the operating system says it, because most such paths are misspelled.
        why = "No such file or directory"
        if Path(path).exists() or str(path) == STDIN:
            why = "it is not a log, and for predictions, a benchmark must be named"
        raise InputError(
            f"cannot read {path}: {why}; allowed: logs of runs ({LOG} or .json), samples of another harness, and "
            "files of predictions with their benchmark as the first argument of the command"
        )
    options |= {"questions": questions, "progress": progress}
    return evaluations_of(benchmark, config, path, scores, **options)


def incomplete(evaluation: Evaluation) -> str | None:
    """Return a note with the command that resumes a run, or None if the run is complete."""
    if evaluation.setting == PREDICTIONS or not evaluation.benchmark:
        return None
    counts = evaluation.counts()
    lacking = counts[FAILED] + counts[MISSING]
    if not lacking and evaluation.status == "success":
        return None
    from qabench.runs.trust import resume_command

    answers = evaluation.expected - lacking
    running = ";"
    if evaluation.status == "started":
        # A run that was killed and one that is still running have the same status in their logs.
        running = " so far; if its run has ended,"
    return (
        f"{evaluation.path} has {answers} of {evaluation.expected} answers{running} "
        f"`{resume_command(evaluation.path)}` asks for the others"
    )
