"""Scores as benchmarks declare them: how they are computed from records, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb, nan
from typing import Any

from qabench.errors import InputError, unknown_name

CUTOFF = "@k"
# The last part of a name such as "match.mean": the mean of a score whose epochs another harness
# also reduced in another way (see ``qabench.runs.epochs``).
MEAN = "mean"
Names = Sequence[str] | str | None
"""Names of scores and of groups: a list, a string with commas, or None for the default."""


@dataclass(frozen=True, slots=True)
class ScoreSpec:
    """One score of a benchmark: how it is computed from records, and how it is presented.

    A score is the mean of one column of ``Record.scores``, or a function of the sums of several
    columns, such as F1 of summed counts. Means, intervals, groups and paired tests all follow from
    this.

    Attributes:
        name: the score's name, such as "acc.loose". A name that ends in "@k" declares a score for
            every cutoff, such as "mrr@10".
        title: the name for readers, such as "Loose accuracy".
        about: what the score measures, in one sentence.
        group: the key of its signature in ``Evaluation.signatures``.
        unit: what n counts, in the plural: "questions", "responses", "segments", "claims".
        columns: the required columns. () means one column with the name of the score.
        function: maps one NumPy array of sums per column to an array of scores. None means the mean
            of the column.
        resampled: the function for resamples and paired tests, if ``function`` is undefined for
            some sums at which the score has a limit, such as an F1 that divides by a precision.
            None means ``function``.
        size: maps the values of a record's columns to the record's number of units. None means 1.
        mean: the official function for the mean if its last digit depends on the order of
            additions. None means the default.
        undefined: why the score can be undefined, in words for readers, such as "no segments are
            wrong".
        item: maps the values of a record's columns to the record's score. None means the first
            column.
        item_title: the name of the score of a record. "" means ``title``.
        reducer: maps the first column of all samples of a question to the question's score, such as
            pass@k. None means that every sample counts.
        graded: whether a record's score of 1 means right, 0 wrong, and values between them partly
            right.
        partial: whether the official computation leaves out records without a value, such as
            answers without a claim that counts. Otherwise a record without a value is a deviation.
        readable: the name of the same score over readable replies only, or "" if there is none. The
            score itself counts unreadable replies as the official scorer does.
        higher_is_better: whether a larger value is better.
        share: whether the score is a share of something, from 0 to 1. Other scores, such as numbers
            of facts, are never printed in percent.
        official: whether the benchmark's authors report the score. Other scores are additions of
            qabench.
        main: whether tables show the score without ``--all-scores``.
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
    share: bool = True
    official: bool = True
    main: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the names of the columns that the score is computed from."""
        return self.columns or (self.name,)

    def at(self, cutoff: str) -> ScoreSpec:
        """Return the score for one cutoff, such as ``mrr@10`` for ``mrr@k``."""

        def with_cutoff(text: str) -> str:
            if not text.endswith(CUTOFF):
                return text
            return text.removesuffix(CUTOFF) + f"@{cutoff}"

        return replace(
            self,
            name=with_cutoff(self.name),
            title=with_cutoff(self.title),
            columns=tuple(map(with_cutoff, self.columns)),
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
        n_right = round(sum(values))
        n_wrong = len(values) - n_right
        n_draws = comb(len(values), self.k)
        if self.all:
            return comb(n_right, self.k) / n_draws
        return 1 - comb(n_wrong, self.k) / n_draws

    def of(self, spec: ScoreSpec) -> ScoreSpec:
        """Return this estimate for a score, such as "acc.strict.pass@2"."""
        name, quantity = f"pass@{self.k}", "at least one"
        if self.all:
            name, quantity = f"pass^{self.k}", "all"
        stem, title = spec.name, spec.title
        if spec.name == f"{spec.group}.{MEAN}":
            # Pass@k is computed from the samples, not from their mean, so "mean" is not in its
            # name.
            stem = title = spec.group
        return replace(
            spec,
            name=f"{stem}.{name}",
            title=f"{title}, {name}",
            about=f"Probability that {quantity} of {self.k} answers to a question would be right.",
            columns=spec.needs,
            mean=None,
            reducer=self,
            official=False,
        )


def pass_of(name: str) -> tuple[str, Pass | None]:
    """Split a name such as "acc.strict.pass@2" into the score's name and the ``Pass``, or None."""
    stem, _, last = name.rpartition(".")
    number = last[len("pass@") :]
    if last.startswith(("pass@", "pass^")) and number.isdigit():
        return stem, Pass(int(number), all=last.startswith("pass^"))
    return name, None


def mean_in_order(values: Sequence[float]) -> float:
    """Return the mean by Python's ``sum``, for scores whose official mean adds in this order."""
    # NumPy adds in another order, which can change the last digit.
    return sum(values) / len(values)


