"""Evaluations from logs of runs, folders of logs, and files of predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from qabench.adapters.files import evaluate_systems
from qabench.benchmarks import Benchmark, benchmark
from qabench.data.containers import prediction_rows
from qabench.data.predictions import (
    STDIN,
    SYSTEM,
    WITHOUT_PREDICTION,
    Predictions,
    is_saved_dataset,
    parse_predictions,
    some,
)
from qabench.data.rows import Row, without_none
from qabench.errors import DataError, InputError, QabenchError
from qabench.evaluation import FAILED, Evaluation
from qabench.evaluation.evaluation import without_superseded
from qabench.evaluation.records import PREDICTIONS, values_of
from qabench.evaluation.score_spec import Names, pass_of, select_scores, split_names, stems
from qabench.evaluation.scoring import Progress
from qabench.evaluation.signature import asked_field, parse, with_fields
from qabench.loading_scripts import dataset_table

LOG, DETAILS, LINES = ".eval", ".parquet", ".jsonl"
FOREIGN = (LOG, DETAILS, LINES, ".json")
# Fields of a sample of lm-evaluation-harness, and of an instance-level file of Every Eval Ever.
LM_EVAL = {"doc_id", "doc", "filtered_resps"}
SHARED = {"evaluation_id", "sample_id", "evaluation"}


@dataclass(frozen=True)
class Found:
    """Evaluations in the order of their paths, and notes for the user."""

    evaluations: list[Evaluation]
    notes: list[str] = field(default_factory=list)

    def check_any(self, purpose: str) -> None:
        """Raise InputError if there are no evaluations. It says what was left out."""
        if not self.evaluations:
            reasons = "; ".join(self.notes) or "no logs were given"
            raise InputError(f"nothing to {purpose}: {reasons}")


def evaluate_predictions(
    name: str,
    config: str | None,
    predictions: Any,
    scores: Names = None,
    *,
    questions: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Evaluation:
    """Score predictions with the official metrics of a benchmark.

    Args:
        name: the benchmark, such as "fanoutqa".
        config: such as "dev". None for the benchmark's default.
        predictions: a path (JSONL or a JSON list, also compressed with gzip), "-" for standard
            input, or a list of objects with an "id" and the benchmark's fields, such as "answer",
            a frame with these columns (pandas, polars, Arrow, datasets), a dict of id to answer, or
            the path of a log of a run.
        scores: names of scores and of groups of scores, such as ("acc.loose", "rouge"). None for
            the benchmark's default groups.
        questions: a file of questions in the benchmark's official format, used instead of a
            config's questions.
        progress: called with the number of units processed, and of all units.
        **options: options of the benchmark. ``qabench score --help`` lists them.

    Returns:
        One record per question, with its scores. ``.scores()`` of the result returns the means with
        intervals, and ``.deviations(score)`` says how a score differs from the official one.

    Raises:
        InputError: an unknown name of a benchmark, config, score or option, a file that cannot be
            read, or one with several systems (see ``by_system``).
        SourceError: the benchmark's data is not available.
        MissingExtra: a score needs a package that is not installed.
    """
    evaluations = _evaluations_of(
        name, config, predictions, scores, questions=questions, progress=progress, **options
    )
    if len(evaluations) > 1:
        systems = [each.model for each in evaluations]
        raise InputError(
            f"the predictions are of {len(systems)} systems for the same ids ({some(systems)}); give those of one "
            '"system" at a time, or use `qabench score` or qabench.compare, which score each system'
        )
    return evaluations[0]


def _evaluations_of(
    name: str,
    config: str | None,
    predictions: str | Path | Sequence[Row] | Predictions,
    scores: Names = None,
    *,
    questions: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[Evaluation]:
    """Return one evaluation per system. See ``evaluate_predictions``."""
    scorer = benchmark(name)
    groups = scorer.selected_groups(scores)
    values = scorer.checked_options(options)
    questions = None if questions is None else Path(questions)
    if isinstance(predictions, str | Path) and is_log(predictions):
        evaluation = _read_run(predictions, questions, scores, **values)
        _check(evaluation, scorer.name, config)
        return [evaluation]
    reading = {option.name for option in scorer.options if option.method == "read"} & values.keys()
    reading_options = {option: values.pop(option) for option in reading}
    samples = None
    if isinstance(predictions, str | Path) and is_samples(Path(predictions)):
        from qabench.runs import foreign

        samples = Path(predictions)
        fields = (scorer.prediction_fields, scorer.id_fields)
        answers = foreign.generations(samples)
        if config is None and questions is None:
            config = foreign.lm_eval_config(samples, _configs(scorer))
        predictions = parse_predictions(answers.encode(), str(predictions), *fields)
    if not isinstance(predictions, Predictions):
        rows = prediction_rows(predictions, scorer.prediction_fields)
        predictions = scorer.read(rows, **reading_options)
    evaluations = evaluate_systems(
        scorer, config, predictions, groups=groups, questions=questions, progress=progress, **values
    )
    if samples:
        evaluations = [
            _over_asked(_with_harness_facts(each, scorer, samples, config, questions), predictions)
            for each in evaluations
        ]
    return [_with_scores(each, scores) for each in evaluations]


def _configs(scorer: Benchmark) -> list[str]:
    """Return the configs of a benchmark's dataset, or [] for a benchmark without one."""
    try:
        return list(dataset_table(scorer.name).configs)
    except QabenchError:
        return []


