"""What a metric declares, and how its result is computed: scores under the metric's keys."""

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

# Columns that are added to an item's row: the position of its reference, and the question's id and
# text.
POSITION = "position"
# Values of this column need not be strings.
ID = "id"
QUESTION = "question"


class Declarations:
    """What a metric computes. Each attribute except BENCHMARK and GROUP has a default.

    Attributes:
        BENCHMARK: the benchmark of the metric, such as "felm".
        GROUP: the group of its scores.
        KEYS: maps the keys of the result to scores. The key "rouge1.recall" is the key "recall" of
            the dict "rouge1". None means that the keys are the names of the group's scores.
        OPTIONAL_KEYS: the keys that are left out if their score is undefined. Other keys are then
            None. Requires KEYS.
        OPTIONS: maps the options of ``compute`` to options of the scorer. None means all options of
            the benchmark's scorer, under their own names.
        SCORER_OPTIONS: options of the scorer with fixed values, which ``compute`` does not have.
        COLUMNS: maps options of ``compute`` to columns of the dataset. The value of such an option
            is a list with one item per question.
        BY: the column by which the scores are also grouped, in the key "by_COLUMN".
        REFERENCE: the column of the references in the dataset.
        ROWS: whether the references are whole rows of the dataset.
        ANSWERS: whether the references are answers, which must not contain a missing value.
        STRINGS: whether the references are always strings, so that "42" is a text and not JSON.
        PREDICTION: the field in which the scorer expects a prediction.
        MISSING: the fields that the scorer gets for a missing prediction.
        SAMPLES: whether a prediction can be a list of replies. It is missing if all of them are.
        BOUNDED: whether all scores are fractions, so that values outside [0, 1] are an error.
        UNOFFICIAL: why its scores are never official.
        PER_QUESTION: the key of the result for the list of entries of all questions.

    The other attributes are functions, of which most metrics need few:

        ROW: maps a reference to the row that the scorer reads.
        FIELDS: maps a prediction to the fields that the scorer reads.
        ITEMS: maps references and predictions to items, if a reference has several of them. An
            item's row must have the ``POSITION`` of its reference.
        SCORER: maps groups and options to the scorer, if it is not the benchmark's.
        CHECK: raises InputError for predictions that have the wrong form as a whole.
        SIGNED: maps references and predictions to the data whose digest the signature has. None
            means the references.
        COUNTS: maps outcomes to further keys of the result, which each group of ``BY`` has as well.
        TOTALS: maps scorer, items and outcomes to further keys of the result.
        QUESTION: maps an item and its outcome to the entry for its question. With ``ITEMS``, an
            entry is a list, and the lists of a question's items are joined.
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
        """Return the scorer's name for each option of ``compute`` that the scorer takes."""
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
        name: the name of the metric.
        predictions: the predictions as they were passed to ``compute``, with ``UNANSWERED`` for
            None.
        references: the references.
        per_question: whether the result has an entry for each question.
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
        # A scorer may report a missing prediction as unusable, but that is not the user's error.
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
    # Functions such as ``TOTALS`` may add deviations that no field of the signature shows.
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
    # Some metrics were not published by the benchmark's authors, so no field makes them official.
    unofficial = [declared.UNOFFICIAL] if declared.UNOFFICIAL else []
    result["signature"] = line
    result["deviations"] = [*unofficial, *differences, *more_deviations]
    return result


def _columns(
    declared: Mapping[str, str], options: Mapping[str, Any], predictions: Sequence[Any]
) -> dict[str, list[Any]]:
    """Return the options that have a value per question, by column of the dataset."""
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
    # Other options, such as those in ``COLUMNS``, are not for the scorer.
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
    """Return the items to score, with references as rows and predictions as fields."""
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
    """Return the entry of each question. By default, this is a dict of its scores by key."""
    if declared.QUESTION is None:
        keys = declared.KEYS
        if not keys:
            # Use the names of all scores that any question has, so that all entries have the same
            # keys.
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
    """Move each key "a.b" to the key "b" of a nested dict "a", if the metric declares KEYS."""
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
