"""What the tasks of lm-evaluation-harness and of lighteval share: prompts, scores and totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import isfinite, nan
from typing import Any

from qabench.benchmarks import Benchmark, benchmark
from qabench.data.rows import Json, Row
from qabench.errors import unknown_name
from qabench.evaluation import EMPTY, MISSING, Record
from qabench.evaluation.records import values_of
from qabench.evaluation.score_spec import CUTOFF, ScoreSpec
from qabench.evaluation.scoring import Asking, Item, Questions, Scorer
from qabench.loading_scripts import dataset_table

COUNTS = ("unparsed", "unanswered")


class HarnessTask:
    """The questions of a config, as another harness asks and scores them.

    Args:
        name: the benchmark, such as "felm" or "qabench/felm".
        config: the config of its dataset.
        metadata: NAME_ARGUMENT is an argument of the benchmark's Inspect task: ``felm_method`` is
            the ``method`` of the task ``felm``.
    """

    def __init__(self, name: str, config: str, metadata: Mapping[str, Any]) -> None:
        self.benchmark: Benchmark = benchmark(name)
        self._config = config
        self._metadata = metadata

    @cached_property
    def asking(self) -> Asking:
        """Return how the model is asked."""
        prefix = f"{self.benchmark.name}_"
        arguments = {
            name.removeprefix(prefix): value
            for name, value in self._metadata.items()
            if name.startswith(prefix)
        }
        return self.benchmark.asking(**arguments)

    @cached_property
    def scorer(self) -> Scorer:
        """Return the scorer of the benchmark's default scores."""
        return self.benchmark.scorer(self.benchmark.default_groups, **self.asking.scoring)

    @cached_property
    def questions(self) -> Questions:
        """Return the questions of the config."""
        return self.benchmark.load(self._config)

    def checked_split(self, name: str | None) -> str:
        """Return the name of a split. Raises InputError if the config does not have it."""
        splits = dataset_table(self.benchmark.name).config(self._config).splits
        if name not in splits:
            what = f"the task of {self.benchmark.title}: the config {self._config} has no split"
            raise unknown_name(what, name, splits)
        return name

    @cached_property
    def score_specs(self) -> list[ScoreSpec]:
        """Return the scores of the results."""
        groups = self.benchmark.default_groups
        return [
            spec
            for spec in self.benchmark.scores
            if spec.main and spec.group in groups and not spec.name.endswith(CUTOFF)
        ]

    def values(self, row: Row, reply: str | None) -> Json:
        """Return a reply's values for each score, and whether it is unparsed or unanswered.

        The value of a score that is not a mean is the list of what it needs. See ``total``.
        """
        (outcome,) = self.scorer.score([Item(row, None if reply is None else {"answer": reply})])
        unanswered = reply is None or outcome.status == MISSING
        unparsed = not unanswered and (bool(outcome.problem) or outcome.status == EMPTY)
        values: Json = {"unparsed": int(unparsed), "unanswered": int(unanswered)}
        for spec in self.score_specs:
            columns = [outcome.scores.get(name, nan) for name in spec.needs]
            values[spec.name] = columns if spec.function else columns[0]
        return values


def total(spec: ScoreSpec, rows: Sequence[Sequence[float]]) -> float | None:
    """Return a score that is not a mean from the values of all replies, or None if it is undefined."""
    records = [
        Record(str(i), 1, "", "", (), None, "", scores=dict(zip(spec.needs, row, strict=True)))
        for i, row in enumerate(rows)
        if all(map(isfinite, row))
    ]
    return values_of([spec], records).get(spec.name)
