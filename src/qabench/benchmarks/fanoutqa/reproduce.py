"""Published numbers of FanOutQA that can be computed from public data."""

from __future__ import annotations

from qabench.errors import SourceError
from qabench.loading_scripts.fanoutqa.stats import PUBLISHED_QUESTIONS
from qabench.published import published
from qabench.reproduction import Check, Reproduction, data_checks

# With these metrics a question scores 0 or 1, so the mean times the number of test questions is an integer.
WHOLE = ("acc.strict", "gpt")
TEST_ANSWERS = (
    "The scores of the leaderboard are not computed: neither the reference answers of the test questions nor the "
    "answers of the systems are public. The authors score submissions, which `qabench fanoutqa submit` prepares."
)


def reproduce() -> Reproduction:
    """The statistics of the data, and whether the leaderboard's scores are means over all test questions."""
    found = data_checks("fanoutqa")
    try:
        scores = [one for one in published("fanoutqa") if one.metric in WHOLE]
    except SourceError as error:
        found.notes.append(f"leaderboard: not computed. {error}")
    else:
        asked = PUBLISHED_QUESTIONS["test"]
        whole = sum(abs(one.value * asked - round(one.value * asked)) < 1e-6 for one in scores)
        what = f"leaderboard: strict accuracies and judge scores that are a multiple of 1/{asked}"
        found.checks.append(Check(what, len(scores), whole))
    found.notes.append(TEST_ANSWERS)
    return found
