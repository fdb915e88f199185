"""Published numbers of FanOutQA that can be computed from public data."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatch

from qabench.benchmarks.published import published
from qabench.benchmarks.reproduction import Check, Reproduction, data_checks
from qabench.errors import SourceError
from qabench.loading_scripts import source_table
from qabench.loading_scripts.fanoutqa.stats import PUBLISHED_QUESTIONS, tables

GENERATIONS = "leaderboard-submissions/*-generations/*.jsonl"
# With these metrics a question scores 0 or 1, so the mean times the number of test questions is an integer.
WHOLE = ("acc.strict", "gpt")
TEST_ANSWERS = (
    "The scores of the leaderboard are not computed: the reference answers of the test questions are not public. The "
    "authors publish the answers of {systems} systems ({files} files in leaderboard-submissions/*-generations); they "
    "score submissions, which `qabench fanoutqa submit` prepares."
)


def reproduce() -> Reproduction:
    """Compare the statistics of the data, and check that the leaderboard's scores are means over all test questions."""
    reproduction = data_checks("fanoutqa", tables)
    try:
        scores = [score for score in published("fanoutqa") if score.metric in WHOLE]
    except SourceError as error:
        reproduction.notes.append(f"leaderboard: not computed. {error}")
    else:
        questions = PUBLISHED_QUESTIONS["test"]
        multiples = sum(abs(score.value * questions - round(score.value * questions)) < 1e-6 for score in scores)
        name = f"leaderboard: strict accuracies and judge scores that are a multiple of 1/{questions}"
        reproduction.checks.append(Check(name, len(scores), multiples))
    folders = [file.path.split("/")[1] for file in source_table("fanoutqa") if fnmatch(file.path, GENERATIONS)]
    reproduction.notes.append(TEST_ANSWERS.format(systems=max(Counter(folders).values()), files=len(folders)))
    return reproduction
