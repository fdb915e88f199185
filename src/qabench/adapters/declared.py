"""What a metric declares, and its result: the benchmark's scores under the metric's keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from qabench.benchmarks import benchmark
from qabench.data.answers import UNANSWERED, check_pairs
from qabench.data.rows import Json, Row
from qabench.errors import InputError, unknown_name
from qabench.evaluation.records import values_of
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.scoring import Item, Outcome, Scorer, outcomes_of, records_of
from qabench.evaluation.signature import deviations, digest, signature

# Columns that this module adds to an item's row: the position of the item's reference, and the id
# and the text of its question.
POSITION = "position"
# An id need not be a string.
ID = "id"
QUESTION = "question"


class Declarations:
    """What a metric computes. Each attribute has a default.

    Attributes:
        BENCHMARK: the benchmark of the metric, such as "felm".
        GROUP: the group of its scores.
        KEYS: the keys of the result, and the scores that they have. The key "rouge1.recall" is the
            key "recall" of the dict "rouge1". None: the names of the scores of the group.
        OPTIONAL_KEYS: the keys that are left out if their score is not available. Other keys are
            None.
        OPTIONS: the options of ``compute``, and their names as options of the scorer. None: the
            options of the benchmark.
        SCORER_OPTIONS: options of the scorer that ``compute`` does not have.
        COLUMNS: the options of ``compute`` with a value for each question, and their columns in the
            dataset.
        BY: the column by which the scores are also grouped, in the key "by_COLUMN".
        REFERENCE: the column of the references in the dataset.
        ROWS: whether the references are whole rows of the dataset.
        ANSWERS: whether the references are answers, in which nothing can be missing.
        STRINGS: whether the references are strings, of which "42" is JSON only by chance.
        PREDICTION: the field of a prediction.
        MISSING: the fields of a missing prediction.
        SAMPLES: whether a prediction can be a list of replies, which may all be missing.
        BOUNDED: whether all its scores are fractions.
        UNOFFICIAL: why its scores are never official.

    The others are functions of the benchmark, of which most metrics need few:

        ROW: maps a reference to the row that the scorer reads.
        FIELDS: maps a prediction to the fields that the scorer reads.
        ITEMS: maps references and predictions to items, if a row has several of them. An item's row
            has the ``POSITION`` of its reference.
        SCORER: maps groups and options to the scorer, if it is not the benchmark's.
        CHECK: raises InputError for predictions that have the wrong form as a whole.
        SIGNED: maps references and predictions to the references that the signature has.
        COUNTS: maps outcomes to further keys of the result, which each group of ``BY`` has as well.
        TOTALS: maps scorer, items and outcomes to further keys of the result.
        QUESTION: maps an item and its outcome to its part of ``PER_QUESTION``, a list with
            ``ITEMS``.
        PER_QUESTION: the key for the parts of all questions.
    """

    BENCHMARK: ClassVar[str]
    GROUP: ClassVar[str]
    KEYS: ClassVar[Mapping[str, str] | None] = None
    OPTIONAL_KEYS: ClassVar[Sequence[str]] = ()
    OPTIONS: ClassVar[Mapping[str, str] | None] = None
    SCORER_OPTIONS: ClassVar[Mapping[str, Any]] = {}
    COLUMNS: ClassVar[Mapping[str, str]] = {}
    BY: ClassVar[str] = ""
    REFERENCE: ClassVar[str] = "answer"
    ROWS: ClassVar[bool] = False
    ANSWERS: ClassVar[bool] = False
    STRINGS: ClassVar[bool] = False
    PREDICTION: ClassVar[str] = "answer"
    MISSING: ClassVar[Mapping[str, Any] | None] = None
    SAMPLES: ClassVar[bool] = False
    BOUNDED: ClassVar[bool] = True
    UNOFFICIAL: ClassVar[str] = ""

    ROW: ClassVar[Callable[[Any], Row] | None] = None
    FIELDS: ClassVar[Callable[[Any], Row] | None] = None
    ITEMS: ClassVar[Callable[[list[Any], list[Any]], list[Item]] | None] = None
    SCORER: ClassVar[Callable[..., Scorer] | None] = None
    CHECK: ClassVar[Callable[[list[Any]], None] | None] = None
    SIGNED: ClassVar[Callable[[list[Any], list[Any]], list[Any]] | None] = None
    COUNTS: ClassVar[Callable[[Sequence[Outcome]], Json] | None] = None
    TOTALS: ClassVar[Callable[..., Json] | None] = None
    QUESTION: ClassVar[Callable[[Item, Outcome], Any] | None] = None
    PER_QUESTION: ClassVar[str] = "per_question"

    @classmethod
    def groups(cls, options: Mapping[str, Any]) -> list[str]:
        """Return the groups of scores that are computed with these options of ``compute``."""
        return [cls.GROUP]

    @classmethod
    def scorer_options(cls) -> Mapping[str, str]:
        """Return the options of ``compute``, and their names as options of the scorer."""
        if cls.OPTIONS is not None:
            return cls.OPTIONS
        options = benchmark(cls.BENCHMARK).options
        return {option.name: option.name for option in options if option.method == "scorer"}


def result_of(
    declared: type[Declarations],
    name: str,
    predictions: list[Any],
    references: list[Any],
    per_question: bool,
    options: Mapping[str, Any],
) -> Json:
    """Return the result of a metric.

    Args:
        declared: what the metric declares.
        name: the metric.
        predictions: the predictions as they were passed to ``compute``. ``UNANSWERED`` for None.
        references: the references.
        per_question: whether the result has a part for each question.
        options: other options of ``compute``.

    Raises:
        InputError: a prediction, a reference or an option that cannot be used.
    """
    check_pairs(references, predictions)
    if declared.CHECK:
        declared.CHECK(predictions)
    columns = _columns(declared.COLUMNS, options, predictions)
    groups = declared.groups(options)
    scorer = _scorer(declared, groups, options)
    items = _items(declared, references, predictions, columns)
    outcomes = outcomes_of(scorer, items, declared.BENCHMARK)
    for item, outcome in zip(items, outcomes, strict=True):
        # A scorer may call a missing prediction unusable; it is not an error of the user.
        if not outcome.usable and item.fields is not declared.MISSING:
            raise InputError(f"predictions[{item.row[POSITION]}]: {outcome.problem}")

    names = set((declared.KEYS or {}).values())
    specs = []
    for spec in benchmark(declared.BENCHMARK).scores:
        # Without declared keys, the result has all scores of the groups.
        is_reported = spec.name in names
        if declared.KEYS is None:
            is_reported = spec.group in groups
        if is_reported:
            specs.append(spec)
    keyed = _scores(declared, specs, outcomes)
    if declared.BY and all(declared.BY in item.row for item in items):
        by_group: dict[Any, list[Outcome]] = {}
        for item, outcome in zip(items, outcomes, strict=True):
            by_group.setdefault(item.row[declared.BY], []).append(outcome)
        nested_by_group = {}
        for group, members in by_group.items():
            # A system whose answers have no claims has no scores and nothing to count.
            if any(outcome.scores or outcome.result for outcome in members):
                nested_by_group[group] = _nested(declared, _scores(declared, specs, members))
        keyed[f"by_{declared.BY}"] = nested_by_group
    if declared.TOTALS:
        keyed |= declared.TOTALS(scorer, items, outcomes)
    # A function of the metric may know of deviations that no field of the signature shows.
    more_deviations = keyed.pop("deviations", [])
    result = _nested(declared, keyed)
    if per_question:
        result[declared.PER_QUESTION] = _questions(declared, specs, items, outcomes, references)
    fields: dict[str, object] = {}
    for group in groups:
        fields |= scorer.metric_fields(group, items)
    scored = declared.SIGNED(references, predictions) if declared.SIGNED else references
    # A metric does not know the config, so a digest of the references stands for the data.
    line = signature(name, references=digest(scored), **fields, asked=len(references))
    differences = deviations(line, benchmark(declared.BENCHMARK).declaration(name))
    # Some metrics are not of the benchmark's authors, whatever the fields are.
    unofficial = [declared.UNOFFICIAL] if declared.UNOFFICIAL else []
    result["signature"] = line
    result["deviations"] = [*unofficial, *differences, *more_deviations]
    return result


def _columns(
    declared: Mapping[str, str], options: Mapping[str, Any], predictions: Sequence[Any]
) -> dict[str, list[Any]]:
    """Return the values of the options that have one per question, by column of the dataset."""
    n = len(predictions)
    columns = {}
    for option, column in declared.items():
        values = options.get(option)
        if values is None:
            continue
        is_text = isinstance(values, str) or not isinstance(values, Iterable)
        items = [] if is_text else list(values)
        kind = "values" if column == ID else "strings"
        allowed = f"allowed: a list of {n} {kind}, one for each reference"
        if is_text:
            raise InputError(f"{option} is {values!r:.80}; {allowed}")
        if len(items) != n:
            raise InputError(f"{len(items)} {option} for {n} references; {allowed}")
        for position, (item, prediction) in enumerate(zip(items, predictions, strict=True)):
            # The text of a question without a prediction is not used.
            is_unread = column == QUESTION and item is None and prediction is UNANSWERED
            if column != ID and not isinstance(item, str) and not is_unread:
                raise InputError(f"{option}[{position}] is {item!r:.80}; {allowed}")
        columns[column] = items
    return columns


def _scorer(
    declared: type[Declarations], groups: Sequence[str], options: Mapping[str, Any]
) -> Scorer:
    scored = benchmark(declared.BENCHMARK)
    for group in groups:
        if group not in scored.groups:
            what = f"{declared.__name__}.GROUP: {scored.title} has no group"
            raise unknown_name(what, group, scored.groups)
    names = declared.scorer_options()
    # The other options, such as those with a column, are not the scorer's.
    own_options = {}
    for name, value in options.items():
        if name in names:
            own_options[names[name]] = value
    scorer = declared.SCORER or scored.scorer
    return scorer(groups, **declared.SCORER_OPTIONS, **own_options)


def _items(
    declared: type[Declarations],
    references: list[Any],
    predictions: list[Any],
    columns: Mapping[str, Sequence[Any]],
) -> list[Item]:
    """Return what the scorer scores: references as rows, predictions as fields."""
    if declared.ITEMS:
        return declared.ITEMS(references, predictions)
    items = []
    for position, (reference, prediction) in enumerate(zip(references, predictions, strict=True)):
        row: Json = {POSITION: position}
        try:
            if declared.ROW:
                row |= declared.ROW(reference)
            else:
                row[declared.REFERENCE] = reference
        except InputError as error:
            raise InputError(f"references[{position}]: {error}") from None
        for column, values in columns.items():
            row[column] = values[position]
        fields: Mapping[str, Any] | None = declared.MISSING
        if prediction is not UNANSWERED:
            fields = {declared.PREDICTION: prediction}
            if declared.FIELDS:
                fields = declared.FIELDS(prediction)
        items.append(Item(row, fields))
    return items


def _scores(
    declared: type[Declarations], specs: Sequence[ScoreSpec], outcomes: Sequence[Outcome]
) -> Json:
    """Return the scores of outcomes, and further counts, by key."""
    values = values_of(specs, records_of(outcomes))
    keyed: Json = dict(values)
    if declared.KEYS is not None:
        keyed = {key: values.get(score) for key, score in declared.KEYS.items()}
    for key in declared.OPTIONAL_KEYS:
        if keyed[key] is None:
            del keyed[key]
    if declared.COUNTS:
        keyed |= declared.COUNTS(outcomes)
    return keyed


def _questions(
    declared: type[Declarations],
    specs: Sequence[ScoreSpec],
    items: Sequence[Item],
    outcomes: Sequence[Outcome],
    references: Sequence[Any],
) -> list[Any]:
    """Return the part of each question. By default, these are its scores by key."""
    if declared.QUESTION is None:
        keys = declared.KEYS
        if not keys:
            # All scores that some question has, so that all questions have the same keys.
            names: dict[str, str] = {}
            for outcome in outcomes:
                for name in outcome.scores:
                    names[name] = name
            keys = names
        questions = []
        for outcome in outcomes:
            scores = {key: outcome.scores.get(name) for key, name in keys.items()}
            questions.append(_nested(declared, scores))
        return questions
    parts = list(map(declared.QUESTION, items, outcomes))
    if declared.ITEMS is None:
        return parts
    rows: list[list[Any]] = [[] for _ in references]
    for item, own in zip(items, parts, strict=True):
        rows[item.row[POSITION]] += own
    return rows


def _nested(declared: type[Declarations], keyed: Json) -> Json:
    """Return a dict in which the key "a.b" is the key "b" of the dict "a", if keys are declared."""
    if declared.KEYS is None:
        return keyed
    nested: Json = {}
    for key, value in keyed.items():
        *parents, last = key.split(".")
        inner = nested
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return nested
