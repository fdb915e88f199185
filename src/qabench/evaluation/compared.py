"""Compared systems: their scores, their pairs, and sentences about how the pairs were tested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.judged import CorrectedPair
from qabench.evaluation.pairs import Pair
from qabench.evaluation.records import Score
from qabench.evaluation.score_spec import ScoreSpec
from qabench.stats.paired import RESAMPLES, SEED, TESTS

TEST = TESTS[0]
CORRECTION = "holm"
CORRECTION_TITLES = {"holm": "Holm's", "bh": "Benjamini and Hochberg's"}


@dataclass(frozen=True, slots=True, repr=False)
class ComparedSystems:
    """Systems on the same questions, compared by one score in pairs.

    Attributes:
        spec: the score by which they are compared.
        systems: label -> score on all of the system's answers, the best first. Only systems that
            have the score.
        pairs: the pairs with common questions on which both have a score, in the order of
            ``systems``. With a ``baseline``, only pairs with this system.
        test: "randomization" or "bootstrap".
        correction: how p-values are corrected over the pairs.
        resamples: the number of resamples of intervals and tests.
        seed: the seed of intervals and tests.
        evaluations: label -> the evaluation of the system, including systems without the score.
        notes: sentences about systems that are left out.
        others: the comparisons by further scores, if several were selected, and on groups.
        group: the grouping and the group of the questions, or None for all questions.
        corrected: differences of a judge's scores, corrected by human labels. Never official.
        baseline: the label of the system that all others are compared with, or "" for all pairs.
    """

    spec: ScoreSpec
    systems: Mapping[str, Score]
    pairs: tuple[Pair, ...]
    test: str = TEST
    correction: str = CORRECTION
    resamples: int = RESAMPLES
    seed: int = SEED
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    others: tuple[ComparedSystems, ...] = ()
    group: tuple[str, str] | None = None
    corrected: tuple[CorrectedPair, ...] = ()
    baseline: str = ""

    @property
    def questions(self) -> str:
        """Return the benchmark and the config, such as "fanoutqa dev", or "" if they are unknown."""
        first = self._first_evaluation()
        if first is None:
            return ""
        return first.questions

    @property
    def grouping(self) -> str:
        """Return the grouping of the questions, such as "domain", or "" for all questions."""
        grouping, _ = self.group or ("", "")
        return grouping

    @property
    def same_questions(self) -> bool:
        """Return whether all systems have scores for the same questions and can be ranked."""
        n_systems = len(self.systems)
        n_pairs = n_systems * (n_systems - 1) // 2
        if self.baseline:
            n_pairs = n_systems - 1
        # Two systems without a common question have no pair.
        if len(self.pairs) != n_pairs:
            return False
        return not any(pair.only_first or pair.only_second for pair in self.pairs)

    def _first_evaluation(self) -> Evaluation | None:
        """Return the first evaluation, or None. All are on the same benchmark and config."""
        return next(iter(self.evaluations.values()), None)

    def about(self) -> str:
        """Return how the pairs were tested, in one sentence."""
        pairs = self._kind_of_pairs()
        if self.group:
            pairs += " of all groups"
        correction = f"corrected over all {pairs} ({self.correction})"
        if self.correction == "none":
            correction = "not corrected for several pairs"
        return (
            f"p: paired {self.test} test{self._about_clusters()}, two-sided, {self.resamples:,} resamples, "
            f"seed {self.seed}, {correction}; "
            "intervals: 95%, not corrected; "
            "detectable: the smallest difference that these questions would show with a power of 80%"
        )

    def test_sentence(self, bound: str = "") -> str:
        """Return a phrase on the test and the correction, with ``bound`` after the test's name."""
        test = f"two-sided paired {self.test} test{self._about_clusters()}{bound}"
        if self.correction != "none" and (len(self.pairs) > 1 or self.group):
            title = CORRECTION_TITLES[self.correction]
            scope = "of all groups" if self.group else "of a score"
            test += f" after {title} correction over all {self._kind_of_pairs()} {scope}"
        return test

    def _kind_of_pairs(self) -> str:
        """Return a name for the pairs that are compared, such as "pairs with gpt-4o"."""
        if self.baseline:
            return f"pairs with {self.baseline}"
        return "pairs"

    def _about_clusters(self) -> str:
        """Return a phrase with the number of clusters in tests and intervals, or ""."""
        clusters: dict[str, str] = {}
        for label in self.systems:
            if label in self.evaluations:
                for record in self.evaluations[label].records:
                    # A question without a cluster counts as a cluster.
                    clusters[record.id] = record.cluster or f"question {record.id}"
        number = len(set(clusters.values()))
        if number == len(clusters):
            return ""
        if self.group:
            # The sentence is about all groups in a table, which have different numbers of clusters.
            return " over clusters of questions"
        return f" over {number:,} clusters of questions"

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        systems = []
        for label, score in self.systems.items():
            counts = {"n": score.n, "left_out": score.left_out}
            systems.append({"system": label, **asdict(score.interval), **counts})
        grouping, group = self.group or (None, None)
        benchmark = config = ""
        first = self._first_evaluation()
        if first is not None:
            benchmark, config = first.benchmark, first.config
        return {
            "benchmark": benchmark,
            "config": config,
            "metric": self.spec.name,
            "grouping": grouping,
            "group": group,
            "test": self.test,
            "correction": self.correction,
            "resamples": self.resamples,
            "seed": self.seed,
            "baseline": self.baseline or None,
            "systems": systems,
            "pairs": [pair.as_dict() for pair in self.pairs],
            "corrected": self._corrected_numbers(),
        }

    def _corrected_numbers(self) -> dict[str, Any] | None:
        """Return scores and differences corrected by human labels, or None if there are none."""
        if not self.corrected:
            return None
        systems: dict[str, dict[str, Any]] = {}
        for label, evaluation in self.evaluations.items():
            systems[label] = {}
            for correction in evaluation.corrections:
                systems[label][correction.score.name] = correction.as_dict()
        pairs = [pair.as_dict() for pair in self.corrected]
        return {"systems": systems, "pairs": pairs}


def score_names(comparisons: Iterable[ComparedSystems]) -> set[str]:
    """Return the names of the scores by which systems are compared."""
    return {comparison.spec.name for comparison in comparisons}


def shown_comparisons(
    comparisons: Sequence[ComparedSystems], all_scores: bool = False
) -> Sequence[ComparedSystems]:
    """Return the comparisons that tables show: those by main scores, or all of them."""
    main = [comparison for comparison in comparisons if comparison.spec.main]
    if all_scores or not main:
        # Without a main score, the tables would be empty.
        return comparisons
    return main


def by_place(
    comparisons: Iterable[ComparedSystems],
) -> dict[tuple[str, str], list[ComparedSystems]]:
    """Return comparisons by (questions, grouping). The grouping is "" for all questions."""
    members: dict[tuple[str, str], list[ComparedSystems]] = {}
    for comparison in comparisons:
        place = (comparison.questions, comparison.grouping)
        members.setdefault(place, []).append(comparison)
    return members
