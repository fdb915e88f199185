"""``qabench.evaluate_predictions``: scores predictions with the metrics of a benchmark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.adapters.files import evaluate_systems
from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.data.containers import prediction_rows
from qabench.data.predictions import Predictions
from qabench.errors import InputError, some
from qabench.evaluation import Evaluation
from qabench.evaluation.score_spec import Names
from qabench.evaluation.scoring import Progress
from qabench.runs.file_kinds import is_log, lm_eval_rows
from qabench.runs.selection import check_is_of, with_scores

if TYPE_CHECKING:
    from qabench.runs.human import Human


def evaluate_predictions(
    name: str,
    config: Any = None,
    predictions: Any = None,
    scores: Names = None,
    *,
    questions: str | Path | None = None,
    progress: Progress | None = None,
    human: Human | None = None,
    **options: Any,
) -> Evaluation:
    """Score predictions with the official metrics of a benchmark.

    Args:
        name: the benchmark, such as "fanoutqa".
        config: the config's name, such as "dev". None for the benchmark's default. It can be left
            out: ``evaluate_predictions("fanoutqa", predictions)``.
        predictions: the path of a file (JSONL, JSON, CSV, TSV or Parquet, also compressed with
            gzip) or of the log of a run, "-" for standard input, a list of objects with an "id" and
            the benchmark's fields, such as "answer", a frame with these columns (pandas, polars,
            Arrow, datasets), or a dict from ids to answers.
        scores: names of scores and of groups of scores, such as ("acc.loose", "rouge"). None for
            the benchmark's default groups.
        questions: a file of questions in the benchmark's official format, used instead of a
            config's questions.
        progress: called with the number of units processed, and of all units.
        human: labels of people for a random part of the answers, with which scores of a judge are
            corrected (``Evaluation.corrections``): a table with the columns id and label, labels
            by id, "dataset" for those of the benchmark's dataset, or "dataset:N".
        **options: options of the benchmark. ``qabench score --help`` lists them.

    Returns:
        One record per question and sample, with its scores. ``.scores()`` of the result returns the
        means with intervals, and ``.deviations(score)`` says how a score differs from the official
        one.

    Raises:
        InputError: an unknown name of a benchmark, config, score or option, a file that cannot be
            read, or one with answers of several systems.
        SourceError: the benchmark's data is not available.
        MissingExtra: a score needs a package that is not installed.
    """
    if predictions is None:
        # The config was left out, so the second argument has the predictions.
        config, predictions = None, config
    if predictions is None:
        raise InputError(
            "give the predictions: evaluate_predictions(NAME, PREDICTIONS), or (NAME, CONFIG, PREDICTIONS) for "
            "a config other than the default"
        )
    benchmark = benchmark_of(name)
    questions = None if questions is None else Path(questions)
    if isinstance(predictions, str | Path) and is_log(predictions):
        # Names are checked first, because reading a log takes long.
        benchmark.selected_groups(scores)
        options = benchmark.checked_options(options)
        # Imported here because it imports the model client.
        from qabench.runs.log import read_run

        run = with_scores(read_run(predictions, questions, **options), scores)
        check_is_of(run, benchmark, config)
        evaluations = [run]
    else:
        options |= {"questions": questions, "progress": progress}
        evaluations = evaluations_of(benchmark, config, predictions, scores, **options)
    if len(evaluations) > 1:
        systems = [evaluation.model for evaluation in evaluations]
        raise InputError(
            f"the predictions are of {len(systems)} systems for the same ids ({some(systems)}); give those of one "
            '"system" at a time, or use `qabench score` or qabench.compare, which score each system'
        )
    if human is None:
        return evaluations[0]
    # Imported here because it imports NumPy.
    from qabench.runs.human import with_human

    (evaluation,), notes = with_human(evaluations, human)
    return replace(evaluation, notes=[*evaluation.notes, *notes])


def evaluations_of(
    benchmark: Benchmark,
    config: str | None,
    predictions: Any,
    scores: Names = None,
    *,
    questions: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[Evaluation]:
    """Return one evaluation per system in predictions. See ``evaluate_predictions``."""
    scoring_options: dict[str, Any] = {
        "groups": benchmark.selected_groups(scores),
        "progress": progress,
        **benchmark.checked_options(options),
    }
    # Some options say how a file is read, and the scorer takes the others.
    reading_options = {}
    for option in benchmark.options:
        if option.method == "read" and option.name in scoring_options:
            reading_options[option.name] = scoring_options.pop(option.name)

    if isinstance(predictions, str | Path) and (samples := lm_eval_rows(Path(predictions))):
        from qabench.runs.lm_eval_predictions import evaluate_samples

        path = Path(predictions)
        evaluations = evaluate_samples(
            benchmark, config, path, samples, questions, **scoring_options
        )
    else:
        # A benchmark's own commands have read their predictions before.
        if not isinstance(predictions, Predictions):
            if not isinstance(predictions, str | Path):
                predictions = prediction_rows(predictions, benchmark.prediction_fields)
            predictions = benchmark.read(predictions, **reading_options)
        evaluations = evaluate_systems(
            benchmark, config, predictions, questions=questions, **scoring_options
        )
    if scores is None:
        return evaluations
    return [with_scores(evaluation, scores) for evaluation in evaluations]
