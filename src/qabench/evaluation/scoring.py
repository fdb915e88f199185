"""How every benchmark is scored: a scorer maps items to outcomes.

Files of predictions, runs, ``evaluate`` metrics and lm-evaluation-harness all use the same scorer,
through the adapters in ``qabench.adapters``.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from numbers import Real
from typing import Any, Protocol

from qabench.data.rows import Row
from qabench.errors import InputError, QabenchError
from qabench.evaluation.records import ANSWERED, EMPTY, MISSING, STATUSES, Record
from qabench.evaluation.signature import signature

Progress = Callable[[int, int], None]
"""Called with the number of units processed so far, and the number of all units."""
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
        unique_id: an id that is unique in all splits and configs, if ``id`` is not.
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
        are_lines: whether the questions are the lines of a file of predictions. Then lines with the
            same id are samples, and none replaces an earlier one.
    """

    config: str
    data: str
    rows: Sequence[Question]
    split: str | None = None
    are_lines: bool = False

    @property
    def fields(self) -> dict[str, object]:
        """Return the fields of signatures that identify the data."""
        if self.split is None:
            return {"config": self.config, "data": self.data}
        return {"config": self.config, "split": self.split, "data": self.data}


@dataclass(frozen=True, slots=True)
class Item:
    """A row of the dataset with the fields of its prediction, or None if there is none."""

    row: Row
    fields: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one item.

    Attributes:
        scores: the numbers that the scores are computed from (``ScoreSpec.columns``), by name.
        detail: details of the scoring for the report. See ``Record.detail``.
        problem: a problem with the prediction, or None.
        status: "answered", "empty" or "missing". For a run, the log has the status instead.
        statuses: group of scores -> "empty" or "missing", for the groups that the prediction has
            nothing for, although it has something for another one. ``outcomes_of`` fills it in.
        answer: the text that was scored, or None if there is none.
        texts: all texts of the prediction, if they are not only the answer, such as several sampled
            replies.
        usable: whether the prediction's fields have the types that the benchmark reads.
        explanation: why the item has its scores, such as a judge's reply, or why it has none.
        usage: the calls, tokens and cost of a judge.
        result: the benchmark's object from which the scores were computed. Metrics read it for
            their results. It is not recorded.
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
    result: Any = None


class Scorer:
    """A scorer of predictions for one benchmark. It is built once, with its models and options.

    A subclass defines ``outcome``, or ``score`` if its judge or normalizer needs many items at
    once.

    Attributes:
        fields: group of scores -> the fields of its signature that the scorer knows.
        notes: sentences about the scoring so far, such as the calls of a judge and their cost.
        problems: sentences about problems of the predictions as a whole.
        needs: group of scores -> what predictions and data must have for it, in words. If the
            scorer cannot compute such a group, ``signatures`` does not have it, and asking for the
            group by name is an error.
        reads: group of scores -> the fields of a prediction that the scores are computed from. A
            prediction without any of them has no answer for this group. Groups that are not listed
            have the status of the question.
        empty_lists: fields of which an empty list is an answer, such as the pages of a search that
            found none.
        concurrency: the maximum number of items that a run scores at once.
    """

    fields: Mapping[str, Mapping[str, object]] = {}
    notes: Sequence[str] = ()
    problems: Sequence[str] = ()
    needs: Mapping[str, str] = {}
    reads: Mapping[str, Sequence[str]] = {}
    empty_lists: Sequence[str] = ()
    concurrency: int = 16

    def outcome(self, item: Item) -> Outcome:
        """Return the outcome of one item. If the item cannot be scored, the outcome has a problem."""
        raise NotImplementedError

    def score(self, items: Sequence[Item], progress: Progress | None = None) -> list[Outcome]:
        """Return one outcome per item. See ``outcome``."""
        return [self.outcome(item) for item in items]

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return one signature per group of scores.

        Args:
            items: the items to score. Empty if the signatures are needed before there are any, as
                for lm-evaluation-harness.
            about: the benchmark, the data, and how a model was asked, in this order.
        """
        signatures = {}
        for group, fields in self.fields.items():
            signatures[group] = signature(f"{about['benchmark']}_{group}", **about, **fields)
        return signatures

    def metric_fields(self, group: str, items: Sequence[Item]) -> Mapping[str, object]:
        """Return the fields of a metric's signature, which has no config and no model."""
        return self.fields[group]


