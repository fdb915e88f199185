"""The benchmarks: one package per benchmark, which defines a subclass of ``Benchmark`` and its instance ``BENCHMARK``.

A package has everything specific to its benchmark except the data (``loading_scripts/NAME``) and the metric modules
(``metrics/NAME``).
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark, Need, Option, Setting
from qabench.errors import unknown_name

if TYPE_CHECKING:
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation

__all__ = ["Benchmark", "Need", "Option", "Setting", "benchmark", "benchmark_names", "evaluate_predictions"]


@functools.cache
def benchmark_names() -> list[str]:
    """Return the names of all benchmarks, sorted: the packages in this folder."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


@functools.cache
def benchmark(name: str) -> Benchmark:
    """Return a benchmark by its name.

    Args:
        name: such as "fanoutqa", or its Hub name "qabench/fanoutqa".

    Raises:
        InputError: the benchmark does not exist.
    """
    name = name.removeprefix("qabench/")
    if name not in benchmark_names():
        raise unknown_name("unknown benchmark", name, benchmark_names())
    instance: Benchmark = importlib.import_module(f"{__name__}.{name}").BENCHMARK
    return instance


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
    """Score predictions with the official metrics of a benchmark.

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
    from qabench.data.predictions import Predictions

    scorer = benchmark(name)
    families = scorer.checked_families(metrics)
    values = scorer.checked_options(options)
    reading = {option.name for option in scorer.options if option.for_reading} & values.keys()
    reading_options = {option: values.pop(option) for option in reading}
    if not isinstance(predictions, Predictions):
        predictions = scorer.read(predictions, **reading_options)
    path = None if questions is None else Path(questions)
    return scorer.evaluate(config, predictions, families=families, questions=path, progress=progress, **values)