def is_samples(path: Path) -> bool:
    """Return whether a file has samples of lm-evaluation-harness."""
    return path.suffix == LINES and path.is_file() and _first_row(path).keys() >= LM_EVAL


def _with_harness_facts(
    evaluation: Evaluation, scorer: Benchmark, path: Path, config: str | None, questions: Path | None
) -> Evaluation:
    """Return the evaluation of a file of samples with what the harness did in its signatures."""
    from qabench.runs import foreign
    from qabench.runs.lm_eval_facts import harness_facts

    rows = [row.fields for row in foreign.sample_rows(path)]
    loaded = scorer.load(config, questions).rows
    task, results = foreign.lm_eval_task(path), foreign.lm_eval_results(path)
    try:
        facts = harness_facts(scorer, loaded, task, rows, results)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    signatures, declarations = {}, dict(evaluation.declarations)
    for group, line in evaluation.signatures.items():
        name, own = parse(line)
        # What scoring says of itself stays, such as the data that was scored.
        added = {field: value for field, value in facts.fields.items() if field not in own}
        signatures[group] = with_fields(line, **added)
        declarations[name] = {**facts.declared, **declarations[name]}
    return replace(evaluation, signatures=signatures, declarations=declarations)


def _over_asked(evaluation: Evaluation, predictions: Predictions) -> Evaluation:
    """Return the evaluation of a file of samples over the questions that are in it, as the harness scores it.

    With ``--limit``, the harness asks a part of the questions. The scores over all of them are a note.
    """
    asked = {row.id for row in predictions.rows}
    records = [record for record in evaluation.records if record.id in asked]
    if not records or len(records) == len(evaluation.records):
        return evaluation
    count = len(evaluation.records)
    main = [spec for spec in evaluation.score_specs if spec.main]
    over_all = values_of(main, evaluation.records)
    shown = ", ".join(f"{name} {value:.4f}" for name, value in over_all.items())
    note = (
        f"the samples are of {len(records)} of {count} questions (a limit of the harness?), and the scores are over "
        f"these; over all {count}, of which the others count as missing: {shown}"
    )
    asked_of = asked_field(record.id for record in records)
    lines = evaluation.signatures.items()
    return replace(
        evaluation,
        records=records,
        expected=len(records),
        signatures={group: with_fields(line, asked=asked_of) for group, line in lines},
        problems=[each for each in evaluation.problems if not each.startswith(WITHOUT_PREDICTION)],
        notes=[*evaluation.notes, note],
    )


def _first_row(path: Path) -> Row:
    """Return the first row of a file of JSON Lines, or of samples in a list, or {} if it has none."""
    from qabench.runs.foreign import sample_rows

    try:
        return next((row.fields for row in sample_rows(path)), {})
    except (DataError, OSError):
        return {}


