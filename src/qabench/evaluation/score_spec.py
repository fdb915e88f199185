"""Scores as benchmarks declare them: functions of sums over records, with names and descriptions for display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb, nan
from typing import Any

from qabench.errors import InputError, unknown_name

CUTOFF = "@k"
MEAN = "mean"  # NAME.mean: the mean over all epochs, if the harness also reduced them in another way
Names = Sequence[str] | str | None
"""Names of scores and of their groups.

In a string, commas separate them. None selects by default.
"""


@dataclass(frozen=True, slots=True)
class ScoreSpec:
    """One score of a benchmark: how it is computed from records, and how it is presented.

    A score is the mean of one column of ``Record.scores``, or a function of the sums of several
    columns, such as F1 of summed counts. Means, intervals, groups and paired tests all follow from
    this.

    Attributes:
        name: such as "acc.loose". A name that ends in "@k" declares a score for every cutoff, such
            as "mrr@10".
        title: such as "Loose accuracy".
        about: what it measures, in one sentence.
        group: the key of its signature in ``Evaluation.signatures``.
        unit: what n counts, in the plural: "questions", "responses", "segments", "claims".
        columns: the required columns. () means one column with the name of the score.
        function: from one NumPy array per column, of sums, to an array of scores. None means the
            mean of the column.
        resampled: the same function for resamples and paired tests, if ``function`` is undefined
            where the score has a limit, such as an F1 that divides by a precision. None means
            ``function``.
        size: from the values of a record's columns to the number of units of the record. None means
            1.
        mean: the official function for the mean if its last digit depends on the order of
            additions. None means the default.
        undefined: when the score is undefined, for readers, such as "no segments are wrong".
        item: from the values of a record's columns to the score of the record. None means the first
            column.
        item_title: the name of the score of a record. "" means ``title``.
        reducer: from the first column of all samples of a question to the question's score, such
            as pass@k. None means that every sample counts.
        graded: whether a record's score of 1 means right, 0 wrong, and values between them partly
            right.
        partial: whether the official computation leaves out records without a value, such as
            answers without a claim that counts. Otherwise a record without a value is a deviation.
        readable: the name of the same score over readable replies only. This score counts the
            other replies as the official scorer does. "" means there is no such score.
        higher_is_better: the direction.
        official: whether the benchmark's authors report it. Other scores are additions of qabench.
        main: whether tables show it without ``--all-scores``.
    """

    name: str
    title: str
    about: str
    group: str
    unit: str = "questions"
    columns: tuple[str, ...] = ()
    function: Callable[..., Any] | None = None
    resampled: Callable[..., Any] | None = None
    size: Callable[..., float] | None = None
    mean: Callable[[Sequence[float]], float] | None = None
    undefined: str = "it would be a division by 0"
    item: Callable[..., float] | None = None
    item_title: str = ""
    reducer: Callable[[Sequence[float]], float] | None = None
    graded: bool = False
    partial: bool = False
    readable: str = ""
    higher_is_better: bool = True
    official: bool = True
    main: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the names of the columns it is computed from."""
        return self.columns or (self.name,)

    def at(self, cutoff: str) -> ScoreSpec:
        """Return the score of one cutoff: ``mrr@k`` at "10" is ``mrr@10``, also in its columns and title."""

        def put(text: str) -> str:
            return text.removesuffix(CUTOFF) + f"@{cutoff}" if text.endswith(CUTOFF) else text

        return replace(
            self, name=put(self.name), title=put(self.title), columns=tuple(map(put, self.columns))
        )


@dataclass(frozen=True, slots=True)
class Pass:
    """The estimate of pass@k or pass^k from the 0/1 scores of one question.

    Both are unbiased for n independent samples, c of them right: pass@k is 1 - C(n-c, k) / C(n, k)
    (Chen et al., Evaluating Large Language Models Trained on Code, 2021). Pass^k is C(c, k) /
    C(n, k) (Yao et al., tau-bench, 2024).

    Attributes:
        k: how many samples are drawn. With fewer samples, the estimate is NaN.
        all: whether all k must be right (pass^k). Otherwise at least one (pass@k).

    Examples:
        >>> Pass(2)([1, 0, 0]), Pass(2, all=True)([1, 1, 0])
        (0.6666666666666667, 0.3333333333333333)
    """

    k: int
    all: bool = False

    def __call__(self, values: Sequence[float]) -> float:
        if len(values) < self.k:
            return nan
        right = round(sum(values))
        equal = comb(right if self.all else len(values) - right, self.k) / comb(len(values), self.k)
        return equal if self.all else 1 - equal

    def of(self, spec: ScoreSpec) -> ScoreSpec:
        """Return this estimate for a score, such as "acc.strict.pass@2"."""
        name = f"pass{'^' if self.all else '@'}{self.k}"
        which = "all" if self.all else "at least one"
        is_named_mean = spec.name == f"{spec.group}.{MEAN}"
        stem = spec.group if is_named_mean else spec.name
        return replace(
            spec,
            name=f"{stem}.{name}",
            title=f"{stem if is_named_mean else spec.title}, {name}",
            about=f"Probability that {which} of {self.k} answers to a question would be right.",
            columns=spec.needs,
            mean=None,
            reducer=self,
            official=False,
        )


