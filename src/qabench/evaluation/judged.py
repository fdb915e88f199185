"""Items that a model judged, and the scores from its verdicts, corrected by human labels.

A benchmark says which of its scores are verdicts of a model (``Benchmark.judging``). People label a
random part of the same items. The corrected values estimate the scores that people's labels of all
items would give, and are never official.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, combinations
from math import isfinite
from typing import Any

from qabench.data.rows import Json, grouped
from qabench.errors import InputError, some
from qabench.io.tables import Table
from qabench.stats.prediction_powered import Corrected, corrected_difference, corrected_mean

# The source of labels that are in the dataset, not in a file.
DATASET = "dataset"
ABOUT = (
    "corrected: what people would say of all items, estimated from their labels of a part (PPI++, 95% intervals). "
    "Corrected values are never official"
)
# With fewer labels, the intervals may be too narrow or too wide: they were tested in simulations with
# 50 labels or more.
FEW_LABELS = 30
# The number of characters of an answer that are compared. Spreadsheets cut cells at 32,767.
MAX_COMPARED = 30_000
COLUMNS = ("score", "judge", "corrected", "95% interval", "labels", "worth", "n")


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """One verdict of a model: on an answer, or on a part of an answer.

    Attributes:
        id: the question's id, or an id with the number of the part, such as "ID/2", if an answer
            has several parts.
        question_id: the question's id. Items of one question are not independent.
        verdict: a number from 0 to 1, such as 1 for right.
        label: what people in the dataset said of the item, on the same scale. None if unknown.
        text: what was judged.
        question: the text of the question.
        reference: the reference answer, or "".
        groups: grouping -> the groups that the question is in.
        length: the number of characters in the whole answer.
        readable: whether the model's reply states the verdict. If it does not, ``verdict`` is what
            the official scorer reads in it.
        answered: whether there is an answer. People need not label an item without an answer.
        cluster: what several questions have in common (``--cluster``), or None.
    """

    id: str
    question_id: str
    verdict: float
    label: float | None = None
    text: str = ""
    question: str = ""
    reference: str = ""
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    length: int = 0
    readable: bool = True
    answered: bool = True
    cluster: str | None = None

    @property
    def independent_unit(self) -> str:
        """Return the name of the unit that is independent of others: the question, or its cluster."""
        if self.cluster is None:
            return f"question {self.question_id}"
        return f"cluster {self.cluster}"


@dataclass(frozen=True, slots=True)
class JudgedScore:
    """A score that is the mean verdict of a model.

    Attributes:
        name: the score's name, such as "gpt".
        title: the name for readers.
        positive: what a verdict of 1 says, such as "right".
        unit: what the items are, in the plural.
        items: one per verdict.
    """

    name: str
    title: str
    positive: str
    unit: str
    items: Sequence[JudgedItem]


@dataclass(frozen=True, slots=True)
class Label:
    """A person's label of an item.

    Attributes:
        value: a number from 0 to 1.
        weight: the number of items that the label stands for, if the labeled part was drawn
            unevenly.
        answer: the text that the person labeled, or "" if it is not known.
    """

    value: float
    weight: float = 1.0
    answer: str = ""

    def is_of(self, item: JudgedItem) -> bool:
        """Tell whether the person labeled this item's text, or one of the two texts is unknown."""
        if not self.answer or not item.text:
            return True
        return _compared(self.answer) == _compared(item.text)


def _compared(text: str) -> str:
    """Return a text without what spreadsheets change: line breaks, apostrophes, the end of long cells."""
    return " ".join(text.removeprefix("'").split())[:MAX_COMPARED]


@dataclass(frozen=True, slots=True)
class Labels:
    """Human labels by item.

    Attributes:
        source: where the labels come from, for messages: a file, "dataset", or a phrase.
        by_item: (item id, system) -> label. The system is "" if the labels are for any system.
        of_dataset: whether the labels are from the dataset. Then the item ids begin with the name
            of the score.
    """

    source: str
    by_item: Mapping[tuple[str, str], Label]
    of_dataset: bool = False

    def of_score(self, score: JudgedScore, item: JudgedItem, system: str) -> Label | None:
        """Return the label for a score of a system's item, or None.

        A label may be for one score, or for all scores of the item. The label for this score takes
        precedence.
        """
        # A label for any system is used if there is none for this system.
        for key in (_key(score, item), item.id):
            label = self.by_item.get((key, system)) or self.by_item.get((key, ""))
            if label is not None:
                return label
        return None


@dataclass(frozen=True, slots=True)
class Correction:
    """A judge's score with its corrected value.

    Attributes:
        score: what was judged.
        labels: the label of each item, or None.
        result: the corrected mean.
        source: where the labels come from.
    """

    score: JudgedScore
    labels: Sequence[Label | None]
    result: Corrected
    source: str

    def as_dict(self) -> Json:
        """Return the correction as JSON data."""
        numbers = asdict(self.result)
        interval = numbers.pop("interval")
        return {
            "title": self.score.title,
            "unit": self.score.unit,
            "judge": numbers.pop("verdicts"),
            "corrected": interval["mean"],
            "low": interval["low"],
            "high": interval["high"],
            "standard_error": interval["standard_error"],
            "labels_mean": numbers.pop("labels"),
            **numbers,
            "source": self.source,
            "official": False,
        }


