"""The result of one system on one config of a benchmark."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from qabench.evaluation.record import ANSWERED, CUT_OFF, STATUSES, Record
from qabench.io.tables import Displayed, Table

if TYPE_CHECKING:
    from qabench.evaluation.scores import Score
    from qabench.predictions import Predictions

PREDICTIONS = "predictions"
"""The task and the setting of an evaluation of a file."""


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation(Displayed):
    """The records of one system on the questions of one config, from a run's log or from a file of predictions.

    Attributes:
        path: the log or the file of predictions.
        task: the name of the Inspect task; "predictions" for a file.
        benchmark: such as "fanoutqa".
        config: such as "dev".
        setting: such as "closed-book"; "predictions" for a file.
        model: Inspect's name of the model, such as "openai/gpt-4o"; for a file, its name.
        created: an ISO date and time.
        status: "success", "error", "cancelled" or "started" (killed, or still running).
        expected: the number of records of a complete evaluation.
        available: the number of questions of the config; None if unknown. Fewer than these may have been asked.
        records: in the order of the benchmark's questions; repetitions of a question are ordered by epoch.
        signatures: family of scores -> everything these scores depend on, in one line; see ``qabench.signature``.
        unscored: why there are no scores, or None.
        arguments: the task's arguments and the generation options.
        problems: one sentence for each kind of problem in the input as a whole, such as unreadable lines.
        origin: equal for a run and the runs that resumed it; "" if unknown. They are never compared with each other.
    """

    path: str
    task: str
    benchmark: str
    config: str
    setting: str
    model: str
    created: str
    status: str
    expected: int
    records: Sequence[Record]
    signatures: Mapping[str, str] = field(default_factory=dict)
    unscored: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problems: Sequence[str] = ()
    available: int | None = None
    origin: str = ""

    @classmethod
    def of_predictions(
        cls,
        predictions: Predictions,
        benchmark: str,
        config: str,
        records: Sequence[Record],
        signatures: Mapping[str, str],
        **fields: Any,
    ) -> Evaluation:
        """The evaluation of a file of predictions; the file's name stands for the model.

        Args:
            predictions: what was read.
            benchmark: such as "fanoutqa".
            config: such as "dev".
            records: one per question that is scored.
            signatures: see the class.
            **fields: other fields of the class. By default, ``records`` has all questions of the config.
        """
        given: dict[str, Any] = {"expected": len(records), "available": len(records)} | fields
        return cls(
            path=predictions.path,
            task=PREDICTIONS,
            benchmark=benchmark,
            config=config,
            setting=PREDICTIONS,
            model=predictions.system,
            created=predictions.created,
            status="success",
            records=records,
            signatures=signatures,
            **given,
        )

    @property
    def answered(self) -> bool:
        """Whether at least one question was answered; otherwise there are no scores."""
        return any(record.status in (ANSWERED, CUT_OFF) for record in self.records)

    def scores(self, records: Sequence[Record] | None = None) -> dict[str, Score]:
        """The scores by metric name, with intervals and n; {} if nothing was answered.

        Args:
            records: some of the records, such as those of a group; None for all.
        """
        found: dict[str, Score] = self._benchmark().scores(self, records)
        return found

    def deviations(self, score: Score) -> list[str]:
        """What distinguishes a score from the official one, in sentences; [] if it is official."""
        found: list[str] = self._benchmark().deviations(self, score)
        return found

    def as_dict(self, by: Sequence[str] = ()) -> dict[str, Any]:
        """The evaluation as JSON data; see ``qabench.evaluation.results.as_dict``."""
        from qabench.evaluation.results import as_dict

        return as_dict(self, self._benchmark(), by)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with one row per record; see ``qabench.evaluation.display.records_table``."""
        from qabench.evaluation.display import records_table

        return records_table(self)

    def to_markdown(self) -> str:
        """The scores as a Markdown table, with the deviations from the official scores below it."""
        return "\n".join(table.formatted("markdown") for table in self.tables())

    def plot(self, metrics: Sequence[str] | None = None, by: str | None = None, axes: Any = None) -> Any:
        """Plots scores with their 95% intervals. Needs matplotlib.

        Args:
            metrics: names of metrics, such as ("acc.loose", "acc.strict"); None for all.
            by: a grouping, such as "category": one row per group, for the first of the metrics.
            axes: matplotlib axes to draw on; None for a new figure.

        Returns:
            The axes.

        Raises:
            InputError: a metric or grouping that the evaluation does not have.
            MissingExtra: matplotlib is not installed.
        """
        from qabench.evaluation.plot import plot_scores

        return plot_scores(self, metrics, by, axes)

    def tables(self) -> list[Table]:
        """The scores as a table, as ``print`` and notebooks show it."""
        from qabench.evaluation.display import scores_table

        return [scores_table(self)]

    def _benchmark(self) -> Any:
        # By name, as descriptors refer to functions: benchmarks are above this package.
        return importlib.import_module("qabench.benchmarks").benchmark(self.benchmark)

    def counts(self) -> dict[str, int]:
        """The number of records by status, and the number of missing records."""
        statuses = [record.status for record in self.records]
        return {status: statuses.count(status) for status in STATUSES} | {"missing": self.expected - len(statuses)}

    def replies(self) -> dict[str, int]:
        """{"all": replies of models, "cached": how many of them came from the cache}; {} if unknown."""
        known = [record for record in self.records if record.replies is not None]
        if not known:
            return {}
        return {"all": sum(one.replies or 0 for one in known), "cached": sum(one.cached for one in known)}

    def by_id(self) -> dict[str, list[Record]]:
        """The records by question id; the repetitions of a question by epoch."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            found.setdefault(record.id, []).append(record)
        return found

    def groupings(self) -> list[str]:
        """The groupings that have at least one group, such as "category"."""
        return list(dict.fromkeys(name for record in self.records for name, of in record.groups.items() if of))

    def by_group(self, grouping: str) -> dict[str, list[Record]]:
        """The records of each group of a grouping, the largest group first; a record may be in several groups."""
        groups: dict[str, list[Record]] = {}
        for record in self.records:
            for group in record.groups.get(grouping, ()):
                groups.setdefault(group, []).append(record)
        return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))