def outcomes_of(
    scorer: Scorer,
    items: Sequence[Item],
    benchmark: str,
    ids: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Return a scorer's outcome of each item. All adapters call scorers through this function.

    Scorers of other packages may raise or return anything. An exception or an invalid result becomes
    an InputError that names the benchmark, the question and the value.

    Args:
        scorer: the scorer.
        items: the items to score.
        benchmark: the name of the benchmark, for errors.
        ids: the ids of the questions, for errors. By default, their positions from 1.
        progress: see ``Scorer.score``.

    Raises:
        InputError: a scorer of another package raised an exception that is not qabench's, or a
            scorer did not return one ``Outcome`` per item with numbers as scores.
    """
    if ids is None:
        ids = [str(number) for number in range(1, len(items) + 1)]
    if type(scorer).score is Scorer.score:
        # One call for each item, so that an error can name the question.
        outcomes = []
        for item, id in zip(items, ids, strict=True):
            with _naming_place(scorer, benchmark, id):
                outcomes.append(scorer.outcome(item))
    else:
        questions = ids[0] if len(ids) == 1 else f"{len(ids)} questions"
        with _naming_place(scorer, benchmark, questions):
            outcomes = scorer.score(items, progress)
    # Everything that a scorer of another package returns is checked once, here.
    if not isinstance(outcomes, list) or len(outcomes) != len(items):
        returned = f"{outcomes!r:.60}"
        if isinstance(outcomes, list):
            returned = f"{len(outcomes)} outcomes"
        raise InputError(
            f"{benchmark}: its scorer returned {returned} for {len(items)} questions; "
            "allowed: a list with one outcome each"
        )
    checked = []
    for item, outcome, id in zip(items, outcomes, ids, strict=True):
        outcome = _checked(outcome, f"{benchmark}: its scorer returned for the question {id!r}")
        checked.append(_with_statuses(outcome, item.fields or {}, scorer))
    return checked


def _with_statuses(outcome: Outcome, fields: Mapping[str, Any], scorer: Scorer) -> Outcome:
    """Set the status of groups that a prediction has nothing for, or of the outcome for all groups."""
    if outcome.status != ANSWERED:
        return outcome
    reads = scorer.reads
    statuses = {}
    for group, names in reads.items():
        present = [name for name in names if fields.get(name) is not None]
        empty = [name for name in present if _is_empty(fields[name])]
        if not present:
            statuses[group] = MISSING
        elif len(empty) == len(present) and not set(empty).intersection(scorer.empty_lists):
            statuses[group] = EMPTY
    if not statuses:
        return outcome
    if len(statuses) < len(reads):
        return replace(outcome, statuses=statuses)
    # The prediction has nothing for any group. An empty answer says more than a missing one.
    if EMPTY in statuses.values():
        return replace(outcome, status=EMPTY)
    lacking = ", ".join(map(repr, dict.fromkeys(chain.from_iterable(reads.values()))))
    problem = outcome.problem or f"the prediction has no {lacking}"
    return replace(outcome, status=MISSING, problem=problem)


def _is_empty(value: object) -> bool:
    """Tell whether a text or a container has nothing in it. The number 0 is an answer."""
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, list | tuple | dict) and not value


@contextmanager
def _naming_place(scorer: Scorer, benchmark: str, questions: str) -> Iterator[None]:
    """Turn an exception in a scorer of another package into an InputError that names its place."""
    try:
        yield
    except QabenchError:
        raise
    except Exception as error:
        # A scorer of another package may raise anything.
        if type(scorer).__module__.startswith("qabench."):
            # A bug in this package, or a full disk: the traceback says more than one line could.
            raise
        # The last frame is where the exception was raised.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"{benchmark}: its scorer raised {type(error).__name__}: {error} for the question {questions!r} "
            f"({frame.filename}, line {frame.lineno})"
        ) from error


def _checked(outcome: Any, what: str) -> Outcome:
    """Return a scorer's outcome if it is valid, with numbers as scores.

    Raises:
        InputError: the outcome is not valid. The message begins with ``what``.
    """
    if not isinstance(outcome, Outcome):
        raise InputError(f"{what} {outcome!r:.60}; allowed: an Outcome")
    for attribute in ("scores", "detail"):
        if not isinstance(value := getattr(outcome, attribute), Mapping):
            raise InputError(f"{what} the {attribute} {value!r:.60}; allowed: a dictionary")
    if outcome.status not in STATUSES:
        raise InputError(
            f"{what} the status {outcome.status!r:.60}; allowed: {', '.join(STATUSES)}"
        )
    # A scorer of another package may ignore the declared types.
    scores: Mapping[Any, Any] = outcome.scores
    for name, value in scores.items():
        if not isinstance(name, str) or not _is_number(value):
            shown = f"{value!r:.60}"
            if isinstance(value, int) and not _is_number(value):
                # Python refuses to print integers of thousands of digits.
                shown = "an integer of too many digits"
            allowed = "a number, or nan if undefined"
            if not isinstance(name, str):
                allowed = f"a string as name, and {allowed}"
            raise InputError(f"{what} the score {name!r:.60}: {shown}; allowed: {allowed}")
    for name in ("answer", "problem", "explanation"):
        value = getattr(outcome, name)
        if not isinstance(value, str | None):
            raise InputError(f"{what} the {name} {value!r:.60}; allowed: a string or None")
    return outcome


def _is_number(value: object) -> bool:
    """Tell whether a value is a real number that a float can represent."""
    if type(value) is float:
        # Nearly all scores are floats, and asking the abstract class takes much longer.
        return True
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
        """Return the generation options, such as {"temperature": 0}."""

    @property
    def scoring(self) -> Mapping[str, Any]:
        """Return the options of the scorer for the answers."""

    def messages(self, row: Row) -> Messages:
        """Return the first messages for a row of the dataset."""

    def fields(self) -> Mapping[str, object]:
        """Return the fields of signatures for the prompt and the protocol."""


def records_of(outcomes: Sequence[Outcome]) -> list[Record]:
    """Return outcomes as records, from which scores are computed."""
    records = []
    for position, outcome in enumerate(outcomes):
        record = Record(str(position), 1, "", "", (), None, outcome.status, scores=outcome.scores)
        records.append(record)
    return records