def read_evaluations(
    paths: Sequence[str | Path | Evaluation],
    benchmark: str | None = None,
    config: str | None = None,
    *,
    scores: Names = None,
    samples: bool = False,
    ks: Sequence[int] = (),
    **options: Any,
) -> Found:
    """Return the evaluations of logs, folders of logs and files of predictions ("-" is standard input).

    Evaluations among the paths are returned as they are. Files joined by commas are samples of one
    system. Logs of a folder that have no answers yet are left out. Files of predictions need
    ``benchmark``. The logs must be of this benchmark and config, too.

    Args:
        paths: of files and folders.
        benchmark: None for logs, which name it, and for logs of any other task.
        config: of the benchmark.
        scores: names of scores and groups. None for the default groups.
        samples: whether all files are samples of one system.
        ks: of pass@k and pass^k. See ``with_passes``.
        **options: see ``evaluate_predictions``.

    Raises:
        InputError: a file that cannot be read, or is of another benchmark or config.
    """
    evaluations: list[Evaluation] = []
    notes: list[str] = []
    benchmark = benchmark and benchmark.removeprefix("qabench/")
    for path in paths:
        read: list[Evaluation] = []
        files = _sample_files(path)
        for file in files:
            read += _read(file, benchmark, config, notes, scores=stems(scores), **options)
        evaluations += _samples_of_systems(read) if len(files) > 1 else read
    latest, superseded = without_superseded(evaluations)
    newer = {evaluation.origin: evaluation.path for evaluation in latest}
    notes += [
        f"{old.path} is left out, because {newer[old.origin]} resumed this run" for old in superseded
    ]
    notes += filter(None, map(incomplete, latest))
    passes = list(filter(None, (pass_of(name)[1] for name in split_names(scores or ()))))
    if samples or ks or passes:
        from qabench.evaluation.matching import with_passes

        if samples and latest:
            latest = _samples_of_systems(latest)
            if all(record.epoch == 1 for each in latest for record in each.records):
                notes.append("--samples: each question has one answer, so that there is no pass@k")
        all_ks = sorted({*ks, *(each.k for each in passes)})
        latest = [with_passes(each, all_ks) for each in latest] if all_ks else latest
        latest = [_with_scores(each, scores) for each in latest] if passes else latest
    names = Counter(evaluation.model for evaluation in latest if evaluation.setting == PREDICTIONS)
    return Found(
        [replace(each, model=each.path) if names[each.model] > 1 else each for each in latest], notes
    )