@dataclass(frozen=True, slots=True)
class CorrectedPair:
    """Two systems' corrected difference, the first minus the second, on one judged score."""

    first: str
    second: str
    score: str
    result: Corrected

    def as_dict(self) -> Json:
        """Return the pair as JSON data."""
        interval = self.result.interval
        return {
            "first": self.first,
            "second": self.second,
            "score": self.score,
            "judge": self.result.verdicts,
            "corrected": interval.mean,
            "low": interval.low,
            "high": interval.high,
            "standard_error": interval.standard_error,
            "labeled": self.result.labeled,
            "n": self.result.n,
            "official": False,
        }


def dataset_labels(scores: Iterable[JudgedScore]) -> Labels:
    """Return the labels that the dataset itself has."""
    labels = {}
    for score in scores:
        for item in score.items:
            if item.label is not None:
                labels[_key(score, item), ""] = Label(item.label)
    return Labels(DATASET, labels, of_dataset=True)


def _key(score: JudgedScore, item: JudgedItem) -> str:
    """Return the key of an item's label for one score. Each score can have another label."""
    return f"{score.name}:{item.id}"


def corrected(
    scores: Sequence[JudgedScore], labels: Labels, system: str
) -> tuple[list[Correction], list[str]]:
    """Return the corrected scores of one system, and sentences about labels that were not used.

    Raises:
        InputError: no label is for an item of these scores, or too few labels are, or a label is not
            a number from 0 to 1.
    """
    corrections = []
    other_answers: list[str] = []
    for score in scores:
        item_labels, of_other_answers = _item_labels(score, labels, system)
        other_answers += of_other_answers
        if not any(item_labels):
            # People need not label every score.
            continue
        result = corrected_mean(
            _verdicts(score),
            _values(item_labels),
            clusters=_clusters(score),
            weights=_weights(item_labels),
        )
        corrections.append(Correction(score, item_labels, result, labels.source))
    notes = []
    if other_answers:
        ids = list(dict.fromkeys(other_answers))
        notes.append(
            f"{labels.source}: labels that are not used, because their column answer differs from the answer of "
            f"{system}: {len(ids)} ({some(ids)})"
        )
    if not corrections:
        raise InputError(next(iter(notes), _why_unused(scores, labels, system)))
    unknown = _ids_without_item(scores, labels, system)
    # The ids in a file may be misspelled.
    if unknown and not labels.of_dataset:
        notes.append(f"{labels.source}: labels of unknown items: {len(unknown)} ({some(unknown)})")
    for correction in corrections:
        n_labels = correction.result.labeled
        if n_labels < FEW_LABELS:
            notes.append(
                f"{correction.score.name}: only {n_labels} labels; "
                "the intervals were tested in simulations with 50 or more"
            )
    return corrections, notes


def _item_labels(
    score: JudgedScore, labels: Labels, system: str
) -> tuple[list[Label | None], list[str]]:
    """Return the label of each item, and the ids of items whose label is for another answer.

    Raises:
        InputError: a label is not a number from 0 to 1.
    """
    item_labels = []
    other_answers = []
    for item in score.items:
        label = labels.of_score(score, item, system)
        if label is not None and not label.is_of(item):
            # The system was probably run again after the labeling, and gave another answer.
            other_answers.append(item.id)
            label = None
        if label is not None and not 0 <= label.value <= 1:
            raise InputError(
                f"{labels.source}: the label of {item.id!r} is {label.value:g}; allowed: 0 to 1, as the verdicts"
            )
        item_labels.append(label)
    return item_labels, other_answers


def _ids_without_item(scores: Sequence[JudgedScore], labels: Labels, system: str) -> list[str]:
    """Return the ids of the labels that belong to no item, among labels for this or any system."""
    item_ids: set[str] = set()
    for score in scores:
        for item in score.items:
            item_ids |= {item.id, _key(score, item)}
    unknown = []
    for id, labeled_system in labels.by_item:
        # A file may have labels for other systems, too.
        if labeled_system in ("", system) and id not in item_ids:
            unknown.append(id)
    return unknown