def present(specs: Sequence[ScoreSpec], columns: Sequence[str]) -> list[ScoreSpec]:
    """Return the scores that can be computed from these columns, a score "@k" once per cutoff."""
    computable: list[ScoreSpec] = []
    for spec in specs:
        candidates = [spec]
        if spec.name.endswith(CUTOFF):
            # The first column determines the cutoffs. The other columns must have the same ones.
            stem = spec.needs[0].removesuffix(CUTOFF) + "@"
            candidates = []
            for column in columns:
                cutoff = column.removeprefix(stem)
                if column.startswith(stem) and cutoff.isdigit():
                    candidates.append(spec.at(cutoff))
        for candidate in candidates:
            if set(columns).issuperset(candidate.needs):
                computable.append(candidate)
    return computable


def split_names(names: Sequence[str] | str, whole: Sequence[str] = ()) -> list[str]:
    """Return the names in a list or in strings with commas. Names in ``whole`` are not split."""
    texts = [names] if isinstance(names, str) else names
    names_in_order: list[str] = []
    for text in texts:
        parts = text.split(",")
        if text in whole:
            # A harness names a score and its filter, such as "exact_match,strict-match".
            parts = [text]
        # Strings may end with a comma, and options have spaces after commas.
        names_in_order += filter(None, map(str.strip, parts))
    return names_in_order


def stems(names: Names) -> list[str] | None:
    """Return the names without pass@k and pass^k, such as "acc.strict" for "acc.strict.pass@2"."""
    if names is None:
        return None
    texts = [names] if isinstance(names, str) else names
    all_stems = []
    for text in texts:
        stems_of_text = []
        for name in text.split(","):
            stem, _ = pass_of(name.strip())
            stems_of_text.append(stem)
        # The names of a text stay together, because a harness's name of a score can contain a comma.
        all_stems.append(",".join(stems_of_text))
    return all_stems


def without_readable(specs: Sequence[ScoreSpec]) -> list[ScoreSpec]:
    """Return the scores except those over readable replies only (see ``ScoreSpec.readable``)."""
    over_readable = {spec.readable for spec in specs}
    return [spec for spec in specs if spec.name not in over_readable]


def select_scores(specs: Sequence[ScoreSpec], names: Names, title: str) -> list[ScoreSpec]:
    """Return the scores with these names, and the scores of the groups with these names.

    Every option and argument that selects scores uses this function. A score that is selected by
    its own name becomes a main score, so that tables show it.

    Args:
        specs: all scores. A score "@k" is selected with a cutoff, such as "mrr@10".
        names: names of scores and of groups. None selects all scores.
        title: what has the scores, such as "one of the logs", for the error.

    Raises:
        InputError: an unknown name, or no name at all. The error lists the scores and the groups,
            except scores over readable replies only, which are not reported as results.
    """
    if names is None:
        return list(specs)
    listed_specs = without_readable(specs)
    scores = [spec.name for spec in listed_specs]
    groups = list(dict.fromkeys(spec.group for spec in listed_specs))
    # In logs of other tasks, a score has the name of its group.
    groups = [group for group in groups if group not in scores]
    listed = f"scores {', '.join(scores) or 'none'}"
    if groups:
        listed += f"; groups {', '.join(groups)}"
    chosen = split_names(names, [spec.name for spec in specs])
    if not chosen:
        raise InputError(f"no scores are selected; allowed: {listed}")
    selected: dict[str, ScoreSpec] = {}
    for name in chosen:
        matching = _matching(specs, name)
        if not matching:
            raise unknown_name(f"{title} has no score", name, [*scores, *groups], listed)
        for spec in matching:
            selected[spec.name] = replace(spec, main=spec.main or spec.name in chosen)
    return list(selected.values())


def _matching(specs: Sequence[ScoreSpec], name: str) -> list[ScoreSpec]:
    """Return the scores that a name selects: a score, a group's scores, one cutoff, or pass@k."""
    is_score = False
    of_group = []
    without_passes = []
    for spec in specs:
        if name in (spec.name, spec.group):
            of_group.append(spec)
            if spec.name == name or not isinstance(spec.reducer, Pass):
                without_passes.append(spec)
        is_score = is_score or spec.name == name
    if is_score:
        # In logs of other tasks, a score has the name of its group, which has pass@k as well.
        return without_passes
    if of_group:
        return of_group
    stem, _, cutoff = name.partition("@")
    if cutoff.isdigit():
        of_cutoff = [spec.at(cutoff) for spec in specs if spec.name == stem + CUTOFF]
        if of_cutoff:
            return of_cutoff
    scored, estimate = pass_of(name)
    if estimate is None:
        return []
    of_samples = []
    for spec in specs:
        # A score that is reduced already has one value per question, and no samples.
        if scored in (spec.name, spec.group) and not spec.reducer:
            of_samples.append(estimate.of(spec))
    return of_samples
