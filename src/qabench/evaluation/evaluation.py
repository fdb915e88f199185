"""The result of one system on one config of a benchmark: its records, and how they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from qabench.data.predictions import NO_PREDICTION, WITHOUT_PREDICTION, some
from qabench.data.rows import Json, grouped
from qabench.errors import InputError
from qabench.evaluation.records import (
    ANSWERED,
    CUT_OFF,
    FAILED,
    MISSING,
    PREDICTIONS,
    STATUSES,
    Record,
    Score,
    answered_ids,
    column_names,
    columns_of,
    distinct,
    scores_of,
)
from qabench.evaluation.score_spec import ScoreSpec, present
from qabench.evaluation.signature import (
    Declaration,
    Field,
    asked_part,
    deviations,
    signature_name,
    with_fields,
)
from qabench.io.tables import Displayed, Table

if TYPE_CHECKING:
    pass

Line = TypeVar("Line")
MAX_LENGTH = 80  # of a label
UNDEFINED = "undefined"  # in tables
LISTED_PROBLEMS = 5  # per evaluation. The others are counted
SERVED = "openai-api/qabench/"  # Inspect's name for a model at --base-url starts so
NO_LABELS = {"model_path", "cache", "max_connections", "max_retries", "timeout"}
# fields of ``Evaluation.as_dict``
IN_JSON = (
    "benchmark",
    "config",
    "setting",
    "model",
    "created",
    "status",
    "path",
    "expected",
    "available",
)


# fields of a record in ``Evaluation.to_pandas``
IN_PANDAS = (
    "id",
    "epoch",
    "question",
    "reference",
    "answer",
    "status",
    "problem",
    "input_tokens",
    "output_tokens",
    "seconds",
    "cost",
)


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about an evaluation. Its kind is "unscored", "problem", "note", "deviation" or "signature"."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation(Displayed):
    """The records of one system on the questions of one config, from a run's log or from a file of predictions.

    Attributes:
        path: the log or the file of predictions.
        task: the name of the Inspect task. "predictions" for a file.
        benchmark: such as "fanoutqa", or "" for any other task, whose name is the config.
        config: such as "dev".
        setting: such as "closed-book". "predictions" for a file.
        model: Inspect's name of the model, such as "openai/gpt-4o". For a file, its name.
        created: an ISO date and time.
        status: "success", "error", "cancelled" or "started" (killed, or still running).
        expected: the number of records of a complete evaluation.
        available: the number of questions of the config. None if unknown. Fewer than these may have
            been asked.
        records: in the order of the benchmark's questions. Repetitions of a question are ordered by
            epoch.
        signatures: group of scores -> everything these scores depend on, in one line. See
            ``signature``.
        unscored: why there are no scores, or None.
        arguments: the task's arguments and the generation options.
        server: the address of the model's server, if the user gave one.
        problems: one sentence for each kind of problem in the input as a whole, such as unreadable
            lines.
        notes: sentences about the scoring, such as the calls of a judge and their cost.
        origin: equal for a run and the runs that resumed it, or "" if unknown. They are never
            compared with each other.
        recorded: group of scores -> why its scores are taken from the log, not computed again from
            the answers.
        score_specs: the benchmark's scores. Those whose columns no record has are not computed.
        declarations: the official values of the fields of the benchmark's signatures, by the
            signature's name.
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
    server: str = ""
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()
    available: int | None = None
    origin: str = ""
    recorded: Mapping[str, str] = field(default_factory=dict)
    score_specs: Sequence[ScoreSpec] = ()
    declarations: Mapping[str, Declaration] = field(default_factory=dict)
    failures_official: bool = False
    _computed: dict[str, Any] = field(default_factory=dict, init=False, compare=False)

    def __getitem__(self, name: str) -> Score:
        """Return a score, such as ``evaluation["acc.loose"]``.

        Raises InputError if there is none of this name.
        """
        scores = self.scores()
        if name not in scores:
            reason = self.why_unscored() or f"the scores are {', '.join(scores)}"
            raise InputError(f"no score {name!r}: {self.undefined().get(name) or reason}")
        return scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores())

    @property
    def answered(self) -> bool:
        """Return whether at least one question was answered.

        Otherwise there are no scores.
        """
        return bool(self.answered_ids())

    def answered_ids(self) -> set[str]:
        """Return the ids of the questions with at least one answer.

        In logs of other tasks, also those with a score: the answer may be a file, or a call of a tool.
        """
        scored = set() if self.benchmark else {record.id for record in self.records if record.scores}
        return answered_ids(self.records) | scored

    @property
    def questions(self) -> str:
        """Return the benchmark and the config, such as "fanoutqa dev"."""
        return f"{self.benchmark} {self.config}".strip()

    @property
    def title(self) -> str:
        """Return model, benchmark, config and setting, such as "gpt-4o on fanoutqa dev (closed-book)"."""
        setting = "" if self.setting in ("", PREDICTIONS) else f" ({self.setting})"
        return f"{self.model.removeprefix(SERVED)} on {self.questions}{setting}"

    def _once(self, key: str, compute: Callable[[], Any]) -> Any:
        if key not in self._computed:
            self._computed[key] = compute()
        return self._computed[key]

    def _scores_of(self, records: Sequence[Record]) -> dict[str, Score]:
        if not self.answered:
            return {}
        unanswered = self.unanswered_groups()
        specs = [spec for spec in self.score_specs if spec.group not in unanswered]
        return scores_of(specs, records)

    def unanswered_groups(self) -> set[str]:
        """Return the groups of scores that no answered question has anything for, such as no passages."""
        groups = {group for record in self.records for group in record.statuses}
        return {
            group
            for group in groups
            if not any(record.status_of(group) in (ANSWERED, CUT_OFF) for record in self.records)
        }

    def scores(self) -> dict[str, Score]:
        """Return the scores by name, with intervals and n, or {} if nothing was answered.

        Computed once.
        """
        scores: dict[str, Score] = self._once("scores", lambda: self._scores_of(self.records))
        return scores

    def undefined(self) -> dict[str, str]:
        """Return why scores are undefined, by name, such as the recall of errors without any errors."""
        scores = self.scores()
        reasons = {}
        unanswered = self.unanswered_groups()
        for spec in present(self.score_specs, column_names(self.records)):
            lacking = self.answered and spec.name not in scores
            if lacking and any(columns_of(spec, record) for record in self.records):
                reasons[spec.name] = spec.undefined
                if spec.group in unanswered:
                    reasons[spec.name] = (
                        f"none of the {len(self.records)} answers has what {spec.group} is computed from"
                    )
        return reasons

    def scores_by_group(self, grouping: str) -> dict[str, dict[str, Score]]:
        """Return the scores of each group of a grouping.

        See ``by_group``. Computed once.
        """
        groups = self.by_group(grouping).items()
        scores: dict[str, dict[str, Score]] = self._once(
            f"scores by {grouping}",
            lambda: {group: self._scores_of(records) for group, records in groups},
        )
        return scores

    def deviations(self, score: Score) -> list[str]:
        """Return what distinguishes a score from the official one, in sentences, or [] if it is official.

        The scores of a task without a benchmark are neither official nor unofficial: [].
        """
        if not self.benchmark:
            return []
        sentences = []
        if not (score.spec.official or score.spec.reducer):
            sentences.append("not a score of the benchmark's authors")
        sentences += self._signature_deviations(score.spec)
        if score.spec.group in self.recorded:
            why = self.recorded[score.spec.group]
            sentences.append("as recorded in the log" + (f" ({why})" if why else ""))
        group = score.spec.group
        sentences += self._once(f"asked {group}", lambda: self._asked_deviations(group))
        if score.left_out and not score.spec.partial:
            sentences.append(f"{score.left_out} of {len(self.records)} answers are left out")
        if self.status != "success":
            status = "killed, or still running" if self.status == "started" else self.status
            sentences.append(f"the run did not finish ({status})")
        return sentences

    def _asked_deviations(self, group: str) -> list[str]:
        sentences = asked_part(len({record.id for record in self.records}), self.available)
        if missing := self.expected - len(self.records):
            sentences.append(f"{missing} of {self.expected} answers are missing")
        if (epochs := max((record.epoch for record in self.records), default=1)) > 1:
            sentences.append(f"each question was asked {epochs} times")
        for status in () if self.failures_official else (FAILED, MISSING):
            if count := sum(record.status_of(group) == status for record in self.records):
                sentences.append(f"{count} of {len(self.records)} questions have no answer ({status})")
        return sentences

    def _signature_deviations(self, spec: ScoreSpec) -> list[str]:
        line = self.signatures.get(spec.group, "")
        try:
            name = signature_name(line)
        except InputError as error:  # a log of another version, or an edited one
            return [str(error) if line else "the signature is missing"]
        if name in self.declarations:
            return deviations(line, self.declarations[name], spec.needs[0].partition("@")[2])
        return [
            f"the official values of {name!r} are not known; allowed: {', '.join(self.declarations)}"
        ]

    def signed(self, declared: Mapping[str, Field], **fields: object) -> Evaluation:
        """Return the evaluation with further fields in all signatures, and what is official of them."""
        return self.signed_groups(list(self.signatures), declared, **fields)

    def signed_groups(
        self, groups: Sequence[str], declared: Mapping[str, Field], **fields: object
    ) -> Evaluation:
        """Return the evaluation with further fields in the signatures of some groups, and what is official of them.

        A text that is not a signature stays as it is, which is a deviation.
        """
        lines = dict(self.signatures)
        for group in groups:
            with suppress(InputError):
                lines[group] = with_fields(lines[group], **fields)
        declarations = {name: {**own, **declared} for name, own in self.declarations.items()}
        return replace(self, signatures=lines, declarations=declarations)

    def deviation_sentences(self) -> list[str]:
        """Return each deviation once, with the groups of scores, and the scores, that it applies to."""
        scores = self.scores()
        names_by_group = grouped((score.spec.group, name) for name, score in scores.items())
        names_by_sentence = grouped(
            (sentence, name) for name, score in scores.items() for sentence in self.deviations(score)
        )
        sentences = []
        for sentence, names in names_by_sentence.items():
            shown: list[str] = []
            for group, members in names_by_group.items():
                deviating = [name for name in members if name in names]
                shown += [group] if deviating == members else deviating
            where = "all scores" if len(names) == len(scores) else ", ".join(shown)
            sentences.append(f"not official ({where}): {sentence}")
        return sentences

    def as_dict(self, by: Sequence[str] = ()) -> Json:
        """Return the evaluation as JSON data.

        Args:
            by: groupings to add, such as "category".

        Returns:
            benchmark, config, setting, model, created, status, path, expected, available. By score
            name: ``scores`` (value), ``intervals`` (see ``qabench.stats.Interval``), ``n``,
            ``unit``, ``left_out`` and ``deviations`` (sentences; [] for an official score).
            ``counts`` (records by status, missing ones and all records), ``problems`` (sentences),
            ``signatures`` by group. ``replies`` (all, and those from the cache) of a run whose
            replies are cached. ``notes`` (sentences) and ``unscored`` (why there are no scores)
            only if there are any, as ``undefined`` (why a score is undefined, by name). With
            ``by`` {grouping: {group: {"records", "scores", "intervals", "n", "left_out"}}}.
        """
        scores = self.scores()
        document: Json = {name: getattr(self, name) for name in IN_JSON} | _numbers(scores)
        document |= {
            "unit": {name: score.spec.unit for name, score in scores.items()},
            "deviations": {name: self.deviations(score) for name, score in scores.items()},
            "counts": self.counts() | {"records": len(self.records)},
            "problems": self.problem_sentences(),
            "signatures": dict(self.signatures),
        }
        optional = {
            "undefined": self.undefined(),
            "replies": self.replies(),
            "notes": list(self.notes),
            "unscored": self.why_unscored(),
            "by": {grouping: self._numbers_by_group(grouping) for grouping in by},
        }
        return document | {name: value for name, value in optional.items() if value}

    def _numbers_by_group(self, grouping: str) -> Json:
        scores = self.scores_by_group(grouping)
        return {
            group: {"records": len(records)} | _numbers(scores[group])
            for group, records in self.by_group(grouping).items()
        }

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame: per record id, epoch, texts, status, costs, scores, and groups by grouping."""
        import pandas as pd

        rows = []
        for record in self.records:
            row = {name: getattr(record, name) for name in IN_PANDAS}
            groups = {name: list(members) for name, members in record.groups.items()}
            rows.append({**row, **record.scores, **groups})
        return pd.DataFrame(rows)

    def to_markdown(self) -> str:
        """Return the scores as a Markdown table, with the deviations from the official scores below it."""
        return "\n".join(table.formatted("markdown") for table in self.tables())

    def tables(self) -> list[Table]:
        """Return the scores as a table, as ``print`` and notebooks show it, with the deviations as notes."""
        table = score_table([self], [self.title])
        shown = [note.text for note in self.all_notes() if note.kind in ("problem", "note", "deviation")]
        table.notes.extend(shown)
        return [table]

    def all_notes(self) -> list[Note]:
        """Return what readers of the scores must know: commands, ``repr`` and notebooks show these notes."""
        reason = self.why_unscored()
        replies = self.replies()
        cached = f"{replies['cached']:,} of {replies['all']:,} replies from the cache" if replies else ""
        signatures = [f"{group}: {line}" for group, line in self.signatures.items()]
        texts_by_kind = [
            ("unscored", [f"no scores: {reason}"] if reason else []),
            ("problem", self.problem_sentences(LISTED_PROBLEMS)),
            ("note", [cached] if replies.get("cached") else []),
            ("note", self.notes),
            ("problem", self.undefined_sentences()),
            ("deviation", self.deviation_sentences()),
            ("signature", [] if reason else signatures),
        ]
        return [Note(kind, text) for kind, texts in texts_by_kind for text in texts]

    def group_table(self, grouping: str, heading: str, all_scores: bool) -> Table:
        """Return the scores of each group of a grouping, such as "category", one row per score and group."""
        groups = self.scores_by_group(grouping)
        by_name = {name: score for group in groups.values() for name, score in group.items()}
        # A score that is undefined in the first group keeps its place.
        in_order = [spec.name for spec in present(self.score_specs, column_names(self.records))]
        scores = {name: by_name[name] for name in in_order if name in by_name}
        rows: list[list[Any]] = []
        for name in _shown(scores, all_scores):
            for group, records in self.by_group(grouping).items():
                row: list[Any] = [name, group, len(records)]
                if score := groups[group].get(name):
                    row += [f"{score.value:.4f}", score.interval.bounds(), score.size]
                else:
                    row += [UNDEFINED, "", ""]
                rows.append(row)
        return Table(heading, ["score", grouping, "records", "value", "95% interval", "n"], rows)

    def problem_sentences(self, most: int | None = None) -> list[str]:
        """Return the problems of an evaluation, one sentence per kind, with the first ids.

        After ``most``, their number.
        """
        missing_named = any(problem.startswith(WITHOUT_PREDICTION) for problem in self.problems)
        ids_by_kind = grouped(
            (f"{record.status}: {record.problem}".removeprefix(f"{ANSWERED}: "), record.id)
            for record in self.records
            if record.problem and not (missing_named and record.problem == NO_PREDICTION)
        )
        sentences = list(self.problems)
        for kind, ids in sorted(ids_by_kind.items(), key=lambda item: -len(item[1])):
            sentences.append(f"{len(ids)} x {kind} ({some(ids)})")
        if most is not None and len(sentences) > most:
            more = len(sentences) - most
            sentences[most:] = [f"more problems: {more}, which `qabench score --json` lists"]
        return sentences

    def undefined_sentences(self) -> list[str]:
        """Return why scores are undefined, one sentence per reason."""
        names = grouped((reason, name) for name, reason in self.undefined().items())
        sentences = [f"undefined ({', '.join(each)}): {reason}" for reason, each in names.items()]
        return sentences + self.left_out_sentences(self.score_specs)

    def left_out_sentences(self, specs: Sequence[ScoreSpec]) -> list[str]:
        """Return how many records of a log of another task have no value of a score, and are in no mean of it.

        Scores of benchmarks say so among their deviations.
        """
        if self.benchmark:
            return []
        shown = [spec.name for spec in specs if not spec.reducer]
        counts = grouped(
            (score.left_out, name)
            for name, score in self.scores().items()
            if score.left_out and name in shown
        )
        return [
            f"left out of {', '.join(names)}: {count:,} of {len(self.records):,} records have no value"
            for count, names in counts.items()
        ]

    def why_unscored(self) -> str | None:
        """Return why an evaluation has no scores, or None if it has scores."""
        if self.scores():
            return None
        if not self.unscored and not self.answered:
            return f"none of the {self.expected} questions was answered"
        groups = ", ".join(dict.fromkeys(spec.group for spec in self.score_specs))
        return self.unscored or f"no answer has a score of {groups or 'any kind'}"

    def counts(self) -> dict[str, int]:
        """Count the records by status.

        A record that the run should have and does not is missing, too.
        """
        counts = Counter({MISSING: self.expected - len(self.records)})
        counts.update(record.status for record in self.records)
        return {status: counts[status] for status in STATUSES}

    def replies(self) -> dict[str, int]:
        """Return {"all": replies of models, "cached": how many of them came from the cache}, or {} if unknown."""
        replies = [record.replies for record in self.records if record.replies is not None]
        cached = sum(record.cached for record in self.records)
        return {"all": sum(replies), "cached": cached} if replies else {}

    def by_id(self) -> dict[str, list[Record]]:
        """Return the records by question id.

        The repetitions of a question by epoch.
        """
        return grouped((record.id, record) for record in self.records)

    def groupings(self) -> list[str]:
        """Return the groupings that have at least one group, such as "category"."""
        names: dict[str, None] = {}
        for record in self.records:
            names |= dict.fromkeys(name for name, groups in record.groups.items() if groups)
        return list(names)

    def by_group(self, grouping: str) -> dict[str, list[Record]]:
        """Return the records of each group of a grouping, the largest first.

        A record may be in several.
        """
        groups = grouped(
            (name, record) for record in self.records for name in record.groups.get(grouping, ())
        )
        return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def without_superseded(evaluations: Sequence[Evaluation]) -> tuple[list[Evaluation], list[Evaluation]]:
    """Return evaluations without runs that were resumed by others of them, and these superseded runs.

    Of the runs with the same ``Evaluation.origin``, the one with the most answers counts, the
    latest if there are several.
    """
    best = {each.origin: each for each in sorted(evaluations, key=_progress)}
    current = [each for each in evaluations if not each.origin or best[each.origin] is each]
    return current, [each for each in evaluations if each.origin and best[each.origin] is not each]


def _progress(evaluation: Evaluation) -> tuple[int, str]:
    answers = [record for record in evaluation.records if record.status not in (FAILED, MISSING)]
    return len(answers), evaluation.created


def _numbers(scores: Mapping[str, Score]) -> Json:
    return {
        "scores": {name: score.value for name, score in scores.items()},
        "intervals": {name: asdict(score.interval) for name, score in scores.items()},
        "n": {name: score.n for name, score in scores.items()},
        "left_out": {name: score.left_out for name, score in scores.items()},
    }


def _shown(scores: dict[str, Score], all_scores: bool) -> dict[str, Score]:
    main = {name: score for name, score in scores.items() if score.spec.main}
    return scores if all_scores or not main else main


def score_table(
    evaluations: Sequence[Evaluation], labels: Sequence[str], all_scores: bool = True
) -> Table:
    """Return one row per score and evaluation of a config, only of main scores without ``all_scores``.

    The notes about a single evaluation count its records.
    """
    first, several = evaluations[0], len(evaluations) > 1
    scores = {name: score for each in evaluations for name, score in each.scores().items()}
    shown = _shown(scores, all_scores)
    columns = ["score", "value", "95% interval", "n"]
    rows: list[list[Any]] = []
    for name in shown:
        for label, evaluation in zip(labels, evaluations, strict=True):
            score = evaluation.scores().get(name)
            if score:
                row = [name, f"{score.value:.4f}", score.interval.bounds(), score.size]
            elif name in evaluation.undefined():
                row = [name, UNDEFINED, "", ""]
            else:
                continue
            if first.benchmark:
                is_official = score and not evaluation.deviations(score)
                row.append("yes" if is_official else "no")
            rows.append([*row[:1], label, *row[1:]] if several else row)
    if first.benchmark:
        columns.append("official")
    if several:
        columns.insert(1, "system")
    table = Table(first.questions if several else first.title, columns, rows)
    if not several:
        counts = (f"{count} {status}" for status, count in first.counts().items() if count)
        table.notes.append(", ".join(counts))
        if reason := first.why_unscored():
            table.notes.append(f"no scores: {reason}")
    if len(shown) < len(scores):
        table.notes.append(f"--all-scores prints {len(scores)} scores")
    return table


def labels(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return one label per evaluation: the model's name, with what differs between equal names, or else a number.

    The provider, server, options and date are tried in this order.
    Different benchmarks, configs and settings are always named. A model that was loaded from a
    folder (``-M model_path=DIR``) has the folder's name.
    """
    models = [
        str(each.arguments.get("model_path", each.model.removeprefix(SERVED))) for each in evaluations
    ]
    names = [model.rpartition("/")[2] or model or "no name" for model in models]
    if len(set(names)) < len(set(models)):
        names = models
    for always in ([each.questions for each in evaluations], [each.setting for each in evaluations]):
        if len(set(always)) > 1:
            names = [f"{name} · {value}" for name, value in zip(names, always, strict=True)]
    names = _told_apart(names, [each.server.partition("://")[2] for each in evaluations])
    options = {name for each in evaluations for name in each.arguments}
    for option in sorted(options - NO_LABELS):
        values = [each.arguments.get(option) for each in evaluations]
        texts = ["" if value is None else f"{option} {value}" for value in values]
        names = _told_apart(names, texts)
    if any(each.setting != PREDICTIONS for each in evaluations):
        names = _told_apart(names, [each.created[:16].replace("T", " ") for each in evaluations])
    return distinct([name[:MAX_LENGTH] for name in names])


def _told_apart(names: Sequence[str], values: Sequence[str]) -> list[str]:
    """Add the values to names that occur several times with different values."""
    pairs = list(zip(names, values, strict=True))
    counts = Counter(name for name, _ in set(pairs))
    return [f"{name} · {value}" if counts[name] > 1 and value else name for name, value in pairs]


def with_systems(lines_by_system: Mapping[str, Iterable[Line]]) -> list[tuple[str, Line]]:
    """Return the distinct lines about systems, each after the systems that have it, or after "" if all have it."""
    systems_by_line = grouped(
        (line, system) for system, lines in lines_by_system.items() for line in dict.fromkeys(lines)
    )
    pairs = []
    for line, systems in systems_by_line.items():
        is_shared = len(systems) == len(lines_by_system)
        pairs.append(("" if is_shared else f"{some(systems)}: ", line))
    return pairs
