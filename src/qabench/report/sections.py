"""The sections of a report: evaluations on the same config, with short, distinct labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qabench.benchmarks import Benchmark, benchmark
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Metric
from qabench.evaluation.comparison import without_superseded
from qabench.evaluation.metric import present
from qabench.evaluation.tables import distinct, labels


@dataclass(frozen=True, slots=True)
class Section:
    """The evaluations on one config.

    Attributes:
        key: the section's name in links, such as "fanoutqa-dev".
        benchmark: the descriptor.
        config: such as "dev".
        runs: by label, in the given order; labels are short and distinct.
        metrics: the metrics whose columns at least one run has, in the benchmark's order.
        headline: the main metric; None if nothing is scored.
        superseded: the paths of runs that are left out, because another run resumed them.
    """

    key: str
    benchmark: Benchmark
    config: str
    runs: Mapping[str, Evaluation]
    metrics: Sequence[Metric]
    headline: Metric | None
    superseded: Sequence[str] = ()

    @property
    def groupings(self) -> list[str]:
        """Return the groupings that at least one run has, in the benchmark's order; others follow."""
        names = dict.fromkeys(name for run in self.runs.values() for name in run.groupings())
        declared = [name for name in self.benchmark.groupings if name in names]
        return list(dict.fromkeys([*declared, *names]))

    def grouping_title(self, grouping: str) -> str:
        """Return the grouping in words, such as "type of answer"."""
        return self.benchmark.groupings.get(grouping, grouping.replace("_", " "))


def sections_of(runs: Sequence[Evaluation]) -> list[Section]:
    """Return the evaluations by benchmark and config, in the order of first appearance.

    Runs that were resumed by another run are left out.

    Raises:
        InputError: no evaluations, or one without records.
    """
    if not runs:
        raise InputError("nothing to report: at least one log of a run or one file of predictions is required")
    current, superseded = without_superseded(runs)
    runs_by_config: dict[tuple[str, str], list[Evaluation]] = {}
    for run in current:
        if not run.records:
            raise InputError(f"{run.path} has no records yet (status: {run.status}); there is nothing to report")
        runs_by_config.setdefault((run.benchmark, run.config), []).append(run)
    keys = distinct([re.sub(r"[^a-z0-9]+", "-", f"{b}-{c}".lower()) for b, c in runs_by_config])
    return [
        _section(key, *config, members, [run.path for run in superseded if (run.benchmark, run.config) == config])
        for key, (config, members) in zip(keys, runs_by_config.items(), strict=True)
    ]


def _section(key: str, name: str, config: str, runs: Sequence[Evaluation], superseded: Sequence[str]) -> Section:
    descriptor = benchmark(name)
    columns = dict.fromkeys(name for run in runs for record in run.records for name in record.scores)
    return Section(
        key,
        descriptor,
        config,
        runs=dict(zip(labels(runs), runs, strict=True)),
        metrics=present(descriptor.metrics, list(columns)),
        headline=descriptor.headline_metric(runs),
        superseded=superseded,
    )