def pass_of(name: str) -> tuple[str, Pass | None]:
    """Return the name of the score and the ``Pass`` in a name such as "acc.strict.pass@2", or the name and None."""
    stem, _, last = name.rpartition(".")
    number = last[len("pass@") :]
    if last.startswith(("pass@", "pass^")) and number.isdigit():
        return stem, Pass(int(number), all=last.startswith("pass^"))
    return name, None


def mean_in_order(values: Sequence[float]) -> float:
    """Return the mean by Python's ``sum`` in the order of the values, unlike NumPy's, for ``ScoreSpec.mean``."""
    return sum(values) / len(values)


def present(specs: Sequence[ScoreSpec], columns: Sequence[str]) -> list[ScoreSpec]:
    """Return the scores that can be computed from these columns, in the order of ``specs``.

    "@k" for each cutoff.
    """
    computable: list[ScoreSpec] = []
    for spec in specs:
        candidates = [spec]
        if spec.name.endswith(CUTOFF):
            stem = spec.needs[0].removesuffix(CUTOFF) + "@"
            cutoffs = [name.removeprefix(stem) for name in columns if name.startswith(stem)]
            candidates = [spec.at(cutoff) for cutoff in cutoffs if cutoff.isdigit()]
        computable += [each for each in candidates if set(columns).issuperset(each.needs)]
    return computable


def split_names(names: Sequence[str] | str, whole: Sequence[str] = ()) -> list[str]:
    """Return the names in a list or in strings with commas.

    Names in ``whole`` contain commas.
    """
    texts = [names] if isinstance(names, str) else names
    split: list[str] = []
    for text in texts:
        split += [text] if text in whole else text.split(",")
    return [name.strip() for name in split if name.strip()]


def stems(names: Names) -> list[str] | None:
    """Return the names without pass@k and pass^k, such as "acc.strict" of "acc.strict.pass@2"."""
    if names is None:
        return None
    texts = [names] if isinstance(names, str) else names
    return [",".join(pass_of(name.strip())[0] for name in text.split(",")) for text in texts]


def select_scores(specs: Sequence[ScoreSpec], names: Names, title: str) -> list[ScoreSpec]:
    """Return the scores with these names, and the scores of the groups with these names.

    Every option and argument that selects scores uses this function. Tables show a score that is
    selected by its own name, as they show the main scores.

    Args:
        specs: all scores. Those for every cutoff can be named with one, such as "mrr@10".
        names: the names. None selects all.
        title: what has the scores, for the error.

    Raises:
        InputError: an unknown name. The error lists the scores and the groups. Or no name at all.
    """
    if names is None:
        return list(specs)
    scores = [spec.name for spec in specs]
    groups = [group for group in dict.fromkeys(spec.group for spec in specs) if group not in scores]
    listed = f"scores {', '.join(scores) or 'none'}"
    if groups:
        listed += f"; groups {', '.join(groups)}"
    chosen = split_names(names, scores)
    if not chosen:
        raise InputError(f"no scores are selected; allowed: {listed}")
    selected: dict[str, ScoreSpec] = {}
    for name in chosen:
        stem, _, cutoff = name.partition("@")
        scored, of_samples = pass_of(name)
        matching = [spec for spec in specs if name in (spec.name, spec.group)]
        if not matching and cutoff.isdigit():
            matching = [spec.at(cutoff) for spec in specs if spec.name == stem + CUTOFF]
        if not matching and of_samples:
            single = [spec for spec in specs if scored in (spec.name, spec.group)]
            matching = [of_samples.of(spec) for spec in single if not spec.reducer]
        if not matching:
            raise unknown_name(f"{title} has no score", name, [*scores, *groups], listed)
        for spec in matching:
            selected[spec.name] = replace(spec, main=spec.main or spec.name in chosen)
    return list(selected.values())
