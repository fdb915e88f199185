"""How every benchmark is scored: a scorer maps items to outcomes.

Files of predictions, runs, ``evaluate`` metrics and lm-evaluation-harness all use the same scorer,
through the adapters in ``qabench.adapters``.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, Protocol

from qabench.data.rows import Row
from qabench.errors import InputError, QabenchError
from qabench.evaluation.records import ANSWERED, EMPTY, MISSING, STATUSES
from qabench.evaluation.signature import signature

Progress = Callable[[int, int], None]
"""Called with the number of units processed, and of all units."""
Messages = tuple[tuple[str, str], ...]
"""The (role, text) pairs of a prompt."""


@dataclass(frozen=True, slots=True)
class Question:
    """A row of a dataset, with the texts that records, logs and reports show.

    Attributes:
        id: the benchmark's id of the question.
        text: the question.
        reference: the reference answer, or "" if there is none.
        groups: grouping -> the groups that the question is in, such as {"category": ["History"]}.
        row: the row of the dataset.
        unique_id: an id that no other split or config has for another question, if ``id`` is not
            such an id.
    """

    id: str
    text: str
    reference: str
    groups: Mapping[str, Sequence[str]]
    row: Row
    unique_id: str | None = None


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a config, or of a custom file.

    Attributes:
        config: the name of the config.
        data: the digest of the file, for signatures.
        rows: the questions, in the order of the dataset.
        split: the name of the split, if the config has several.
        are_lines: whether the questions are the lines of a file of predictions. Then no line replaces
            an earlier one with the same id: they are samples.
    """

    config: str
    data: str
    rows: Sequence[Question]
    split: str | None = None
    are_lines: bool = False

    @property
    def fields(self) -> dict[str, object]:
        """Return the fields of signatures for the data."""
        split = {} if self.split is None else {"split": self.split}
        return {"config": self.config, **split, "data": self.data}


@dataclass(frozen=True, slots=True)
class Item:
    """What a scorer scores: a row of the dataset, and the fields of one prediction (None: there is no prediction)."""

    row: Row
    fields: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one item.

    Attributes:
        scores: the numbers that the scores are computed from (``ScoreSpec.columns``), by name.
        detail: details of the scoring for the report. See ``Record.detail``.
        problem: a problem with the prediction, or None.
        status: "answered", "empty" or "missing". A run knows better, so its log decides there.
        statuses: group of scores -> "empty" or "missing", for the groups that the prediction has nothing for,
            although it has something for another one. ``outcomes_of`` fills it in.
        answer: the text that was scored, or None if there is none.
        texts: all texts of the prediction, if they are not only the answer, such as several sampled
            replies.
        usable: whether the prediction's fields have the types that the benchmark reads.
        explanation: why the item has its scores, such as a judge's reply, or why it has none.
        usage: the calls, tokens and cost of a judge.
    """

    scores: Mapping[str, float]
    detail: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None
    status: str = ANSWERED
    statuses: Mapping[str, str] = field(default_factory=dict)
    answer: str | None = None
    texts: Sequence[str] | None = None
    usable: bool = True
    explanation: str | None = None
    usage: Mapping[str, Any] | None = None


class Scorer:
    """Scores predictions for one benchmark. It is built once, with its models and options.

    A subclass defines ``outcome``, or ``score`` if its judge or normalizer needs many items at
    once.

    Attributes:
        fields: group of scores -> the fields of its signature that the scorer knows.
        notes: sentences about the scoring so far, such as the calls of a judge and their cost.
        problems: sentences about problems of the predictions as a whole.
        needs: group of scores -> what predictions and data need for it. A group that is named here
            and that was asked for by name must be in ``signatures``.
        reads: group of scores -> the fields of a prediction that the scores are computed from. A prediction
            without any of them has no answer for this group. Groups that are not here have the status of the
            question.
        concurrency: the maximum number of items that a run scores at once.
    """

    fields: Mapping[str, Mapping[str, object]] = {}
    notes: Sequence[str] = ()
    problems: Sequence[str] = ()
    needs: Mapping[str, str] = {}
    reads: Mapping[str, Sequence[str]] = {}
    concurrency: int = 16

    def outcome(self, item: Item) -> Outcome:
        """Return the outcome of one item.

        An item that cannot be scored has a problem. It does not raise.
        """
        raise NotImplementedError

    def score(self, items: Sequence[Item], progress: Progress | None = None) -> list[Outcome]:
        """Return one outcome per item.

        See ``outcome``.
        """
        return [self.outcome(item) for item in items]

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return one signature per group of scores.

        Args:
            items: what is scored. Lm-evaluation-harness asks before there are any.
            about: the benchmark, the data, and how a model was asked, in this order.
        """
        return {
            group: signature(f"{about['benchmark']}_{group}", **about, **fields)
            for group, fields in self.fields.items()
        }


