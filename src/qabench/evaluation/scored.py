"""The records of one system on one config of a benchmark, and the scores computed from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from qabench.data.rows import grouped, natural_key
from qabench.errors import InputError
from qabench.evaluation.model_name import model_name
from qabench.evaluation.records import (
    ANSWERED,
    CUT_OFF,
    MISSING,
    PREDICTIONS,
    STATUSES,
    Columns,
    Record,
    Score,
    columns_of,
    scores_of,
)
from qabench.evaluation.score_spec import ScoreSpec, present
from qabench.evaluation.signature import (
    Declaration,
    Field,
    short_signature,
    signature_name,
    with_fields,
)

if TYPE_CHECKING:
    from qabench.evaluation.judged import Correction


@dataclass(frozen=True, slots=True, repr=False)
class ScoredRecords:
    """The records of one system on the questions of one config, and their scores.

    Attributes:
        path: the log or the file of predictions.
        task: the name of the Inspect task. "predictions" for a file.
        benchmark: the benchmark's name, such as "fanoutqa", or "" for any other task. ``config`` is
            then the task's name.
        config: the config's name, such as "dev".
        setting: the setting's name, such as "closed-book", or "predictions" for a file.
        model: Inspect's name of the model, such as "openai/gpt-4o", or the name of a file of
            predictions.
        created: an ISO date and time.
        status: "success", "error", "cancelled" or "started" (killed, or still running).
        expected: the number of records of a complete evaluation.
        available: the number of questions of the config. None if unknown. Fewer than these may have
            been asked.
        records: the records in the order of the benchmark's questions. Repetitions of a question
            are ordered by epoch.
        signatures: group of scores -> everything these scores depend on, in one line. See
            ``signature``.
        unscored: why there are no scores, or None.
        arguments: the task's arguments and the generation options.
        server: the address of the model's server, if the user gave one.
        problems: one sentence for each kind of problem in the input as a whole, such as unreadable
            lines.
        notes: sentences about the scoring, such as the calls of a judge and their cost.
        origin: equal for a run and the runs that resumed it, or "" if unknown. Such runs are never
            compared with each other.
        recorded: group of scores -> why its scores, or a model's labels for them, are taken from the
            log and not computed again, or "".
        score_specs: the benchmark's scores. A score is not computed if no record has its columns.
        declarations: name of a signature -> the official values of its fields.
        failures_official: whether the authors' results contain questions without an answer.
        given_name: the name that the user gave to the system (``qabench run --name``), or "".
        corrections: scores of a judge, corrected by human labels. Never official.
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
    server: str = ""
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()
    available: int | None = None
    origin: str = ""
    recorded: Mapping[str, str] = field(default_factory=dict)
    score_specs: Sequence[ScoreSpec] = ()
    declarations: Mapping[str, Declaration] = field(default_factory=dict)
    failures_official: bool = False
    corrections: Sequence[Correction] = ()
    given_name: str = ""
    _computed: dict[str, Any] = field(default_factory=dict, init=False, compare=False)

    @property
    def answered(self) -> bool:
        """Return whether at least one question was answered. Otherwise there are no scores."""
        if not self.benchmark and any(record.scores for record in self.records):
            return True
        return any(record.status in (ANSWERED, CUT_OFF) for record in self.records)

    def answered_ids(self) -> set[str]:
        """Return the ids of the questions with at least one answer."""
        ids = set()
        for record in self.records:
            is_answered = record.status in (ANSWERED, CUT_OFF)
            # In logs of other tasks, the answer may be a file or a tool call.
            if is_answered or (record.scores and not self.benchmark):
                ids.add(record.id)
        return ids

    @property
    def questions(self) -> str:
        """Return the benchmark and the config, such as "fanoutqa dev"."""
        return f"{self.benchmark} {self.config}".strip()

    @property
    def title(self) -> str:
        """Return model, benchmark, config and setting: "gpt-4o on fanoutqa dev (closed-book)"."""
        title = f"{self.name} on {self.questions}"
        if self.setting not in ("", PREDICTIONS):
            title += f" ({self.setting})"
        return title

    @property
    def name(self) -> str:
        """Return the name of the system in all outputs: the given name, or the model's name."""
        if self.given_name or self.setting == PREDICTIONS:
            return self.given_name or self.model
        return model_name(self.model, self.arguments.get("model_path"))

    def once(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the result of ``compute``, which is called once per key."""
        if key not in self._computed:
            self._computed[key] = compute()
        return self._computed[key]

    def scores(self) -> dict[str, Score]:
        """Return the scores by name, with intervals and n, or {} if nothing was answered."""
        # This is a copy, because a caller may change it.
        return dict(self.once("scores", lambda: self._scores_of(self.columns())))

    def columns(self) -> Columns:
        """Return the records as columns, from which scores are computed."""
        columns: Columns = self.once("columns", lambda: Columns.of(self.records))
        return columns

    def _scores_of(self, columns: Columns) -> dict[str, Score]:
        """Return the scores of records, given as columns: of all records, or of a group."""
        if not self.answered:
            return {}
        # A system that returned no passages at all has no retrieval scores, not scores of 0.
        unanswered = self.unanswered_groups()
        specs = [spec for spec in self.score_specs if spec.group not in unanswered]
        return scores_of(specs, columns)

    def unanswered_groups(self) -> set[str]:
        """Return the groups of scores that no answer has data for, such as passages."""
        return set(self.once("unanswered groups", self._find_unanswered_groups))

    def _find_unanswered_groups(self) -> set[str]:
        # Only ``Record.statuses`` can give a group a status that differs from the question's.
        groups: set[str] = set()
        for record in self.records:
            groups.update(record.statuses)
        unanswered = set()
        for group in groups:
            if not any(record.status_of(group) in (ANSWERED, CUT_OFF) for record in self.records):
                unanswered.add(group)
        return unanswered

    def undefined(self) -> dict[str, str]:
        """Return why scores are undefined, by name, such as {"recall": "no segments are wrong"}."""
        if not self.answered:
            return {}
        scores = self.scores()
        unanswered = self.unanswered_groups()
        reasons = {}
        for spec in present(self.score_specs, list(self.columns().values)):
            if spec.name in scores:
                continue
            if not any(columns_of(spec, record) for record in self.records):
                # Without a record that has the columns, the score was not computed.
                continue
            reasons[spec.name] = spec.undefined
            if spec.group in unanswered:
                reasons[spec.name] = (
                    f"none of the {len(self.records)} answers has what {spec.group} is computed from"
                )
        return reasons

    def why_unscored(self) -> str | None:
        """Return why an evaluation has no scores, or None if it has scores."""
        if self.scores():
            return None
        if self.unscored:
            # The reason in the log says more than a reason that is derived from the records.
            return self.unscored
        if not self.answered:
            return f"none of the {self.expected} questions was answered"
        if self.undefined():
            return "they are undefined"
        groups = ", ".join(dict.fromkeys(spec.group for spec in self.score_specs))
        return f"no answer has a score of {groups or 'any kind'}"

    def scores_by_group(self, grouping: str) -> dict[str, dict[str, Score]]:
        """Return the scores of each group in a grouping. See ``by_group``."""

        def compute() -> dict[str, dict[str, Score]]:
            scores = {}
            for group, positions in self._positions_by_group(grouping).items():
                scores[group] = self._scores_of(self.columns().at(positions))
            return scores

        scores = self.once(f"scores by {grouping}", compute)
        # These are copies, because a caller may change them.
        return {group: dict(by_name) for group, by_name in scores.items()}

    def by_group(self, grouping: str) -> dict[str, list[Record]]:
        """Return the records by group, in natural order. A record may be in several groups."""
        records = {}
        for name, positions in self._positions_by_group(grouping).items():
            records[name] = [self.records[position] for position in positions]
        return records

    def _positions_by_group(self, grouping: str) -> dict[str, list[int]]:
        """Return the positions of the records by group, in the natural order of the groups."""
        groups: dict[str, list[int]] = self.once(
            f"positions by {grouping}", lambda: self._find_positions(grouping)
        )
        return groups

    def _find_positions(self, grouping: str) -> dict[str, list[int]]:
        groups: dict[str, list[int]] = {}
        for position, record in enumerate(self.records):
            for name in record.groups.get(grouping, ()):
                groups.setdefault(name, []).append(position)
        return {name: groups[name] for name in sorted(groups, key=natural_key)}

    def groupings(self) -> list[str]:
        """Return the groupings that have at least one group, such as "category"."""
        names: dict[str, None] = {}
        for record in self.records:
            for name, groups in record.groups.items():
                if groups:
                    names[name] = None
        return list(names)

    def by_id(self) -> dict[str, list[Record]]:
        """Return the records of each question, in the order of their epochs."""
        return grouped((record.id, record) for record in self.records)

    def counts(self) -> dict[str, int]:
        """Count the records by status. Expected records that do not exist are missing."""
        counts = Counter({MISSING: self.expected - len(self.records)})
        counts.update(record.status for record in self.records)
        # All statuses, in their order of display.
        return {status: counts[status] for status in STATUSES}

    def replies(self) -> dict[str, int]:
        """Return the number of replies ("all") and how many are cached ("cached"), or {}."""
        replies = [record.replies for record in self.records if record.replies is not None]
        if not replies:
            return {}
        cached = sum(record.cached for record in self.records)
        return {"all": sum(replies), "cached": cached}

    def short_signatures(self) -> dict[str, str]:
        """Return the signatures by group of scores, without fields that have official values."""
        lines = {}
        for group, line in self.signatures.items():
            try:
                declaration = self.declarations.get(signature_name(line))
                lines[group] = short_signature(line, declaration)
            except InputError:
                # The signature was edited, or written by another version of qabench. Notes report that as
                # a deviation.
                lines[group] = line
        return lines

    def signed(self, declared: Mapping[str, Field], **fields: object) -> Self:
        """Return the evaluation with more fields in all signatures, and their official values."""
        return self.signed_groups(list(self.signatures), declared, **fields)

    def signed_groups(
        self, groups: Sequence[str], declared: Mapping[str, Field], **fields: object
    ) -> Self:
        """Return the evaluation with more fields in the valid signatures of some groups."""
        lines = dict(self.signatures)
        for group in groups:
            # Notes report a signature that cannot be read.
            with suppress(InputError):
                lines[group] = with_fields(lines[group], **fields)
        declarations = {}
        for name, own in self.declarations.items():
            declarations[name] = {**own, **declared}
        return replace(self, signatures=lines, declarations=declarations)
