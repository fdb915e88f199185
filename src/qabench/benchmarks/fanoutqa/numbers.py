"""The numbers that ``qabench stats`` and ``qabench reproduce`` compute for FanOutQA."""

from __future__ import annotations

from collections.abc import Mapping

from qabench.benchmarks.numbers import Numbers
from qabench.benchmarks.reproduction import Check, Reproduction
from qabench.data.rows import Row
from qabench.errors import SourceError
from qabench.loading_scripts.fanoutqa.leaderboard import published_scores
from qabench.loading_scripts.published import PublishedScore

# The number of test questions in the paper (Zhu et al. 2024). The file of November 2023 has one
# more.
TEST_QUESTIONS = 724


class FanOutQANumbers(Numbers):
    """The numbers of FanOutQA's data and leaderboard."""

    def counts(self, row: Row) -> Mapping[str, int]:
        """Return what a row adds to the numbers of ``qabench stats``."""
        pages = row["necessary_evidence"]
        return {
            "questions": 1,
            "pages of evidence": len(pages),
            "pages without a revid": sum(page["revid"] is None for page in pages),
            "pages without a pageid": sum(page["pageid"] is None for page in pages),
        }

    def published(self) -> list[PublishedScore]:
        """Return the scores of the authors' leaderboard."""
        return published_scores()

    def reproduce(self) -> Reproduction:
        """Compare the statistics of the data, and check the scores of the leaderboard.

        The answers to the test questions are not public, so the leaderboard's scores cannot be
        computed. But in strict accuracy and for the judge, each answer scores 0 or 1, so a
        published mean must be a multiple of 1/724.
        """
        reproduction = super().reproduce()
        try:
            scores = [score for score in self.published() if score.metric in ("acc.strict", "gpt")]
        except SourceError as error:
            reproduction.notes.append(f"leaderboard: not computed. {error}")
        else:
            multiples = sum(_is_multiple(score.value) for score in scores)
            name = (
                "leaderboard: strict accuracies and judge scores that are a multiple of "
                f"1/{TEST_QUESTIONS}"
            )
            reproduction.checks.append(Check(name, len(scores), multiples))
        reproduction.notes.append(
            "The scores of the leaderboard are not computed: the reference answers of the test questions are not "
            "public. The authors score submissions, which `qabench fanoutqa submit` prepares."
        )
        return reproduction


def _is_multiple(mean: float) -> bool:
    total = mean * TEST_QUESTIONS
    # The published means are floats, so the product is an integer only up to rounding.
    return abs(total - round(total)) < 1e-6
