"""kill -9 at random moments: what was written before is whole, and the same command finishes the
rest.
"""

import functools
import random
import tempfile
import time
from pathlib import Path

from fault_harness import Campaign, Command

from qabench.loading_scripts import FOLDER

SAMPLE = FOLDER / "fanoutqa/sample"
RESULTS = ("out.json", "items.jsonl")


def scoring(folder: Path, place: Path) -> Command:
    """Start scoring, with the results and all caches in ``place``."""
    variables = {name: str(place / name) for name in ("QABENCH_CACHE", "HF_HOME", "XDG_DATA_HOME")}
    outputs = ["-o", place / RESULTS[0], "--per-item", place / RESULTS[1]]
    options = ["--config", "sample", "--lemmatizer", "simplemma", "--json", "--quiet", *outputs]
    answers = next((SAMPLE / "generations").glob("*.jsonl"))
    return Command(folder, "score", "fanoutqa", answers, *options, **variables)


@functools.cache
def undisturbed() -> tuple[float, dict[str, bytes]]:
    """Return how many seconds scoring takes, and the content of its results."""
    with tempfile.TemporaryDirectory() as name:
        folder, begin = Path(name), time.monotonic()
        child = scoring(folder, folder)
        if child.wait() != 0:
            raise AssertionError(child.errors[-300:])
        return time.monotonic() - begin, {result: (folder / result).read_bytes() for result in RESULTS}


def is_whole(place: Path) -> bool:
    """Return whether all results are there. AssertionError for a part of one, or another content."""
    for name, content in undisturbed()[1].items():
        if (place / name).exists() and (place / name).read_bytes() != content:
            raise AssertionError(f"{name} is not whole")
    return all((place / name).exists() for name in RESULTS)


def killed_score(chance: random.Random, folder: Path) -> str:
    kills = 0
    for _ in range(chance.randint(1, 3)):
        # imports take a third
        kills += scoring(folder, folder).kill(undisturbed()[0] * chance.uniform(0.3, 1.1))
        is_whole(folder)
    if scoring(folder, folder).wait() != 0 or not is_whole(folder):
        raise AssertionError("not finished after a kill")
    return f"finished after {kills} kills"


CAMPAIGNS = [Campaign("kill-score", "old or new files, same scores", killed_score, 5)]
