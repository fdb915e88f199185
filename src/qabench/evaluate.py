"""``qabench.evaluate_predictions``: the official scores of predictions, for every benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qabench.benchmarks import Benchmark, Option, benchmark, load
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.predictions import Predictions


def evaluate_predictions(
    name: str,
    config: str | None,
    predictions: str | Path | Sequence[Mapping[str, Any]] | Predictions,
    metrics: Sequence[str] | None = None,
    *,
    questions: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Evaluation:
    """Scores predictions with the official metrics of a benchmark.

    Args:
        name: the benchmark, such as "fanoutqa".
        config: such as "dev"; None for the benchmark's default.
        predictions: a path (JSONL or a JSON list, also compressed with gzip), "-" for standard input, or a list of
            objects with an "id" and the benchmark's fields, such as "answer".
        metrics: families of scores, such as ("acc", "rouge"); None for the benchmark's default families.
        questions: a file of questions in the benchmark's official format, used instead of those of a config.
        progress: called with the number of units processed, and of all units.
        **options: options of the benchmark; ``qabench score --help`` lists them.

    Returns:
        One record per question, with its scores. ``.scores()`` of the result returns the means with intervals, and
        ``.deviations(score)`` says how a score differs from the official one.

    Raises:
        InputError: an unknown name of a benchmark, config, metric or option, or a file that cannot be read.
        SourceError: the benchmark's data is not available.
        MissingExtra: a metric needs a package that is not installed.
    """
    found = benchmark(name)
    families = checked_families(found, metrics)
    given = checked_options(found, options)
    for_reading = [option.name for option in found.options if option.for_reading and option.name in given]
    reading = {option: given.pop(option) for option in for_reading}
    if questions is not None:
        given["questions"] = Path(questions)
    if not isinstance(predictions, Predictions):
        predictions = found.read(predictions, **reading)
    evaluate = load(found.evaluate_with)
    result: Evaluation = evaluate(config, predictions, families=families, progress=progress, **given)
    return result


def checked_families(found: Benchmark, metrics: Sequence[str] | None) -> Sequence[str] | None:
    """The families of scores in ``metrics``. Raises InputError that lists the allowed names."""
    if metrics is None:
        return None
    if isinstance(metrics, str):
        metrics = metrics.split(",")
    names = list(dict.fromkeys(name.strip() for name in metrics if name.strip()))
    if unknown := [name for name in names if name not in found.families]:
        raise InputError(f"{found.title} has no metric {unknown[0]!r}; allowed: {', '.join(found.families)}")
    if not names:
        raise InputError(f"metrics is empty; allowed: {', '.join(found.families)}")
    return names


def checked_options(found: Benchmark, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None. Raises InputError for one that the benchmark does not declare."""
    given = {name: value for name, value in options.items() if value is not None}
    declared = {option.name: option for option in found.options}
    for name, value in given.items():
        if name not in declared:
            raise InputError(f"{found.title} has no option {name!r}; allowed: {', '.join(declared) or 'none'}")
        _check_choice(found, declared[name], value)
    return given


def _check_choice(found: Benchmark, option: Option, value: Any) -> None:
    if option.choices and str(value) not in option.choices:
        raise InputError(f"{found.title}: {option.name} is {value!r}; allowed: {', '.join(map(str, option.choices))}")