def _samples_of_systems(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return evaluations that are samples as one, or as one per system that files name in their lines."""
    from qabench.evaluation.matching import as_samples

    by_system: dict[str | None, list[Evaluation]] = {}
    for each in evaluations:
        # A run can have an argument with this name, such as a system prompt.
        system = each.arguments.get(SYSTEM) if each.setting == PREDICTIONS else None
        by_system.setdefault(system, []).append(each)
    joined = []
    for system, parts in by_system.items():
        each = as_samples(parts) if len(parts) > 1 or system is None else parts[0]
        joined.append(each if system is None else replace(each, model=system))
    return joined


def _sample_files(path: str | Path | Evaluation) -> list[str | Path | Evaluation]:
    """Return the files in A,B,C, the samples of one system.

    A file whose name has a comma is one file.
    """
    if isinstance(path, Evaluation) or "," not in str(path) or Path(path).exists():
        return [path]
    return [part for part in str(path).split(",") if part]


def _read(
    path: str | Path | Evaluation,
    benchmark: str | None,
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
        _check(path, benchmark, config)
        return [path]
    if Path(path).is_dir() and not is_saved_dataset(path):
        return _read_folder(
            Path(path), benchmark, config, notes, scores=scores, questions=questions, **options
        )
    if benchmark is None and (foreign := read_foreign(Path(path))):
        return [_with_scores(each, scores) for each in foreign]
    if is_log(path):
        evaluation = _read_run(path, questions, scores, **options)
        _check(evaluation, benchmark, config)
        return [evaluation]
    if benchmark is None:
        missing = "" if Path(path).exists() or str(path) == STDIN else "No such file or directory. "
        raise InputError(
            f"cannot read {path}: {missing}Allowed: logs of runs ({LOG}), samples of another harness, and files of "
            "predictions with their benchmark as the first argument of the command"
        )
    options |= {"questions": questions, "progress": progress}
    return _evaluations_of(benchmark, config, path, scores, **options)


def read_foreign(path: Path) -> list[Evaluation]:
    """Return the logs of other harnesses in a file, or [] if there are none, such as in a log of qabench."""
    if not path.is_file() or path.suffix not in FOREIGN:
        return []
    from qabench.runs import foreign

    if cause := foreign.pointer_error(path):
        raise InputError(f"{path} {cause}")
    if path.suffix == DETAILS:
        return [foreign.read_lighteval(path)]
    if path.suffix == LINES:
        fields = _first_row(path).keys()
        if fields >= SHARED:
            return foreign.read_shared(path)
        return [foreign.read_lm_eval(path)] if fields >= LM_EVAL else []
    from qabench.runs.log import read_any_log  # imports the model client

    return read_any_log(path)


def _read_run(
    path: str | Path, questions: Path | None, scores: Names = None, **options: Any
) -> Evaluation:
    """Return the run in a log, with these scores only."""
    from qabench.runs.log import read_run  # imports the model client

    return _with_scores(read_run(path, questions, **options), scores)


def _with_scores(evaluation: Evaluation, names: Names) -> Evaluation:
    """Return the evaluation with the named scores only, and their signatures."""
    if names is None:
        return evaluation
    title = benchmark(evaluation.benchmark).title if evaluation.benchmark else evaluation.config
    specs = select_scores(evaluation.score_specs, names, title)
    dropped = {spec.group for spec in evaluation.score_specs} - {each.group for each in specs}
    lines = evaluation.signatures.items()
    signatures = {group: line for group, line in lines if group not in dropped}
    return replace(evaluation, score_specs=specs, signatures=signatures)


def is_log(path: str | Path) -> bool:
    """Tell whether a path names a log of Inspect AI (.eval), or is one in JSON."""
    path = Path(path)
    if path.suffix != ".json" or not path.is_file():
        return path.suffix == LOG
    from qabench.runs.foreign import starts_as_log

    return starts_as_log(path)


def incomplete(evaluation: Evaluation) -> str | None:
    """Return a note about a run without all answers, with the command to resume it, or None for a complete run."""
    if evaluation.setting == PREDICTIONS or not evaluation.benchmark:
        return None
    counts = evaluation.counts()
    lacking = counts[FAILED] + counts["missing"]
    if not lacking and evaluation.status == "success":
        return None
    from qabench.runs.trust import resume_command

    there = evaluation.expected - lacking
    running = " so far; if its run has ended," if evaluation.status == "started" else ";"
    return (
        f"{evaluation.path} has {there} of {evaluation.expected} answers{running} "
        f"`{resume_command(evaluation.path)}` asks for the others"
    )


def _read_folder(
    folder: Path, benchmark: str | None, config: str | None, notes: list[str], **options: Any
) -> list[Evaluation]:
    """Return the logs of a folder and its subfolders, oldest first, and add notes about the files that are left out."""
    from qabench.runs.log import header_of

    required = without_none({"benchmark": benchmark, "config": config})
    scores = options.pop("scores", None)
    evaluations: list[Evaluation] = []
    left_out: list[str] = []
    skipped: list[str] = []
    files = [file for file in folder.rglob("*") if file.suffix in FOREIGN]
    for file in sorted(files, key=lambda path: (path.name, path)):
        if not file.is_file():  # reading a pipe would wait for its writer
            if not file.is_dir() or is_log(file):
                left_out.append(f"{file} is left out: it is not a regular file")
            continue
        try:
            foreign = read_foreign(file)
            run = None
            if not foreign and is_log(file):
                about = header_of(file).metadata or {}
                run = _read_run(file, **options) if required.items() <= about.items() else None
        except (DataError, InputError) as error:
            # One bad log does not stop the others. Files that are not logs are tables or documents of something else.
            if is_log(file):
                left_out.append(f"{file} is left out: {str(error).removeprefix(str(file)).strip()}")
            else:
                skipped.append(file.name)
            continue
        if foreign and benchmark is None:
            evaluations += [_with_scores(each, scores) for each in foreign]
        elif run is not None and run.status == "started" and not run.records:
            left_out.append(f"{run.path} is left out: the run has no answers yet")
        elif run is not None:
            evaluations.append(_with_scores(run, scores))
        elif foreign or file.suffix != ".json":
            skipped.append(file.name)
    what = " ".join(["log", *(["of", *required.values()] if required else [])])
    if not evaluations and not left_out:
        kinds = "" if benchmark else "; .json, samples_*.jsonl or details_*.parquet of other tasks"
        raise InputError(
            f"the folder {folder} has no {what} (allowed: {LOG} of `qabench run`{kinds}). "
            "Name files of predictions and reports one by one"
        )
    notes += left_out
    if skipped:
        notes.append(f"{folder}: left out, not a {what}: {len(skipped)} ({some(skipped)})")
    return evaluations


def _check(evaluation: Evaluation, benchmark: str | None, config: str | None) -> None:
    if benchmark and evaluation.benchmark != benchmark:
        raise InputError(
            f"{evaluation.path} is the log of a run of {evaluation.benchmark}, not of {benchmark}"
        )
    if config and evaluation.config != config:
        raise InputError(
            f"{evaluation.path} is the log of a run of the config {evaluation.config}, not of {config}"
        )
