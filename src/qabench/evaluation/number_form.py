"""How numbers are printed: scores with some decimals or in percent, and p-values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qabench.errors import InputError
from qabench.evaluation.score_spec import ScoreSpec
from qabench.io.tables import NO_BOUNDS

if TYPE_CHECKING:
    from qabench.stats.intervals import Interval

# By default, a score has the same digits with and without percent: 12.34 and 0.1234.
DECIMALS, PERCENT_DECIMALS = 4, 2
# A float has no more significant decimals.
MAX_DECIMALS = 15
# Smaller p-values depend on the number of resamples.
SMALLEST_P = 0.0001


@dataclass(frozen=True, slots=True)
class NumberForm:
    """How scores are printed.

    Attributes:
        decimals: the number of digits after the point.
        percent: whether a score of 0.5 is printed as 50.
    """

    decimals: int = DECIMALS
    percent: bool = False

    @property
    def unit(self) -> str:
        """Return what follows a number in a terminal: "%" or ""."""
        return "%" if self.percent else ""

    def number(self, value: float, sign: str = "") -> str:
        """Format a score or a difference. With the sign "+", positive numbers have a sign, too."""
        if self.percent:
            value *= 100
        return f"{value:{sign}.{self.decimals}f}"

    def bounds(self, interval: Interval, sign: str = "") -> str:
        """Return the bounds of an interval, such as "0.2500 to 0.7500", or "not enough data"."""
        if interval.low is None or interval.high is None:
            return NO_BOUNDS
        return f"{self.number(interval.low, sign)} to {self.number(interval.high, sign)}{self.unit}"

    def brackets(self, interval: Interval, sign: str = "") -> str:
        """Return the bounds of an interval, such as "[0.2500, 0.7500]", or ""."""
        if interval.low is None or interval.high is None:
            return ""
        return f"[{self.number(interval.low, sign)}, {self.number(interval.high, sign)}]"

    def fitting(self, specs: Iterable[ScoreSpec]) -> NumberForm:
        """Return this form, without percent for scores that are not shares (facts per answer)."""
        if all(spec.share for spec in specs):
            return self
        return replace(self, percent=False)


PLAIN = NumberForm()


def number_form(percent: bool = False, decimals: int | None = None) -> NumberForm:
    """Return the form for a user's options.

    Raises:
        InputError: a number of decimals that is negative or above ``MAX_DECIMALS``.
    """
    if decimals is None:
        decimals = PERCENT_DECIMALS if percent else DECIMALS
    if not 0 <= decimals <= MAX_DECIMALS:
        raise InputError(f"{decimals} decimals; allowed: 0 to {MAX_DECIMALS}")
    return NumberForm(decimals, percent)


def p_text(p: float) -> str:
    """Return a p-value as all tables and sentences show it: with four decimals, or "< 0.0001"."""
    if p < SMALLEST_P:
        return f"< {SMALLEST_P}"
    return f"{p:.4f}"


def p_equation(p: float) -> str:
    """Return a p-value for a sentence: "p = 0.0213" or "p < 0.0001"."""
    if p < SMALLEST_P:
        return f"p {p_text(p)}"
    return f"p = {p_text(p)}"
