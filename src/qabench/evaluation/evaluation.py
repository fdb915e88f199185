"""The result of one system on one config of a benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from qabench.errors import InputError
from qabench.evaluation.metric import Metric
from qabench.evaluation.official import Declaration, deviations, signature_name
from qabench.evaluation.record import ANSWERED, CUT_OFF, FAILED, MISSING, STATUSES, Record
from qabench.io.tables import Displayed, Table

if TYPE_CHECKING:
    from qabench.data.predictions import Predictions
    from qabench.evaluation.scores import Score

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
        signatures: family of scores -> everything these scores depend on, in one line; see ``signature``.
        unscored: why there are no scores, or None.
        arguments: the task's arguments and the generation options.
        problems: one sentence for each kind of problem in the input as a whole, such as unreadable lines.
        origin: equal for a run and the runs that resumed it; "" if unknown. They are never compared with each other.
        recorded: family of scores -> why its scores are those of the log, not computed again from the answers.
        metrics: the benchmark's metrics; those whose columns no record has are not computed.
        declarations: the official values of the fields of the benchmark's signatures, by the signature's name.
        failures_official: whether the authors' results contain questions without an answer.
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
    recorded: Mapping[str, str] = field(default_factory=dict)
    metrics: Sequence[Metric] = ()
    declarations: Mapping[str, Declaration] = field(default_factory=dict)
    failures_official: bool = False
    _computed: dict[str, Any] = field(default_factory=dict, init=False, compare=False)

    @classmethod
    def of_predictions(
        cls,
        predictions: Predictions,
        config: str,
        records: Sequence[Record],
        signatures: Mapping[str, str],
        **fields: Any,
    ) -> Evaluation:
        """Return the evaluation of a file of predictions; the file's name stands for the model.

        Args:
            predictions: what was read.
            config: such as "dev".
            records: one per question that is scored.
            signatures: see the class.
            **fields: other fields of the class. By default, ``records`` has all questions of the config.
        """
        fields = {"expected": len(records), "available": len(records)} | fields
        return cls(
            path=predictions.path,
            task=PREDICTIONS,
            config=config,
            setting=PREDICTIONS,
            model=predictions.system,
            created=predictions.created,
            status="success",
            records=records,
            signatures=signatures,
            **fields,
        )

    @property
    def answered(self) -> bool:
        """Return whether at least one question was answered; otherwise there are no scores."""
        return any(record.status in (ANSWERED, CUT_OFF) for record in self.records)

    def scores(self, records: Sequence[Record] | None = None) -> dict[str, Score]:
        """Return the scores by metric name, with intervals and n; {} if nothing was answered. Computed once.

        Args:
            records: some of the records, such as those of a group; None for all.
        """
        from qabench.evaluation.scores import scores_of

        if not self.answered:
            return {}
        if records is not None:
            return scores_of(self.metrics, records)
        if "scores" not in self._computed:
            self._computed["scores"] = scores_of(self.metrics, self.records)
        return dict(self._computed["scores"])

    def scores_by_group(self, grouping: str) -> dict[str, dict[str, Score]]:
        """Return the scores of each group of a grouping; see ``by_group``. Computed once."""
        key = f"scores by {grouping}"
        if key not in self._computed:
            groups = self.by_group(grouping)
            self._computed[key] = {group: self.scores(records) for group, records in groups.items()}
        return dict(self._computed[key])

    def deviations(self, score: Score) -> list[str]:
        """Return what distinguishes a score from the official one, in sentences; [] if it is official."""
        sentences = [] if score.metric.official else ["not a score of the benchmark's authors"]
        sentences += self._signature_deviations(score.metric.family)
        if score.metric.family in self.recorded:
            why = self.recorded[score.metric.family]
            sentences.append("as recorded in the log" + (f" ({why})" if why else ""))
        asked = len({record.id for record in self.records})
        if self.available is not None and asked < self.available:
            sentences.append(f"{asked} of {self.available} questions were asked")
        if (epochs := max((record.epoch for record in self.records), default=1)) > 1:
            sentences.append(f"each question was asked {epochs} times")
        for status in () if self.failures_official else (FAILED, MISSING):
            if count := sum(record.status == status for record in self.records):
                sentences.append(f"{count} of {len(self.records)} questions have no answer ({status})")
        if score.left_out and not score.metric.partial:
            sentences.append(f"{score.left_out} of {len(self.records)} answers are left out")
        if self.status != "success":
            sentences.append(f"the run did not finish ({self.status})")
        return sentences

    def _signature_deviations(self, family: str) -> list[str]:
        line = self.signatures.get(family)
        if not line:
            return ["the signature is missing"]
        try:
            name = signature_name(line)
            if name in self.declarations:
                return deviations(line, self.declarations[name])
        except InputError as error:  # a log of another version, or an edited one
            return [str(error)]
        return [f"the official values of {name!r} are not known; allowed: {', '.join(self.declarations)}"]

    def as_dict(self, by: Sequence[str] = ()) -> dict[str, Any]:
        """Return the evaluation as JSON data; see ``qabench.evaluation.results.as_dict``."""
        from qabench.evaluation.results import as_dict

        return as_dict(self, by)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with one row per record; see ``qabench.evaluation.tables.records_frame``."""
        from qabench.evaluation.tables import records_frame

        return records_frame(self)

    def to_markdown(self) -> str:
        """Return the scores as a Markdown table, with the deviations from the official scores below it."""
        return "\n".join(table.formatted("markdown") for table in self.tables())

    def plot(self, metrics: Sequence[str] | None = None, by: str | None = None, axes: Any = None) -> Any:
        """Plot scores with their 95% intervals. Needs matplotlib.

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
        """Return the scores as a table, as ``print`` and notebooks show it."""
        from qabench.evaluation.tables import evaluation_table

        return [evaluation_table(self)]

    def counts(self) -> dict[str, int]:
        """Count the records by status; a record that the run should have and does not is missing, too."""
        counts = Counter({MISSING: self.expected - len(self.records)})
        counts.update(record.status for record in self.records)
        return {status: counts[status] for status in STATUSES}

    def replies(self) -> dict[str, int]:
        """Return {"all": replies of models, "cached": how many of them came from the cache}; {} if unknown."""
        counted = [record for record in self.records if record.replies is not None]
        if not counted:
            return {}
        replies = sum(record.replies or 0 for record in counted)
        return {"all": replies, "cached": sum(record.cached for record in counted)}

    def by_id(self) -> dict[str, list[Record]]:
        """Return the records by question id; the repetitions of a question by epoch."""
        questions: dict[str, list[Record]] = {}
        for record in self.records:
            questions.setdefault(record.id, []).append(record)
        return questions

    def groupings(self) -> list[str]:
        """Return the groupings that have at least one group, such as "category"."""
        return list(dict.fromkeys(name for record in self.records for name, groups in record.groups.items() if groups))

    def by_group(self, grouping: str) -> dict[str, list[Record]]:
        """Return the records of each group of a grouping, the largest first; a record may be in several."""
        groups: dict[str, list[Record]] = {}
        for record in self.records:
            for group in record.groups.get(grouping, ()):
                groups.setdefault(group, []).append(record)
        return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))
