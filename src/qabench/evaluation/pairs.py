"""A pair of systems on their common questions: the numbers, the verdict, and a row of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qabench.evaluation.number_form import PLAIN, NumberForm, p_text
from qabench.io.tables import NO_BOUNDS
from qabench.stats.differences import SIGNIFICANCE
from qabench.stats.paired import Difference
from qabench.stats.units import ROUNDING

# The columns of ``Pair.cells``.
PAIR_COLUMNS = [
    "pair",
    "at 5%",
    "difference",
    "95% interval",
    "n",
    "p",
    "corrected p",
    "detectable",
    "wins",
    "ties",
    "losses",
]
# Attributes of a pair that have the same name in JSON and in pandas.
COUNTS = ("wins", "ties", "losses", "n", "answered", "only_first", "only_second", "detectable")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems on the questions that both have scores for.

    Attributes:
        first: the label of the system that is better on these questions.
        second: the label of the other system.
        difference: first minus second, with its interval and p-value.
        corrected_p: the p-value corrected for the number of pairs.
        wins: the number of questions on which the first is better. If a score is not a mean,
            ``pair_tests.contributions`` says on which questions it is.
        ties: the number of questions whose answers make no difference to the score.
        losses: the number of questions on which the second is better.
        n: the number of questions.
        scores: the scores of the first and the second system on these questions.
        answered: the number of these questions that both systems answered.
        only_first: the number of further questions for which only the first system has a score.
        only_second: the number of further questions for which only the second system has a score.
        unanswered: the number of these questions that only the second system answered, and the
            number that only the first one answered.
        detectable: the smallest difference that these questions would show with a power of 80%, or
            None if it cannot be estimated. See ``detectable_difference``.
    """

    first: str
    second: str
    difference: Difference
    corrected_p: float
    wins: int
    ties: int
    losses: int
    n: int
    scores: tuple[float, float]
    answered: int
    only_first: int = 0
    only_second: int = 0
    unanswered: tuple[int, int] = (0, 0)
    detectable: float | None = None

    @property
    def significant(self) -> bool:
        """Return whether the first is better than the second: the corrected p-value is below 5%."""
        # Systems that answered no common question are not comparable, whatever p is.
        return self.answered > 0 and self.corrected_p < SIGNIFICANCE

    @property
    def is_equal(self) -> bool:
        """Return whether no question contributes to a difference between the systems."""
        return not (self.wins or self.losses) and abs(self.difference.interval.mean) <= ROUNDING

    def has(self, label: str) -> bool:
        """Return whether the pair contains a system."""
        return label in (self.first, self.second)

    @property
    def verdict(self) -> str:
        """Return what the test says, and how many questions only one of the systems answered."""
        if not self.answered:
            return "no question was answered by both"
        if self.significant:
            verdict = f"{self.first} is better"
        elif self.is_equal:
            verdict = "no difference"
        else:
            verdict = "no significant difference"
        if missing := self.missing():
            verdict += f" ({missing})"
        return verdict

    def missing(self) -> str:
        """Return how many questions only one of the systems answered, in words, or ""."""
        clauses = []
        for label, count in zip((self.first, self.second), self.unanswered, strict=True):
            if count:
                clauses.append(f"{label} has no answer to {count:,}")
        return ", ".join(clauses)

    def about_questions(self, form: NumberForm = PLAIN) -> str:
        """Return a sentence on the common questions if a system has further ones, or ""."""
        if not (self.only_first or self.only_second):
            return ""
        first_score = form.number(self.scores[0]) + form.unit
        second_score = form.number(self.scores[1]) + form.unit
        first_n, second_n = self.n + self.only_first, self.n + self.only_second
        return (
            f"{self.first} and {self.second} are compared on the {self.n:,} questions for which both have a score, "
            f"where they have {first_score} and {second_score}; the scores above are over "
            f"{first_n:,} questions of {self.first} and {second_n:,} of {self.second}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the pair as JSON data."""
        interval = self.difference.interval
        data = {
            "first": self.first,
            "second": self.second,
            "difference": interval.mean,
            "standard_error": interval.standard_error,
            "low": interval.low,
            "high": interval.high,
            "undefined": interval.undefined,
            "p": self.difference.p_value,
            "corrected_p": self.corrected_p,
            "significant": self.significant,
            "verdict": self.verdict,
            "first_score": self.scores[0],
            "second_score": self.scores[1],
            "unanswered_first": self.unanswered[0],
            "unanswered_second": self.unanswered[1],
        }
        for name in COUNTS:
            data[name] = getattr(self, name)
        return data

    def cells(self, form: NumberForm = PLAIN) -> list[Any]:
        """Return the cells of the pair's row in a table with ``PAIR_COLUMNS``."""
        interval = self.difference.interval
        least = NO_BOUNDS
        if self.detectable is not None:
            least = form.number(self.detectable) + form.unit
        return [
            f"{self.first} - {self.second}",
            self.verdict,
            form.number(interval.mean, "+") + form.unit,
            form.bounds(interval, "+"),
            self.n,
            p_text(self.difference.p_value),
            p_text(self.corrected_p),
            least,
            self.wins,
            self.ties,
            self.losses,
        ]