def outcomes_of(
    scorer: Scorer,
    items: Sequence[Item],
    benchmark: str,
    ids: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Return a scorer's outcome of each item. All adapters call scorers through this function.

    Scorers of other packages may raise or return anything. It is one error, which names the benchmark,
    the question and the value.

    Args:
        scorer: the scorer.
        items: what is scored.
        benchmark: the name of the benchmark, for errors.
        ids: the ids of the questions, for errors. By default, their positions from 1.
        progress: see ``Scorer.score``.

    Raises:
        InputError: the scorer raised another exception than one of qabench's, or returned something else than one
            ``Outcome`` per item with numbers as scores.
    """
    names = list(ids) if ids is not None else [str(number) for number in range(1, len(items) + 1)]
    scores_singly = type(scorer).score is Scorer.score
    if not scores_singly:
        questions = names[0] if len(names) == 1 else f"{len(names)} questions"
        outcomes = _called(scorer, partial(scorer.score, items, progress), benchmark, questions)
    else:
        outcomes = []
        for item, name in zip(items, names, strict=True):
            outcomes.append(_called(scorer, partial(scorer.outcome, item), benchmark, name))
    if not isinstance(outcomes, list) or len(outcomes) != len(items):
        returned = f"{len(outcomes)} outcomes" if isinstance(outcomes, list) else f"{outcomes!r:.60}"
        raise InputError(
            f"{benchmark}: its scorer returned {returned} for {len(items)} questions; allowed: a list with one each"
        )
    checked = []
    for item, outcome, name in zip(items, outcomes, names, strict=True):
        outcome = _checked(outcome, f"{benchmark}: its scorer returned for the question {name!r}")
        checked.append(_with_statuses(outcome, item.fields or {}, scorer.reads))
    return checked


def _with_statuses(
    outcome: Outcome, fields: Mapping[str, Any], reads: Mapping[str, Sequence[str]]
) -> Outcome:
    """Return an answered outcome with the groups of scores that the prediction has nothing for.

    If it has nothing for all groups, it is not answered.
    """
    if outcome.status != ANSWERED:
        return outcome
    statuses = {}
    for group, names in reads.items():
        values = [fields[name] for name in names if fields.get(name) is not None]
        if not values:
            statuses[group] = MISSING
        elif all(_is_empty(value) for value in values):
            statuses[group] = EMPTY
    if not statuses or len(statuses) < len(reads):
        return replace(outcome, statuses=statuses) if statuses else outcome
    if EMPTY in statuses.values():
        return replace(outcome, status=EMPTY)
    lacking = ", ".join(dict.fromkeys(repr(name) for names in reads.values() for name in names))
    return replace(
        outcome, status=MISSING, problem=outcome.problem or f"the prediction has no {lacking}"
    )


def _is_empty(value: object) -> bool:
    """Tell whether a text or a container has nothing in it. The number 0 is an answer."""
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, list | tuple | dict) and not value


def _called(scorer: Scorer, method: Callable[[], Any], benchmark: str, questions: str) -> Any:
    """Call a method of a scorer. What a scorer of another package raises becomes an error with its place."""
    try:
        return method()
    except QabenchError:
        raise
    except Exception as error:  # a scorer of another package may raise anything
        if type(scorer).__module__.startswith("qabench."):
            raise  # a bug here, or a full disk: the traceback says more
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"{benchmark}: its scorer raised {type(error).__name__}: {error} for the question {questions!r} "
            f"({frame.filename}, line {frame.lineno})"
        ) from error


def _checked(outcome: Any, what: str) -> Outcome:
    """Return an outcome whose scores are numbers. Raises InputError that begins with ``what``."""
    if not isinstance(outcome, Outcome):
        raise InputError(f"{what} {outcome!r:.60}; allowed: an Outcome")
    for attribute in ("scores", "detail"):
        if not isinstance(value := getattr(outcome, attribute), Mapping):
            raise InputError(f"{what} the {attribute} {value!r:.60}; allowed: a dictionary")
    if outcome.status not in STATUSES:
        raise InputError(f"{what} the status {outcome.status!r:.60}; allowed: {', '.join(STATUSES)}")
    for name, value in outcome.scores.items():
        if not isinstance(name, str) or not _is_number(value):
            shown = f"{value!r:.60}" if not isinstance(value, int) else "an integer of too many digits"
            raise InputError(
                f"{what} the score {name!r:.60}: {shown}; allowed: a number, or nan if undefined"
            )
    for name in ("answer", "problem", "explanation"):
        value = getattr(outcome, name)
        if not isinstance(value, str | None):
            raise InputError(f"{what} the {name} {value!r:.60}; allowed: a string or None")
    return outcome


def _is_number(value: object) -> bool:
    """Tell whether a value is a real number that a float can represent."""
    if not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


class Asking(Protocol):
    """How a model is asked in one setting."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The generation options, such as {"temperature": 0}."""

    @property
    def scoring(self) -> Mapping[str, Any]:
        """The options of the scorer of its answers."""

    def messages(self, row: Row) -> Messages:
        """Return the first messages for a row of the dataset."""

    def fields(self) -> Mapping[str, object]:
        """Return the fields of signatures for the prompt and the protocol."""
