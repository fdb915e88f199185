"""The sections of a report: evaluations on the same config, with short, distinct labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from qabench.benchmarks import Benchmark, benchmark
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Metric
from qabench.evaluation.comparison import without_superseded
from qabench.evaluation.metric import present

LONGEST_LABEL = 80


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
        """The groupings that at least one run has, in the benchmark's order; others follow."""
        found = dict.fromkeys(name for run in self.runs.values() for name in run.groupings())
        return [name for name in self.benchmark.groupings if name in found] + [
            name for name in found if name not in self.benchmark.groupings
        ]

    def grouping_title(self, grouping: str) -> str:
        """The grouping in words, such as "type of answer"."""
        return self.benchmark.groupings.get(grouping, grouping.replace("_", " "))


def sections_of(runs: Sequence[Evaluation]) -> list[Section]:
    """The evaluations by benchmark and config, in the order of first appearance.

    Runs that were resumed by another run are left out.

    Raises:
        InputError: no evaluations, or one without records.
    """
    if not runs:
        raise InputError("nothing to report: at least one log of a run or one file of predictions is required")
    kept, superseded = without_superseded(runs)
    together: dict[tuple[str, str], list[Evaluation]] = {}
    for run in kept:
        if not run.records:
            raise InputError(f"{run.path} has no records yet (status: {run.status}); there is nothing to report")
        together.setdefault((run.benchmark, run.config), []).append(run)
    keys = distinct([re.sub(r"[^a-z0-9]+", "-", f"{b}-{c}".lower()) for b, c in together])
    return [
        _section(key, *config, of, [run.path for run in superseded if (run.benchmark, run.config) == config])
        for key, (config, of) in zip(keys, together.items(), strict=True)
    ]


def _section(key: str, name: str, config: str, runs: Sequence[Evaluation], superseded: Sequence[str]) -> Section:
    descriptor = benchmark(name)
    columns = dict.fromkeys(name for run in runs for record in run.records for name in record.scores)
    return Section(
        key,
        descriptor,
        config,
        runs=dict(zip(_labels(runs), runs, strict=True)),
        metrics=present(descriptor.metrics, list(columns)),
        headline=descriptor.headline_metric(runs),
        superseded=superseded,
    )


def _labels(runs: Sequence[Evaluation]) -> list[str]:
    """The models' names without their providers; with the setting, date or file if needed to distinguish them."""
    parts: list[Callable[[Evaluation], str]] = [
        lambda run: run.model.rpartition("/")[2] or run.model,
        lambda run: run.setting,
        lambda run: run.created[:16].replace("T", " "),
        lambda run: re.split(r"[/\\]", run.path)[-1],
    ]
    labels = [parts[0](run) or "no name" for run in runs]
    for part in parts[1:]:
        # Different settings are shown even if the models already distinguish the runs.
        if len(set(labels)) < len(runs) or (part is parts[1] and len({part(run) for run in runs}) > 1):
            labels = [f"{label} · {part(run)}" for label, run in zip(labels, runs, strict=True)]
    return distinct([label[:LONGEST_LABEL] for label in labels])


def distinct(names: Sequence[str]) -> list[str]:
    """The names, each on one line; repeated names get a number."""
    given: dict[str, None] = {}
    for raw in names:
        name = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", raw).strip()
        number, free = 1, name
        while free in given:
            number += 1
            free = f"{name} ({number})"
        given[free] = None
    return list(given)