def _why_unused(scores: Sequence[JudgedScore], labels: Labels, system: str) -> str:
    """Return why no label could be used: the dataset has none, or systems or ids differ."""
    if labels.of_dataset:
        return (
            "the dataset has no labels of people for what was judged here; "
            "give a file with the columns id and label: --human labels.csv"
        )
    if not scores:
        return "there is no score to correct: no score here is a mean of verdicts from 0 to 1"
    # A dict as an ordered set.
    systems: dict[str, None] = {}
    label_ids: list[str] = []
    for id, labeled_system in labels.by_item:
        systems[labeled_system] = None
        # The system is "" if a label is for any system.
        if labeled_system in ("", system):
            label_ids.append(id)
    if system not in systems and "" not in systems:
        return f"{labels.source} has labels of the systems {some(systems)}, and none of {system}"
    item_ids: list[str] = []
    for score in scores:
        item_ids += [item.id for item in score.items]
    return (
        f"none of the {len(label_ids)} labels of {labels.source} is of an item that was judged; their ids are "
        f"{some(label_ids)}, those of the items are {some(item_ids)}. `qabench sample` writes a file with the right ids"
    )


def _verdicts(score: JudgedScore) -> list[float]:
    return [item.verdict for item in score.items]


def _clusters(score: JudgedScore) -> list[str]:
    return [item.independent_unit for item in score.items]


def _values(labels: Sequence[Label | None]) -> list[float | None]:
    return [None if label is None else label.value for label in labels]


def _weights(labels: Sequence[Label | None]) -> list[float] | None:
    # Items without a label get the weight 1, which is not used. If all weights are 1, none are needed.
    weights = []
    for label in labels:
        weights.append(1.0 if label is None else label.weight)
    if set(weights) == {1.0}:
        return None
    return weights


def corrected_pairs(
    corrections: Mapping[str, Sequence[Correction]],
) -> list[CorrectedPair]:
    """Return the corrected difference of each pair of systems on each score that both have."""
    pairs = []
    for first, second in combinations(corrections, 2):
        of_second = {correction.score.name: correction for correction in corrections[second]}
        for correction in corrections[first]:
            score = correction.score
            if score.name not in of_second:
                continue
            second_correction = of_second[score.name]
            result = corrected_difference(
                _verdicts(score),
                _values(correction.labels),
                _verdicts(second_correction.score),
                _values(second_correction.labels),
                clusters=_clusters(score),
                second_clusters=_clusters(second_correction.score),
                first_weights=_weights(correction.labels),
                second_weights=_weights(second_correction.labels),
            )
            pairs.append(CorrectedPair(first, second, score.name, result))
    return pairs


def correction_table(corrections: Mapping[str, Sequence[Correction]]) -> Table:
    """Return a table of corrected scores. ``corrections`` has them by the system's label."""
    columns = list(COLUMNS)
    several = len(corrections) > 1
    if several:
        columns.insert(1, "system")
    rows_by_score: dict[str, list[list[Any]]] = {}
    # A dict as an ordered set.
    sources: dict[str, None] = {}
    for label, of_system in corrections.items():
        for correction in of_system:
            sources[correction.source] = None
            cells = _cells(correction)
            if several:
                cells.insert(1, label)
            rows_by_score.setdefault(correction.score.name, []).append(cells)
    # The rows of a score are next to each other.
    rows = list(chain.from_iterable(rows_by_score.values()))
    worth = "worth: the number of labels that would give an interval as narrow without the judge"
    notes = [f"labels: {', '.join(sources)}", ABOUT, worth]
    return Table("Corrected by labels of people", columns, rows, notes)


def _cells(correction: Correction) -> list[Any]:
    """Return the row of a correction in a table with ``COLUMNS``."""
    result = correction.result
    worth = ""
    if result.effective is not None and isfinite(result.effective):
        worth = f"{result.effective:.0f}"
    return [
        correction.score.name,
        f"{result.verdicts:.4f}",
        f"{result.interval.mean:.4f}",
        result.interval.bounds(),
        result.labeled,
        worth,
        f"{result.n:,} {correction.score.unit}",
    ]


def pair_table(pairs: Sequence[CorrectedPair]) -> Table:
    """Return corrected differences as a table."""
    rows: list[list[Any]] = []
    for pair in pairs:
        interval = pair.result.interval
        rows.append(
            [
                f"{pair.first} - {pair.second}",
                pair.score,
                f"{pair.result.verdicts:+.4f}",
                f"{interval.mean:+.4f}",
                interval.bounds("+.4f"),
                pair.result.labeled,
                pair.result.n,
            ]
        )
    columns = ["pair", "score", "judge", "corrected", "95% interval", "labels", "n"]
    return Table("Differences corrected by labels of people", columns, rows, [ABOUT])


def part_of(labels: Labels, count: int, seed: int) -> Labels:
    """Return a random part of labels: ``count`` items of each judged score."""
    import numpy as np

    # The ids of the dataset's labels begin with the name of the score.
    by_score = grouped((key[0].partition(":")[0], key) for key in labels.by_item)
    rng = np.random.default_rng(seed)
    chosen = {}
    for keys in by_score.values():
        if count > len(keys):
            raise InputError(f"{count} labels were requested; the dataset has {len(keys)}")
        # The labels keep the order of the dataset.
        for position in sorted(rng.choice(len(keys), count, replace=False).tolist()):
            key = keys[position]
            chosen[key] = labels.by_item[key]
    return replace(labels, source=f"{count} labels of the dataset", by_item=chosen)
