"""Whole commands, in CPU seconds of new processes: from 310 to 100,000 answers, a log, a report and
60 systems.

Python's bytecode is cached, as after an installation by pip, also where PYTHONDONTWRITEBYTECODE is
set. "First time" is without cached normal forms. The 100,000 answers repeat FanOutQA's sample, with
other ids and a number after each answer. They are scored and reported once. Needs the data
(``QABENCH_MIRROR``), a spaCy model, and the extras ``parity``, ``fast``, ``run`` and ``report``.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cases import HERE, Case, Measured
from fanout_accuracy import MODEL, OFFICIAL, dev_and_runs
from openai_server import OpenAIServer

RECORDS, SYSTEMS = 100_000, 60
REPLY = "Paris: 1998\nLima: 2004\nOslo: 1,234,567"
SCORES = ("--scores", "acc,rouge")
# Executed by new processes.
LOADED = "import spacy, sys; spacy.load(sys.argv[1], exclude=['ner', 'senter'])"
AUTHORS = """
import json, sys
sys.path[:0] = sys.argv[1:3]
import official
from fanout_accuracy import MODEL, _rouge, dev_and_runs
questions, runs = dev_and_runs()
answers = [{"id": question["id"], "answer": answer} for question, answer in zip(questions, runs[0], strict=True)]
scorer = official.scorer(MODEL, questions, answers)
accuracy, rouge = scorer.score_accuracy()[0], _rouge(scorer.score_rouge()[0])
print(json.dumps({"acc": {"loose": accuracy.loose, "strict": accuracy.strict}, "rouge": rouge}))
"""


class Commands:
    """Runs commands in new processes, with caches of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        own = {"QABENCH_CACHE": str(self.cache), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        self.environment = os.environ | own | {"QABENCH_API_KEY": "none"}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def python(self, *arguments: str) -> tuple[float, str]:
        """Return the CPU seconds of a new Python process and its processes, and what it prints."""
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-P", *arguments], env=self.environment, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments[:6])} failed:\n{done.stderr[-2000:]}")
        after = os.times()
        used = sum(after[2:4]) - sum(before[2:4])
        return used, done.stdout

    def qabench(self, *arguments: str | Path, first: bool = False) -> Measured:
        """Run a command of qabench, without cached normal forms if ``first``; the output is its
        scores.
        """
        if first:
            shutil.rmtree(self.cache, ignore_errors=True)
        seconds, printed = self.python("-m", "qabench", *map(str, arguments))
        output = None
        if "--json" in arguments:
            (evaluation,) = json.loads(printed)["evaluations"]
            output = evaluation["official"]
        return Measured(seconds, output)


def cases(size: int | None = None) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as name:
        commands = Commands(Path(name))
        yield from answers_of_dev(commands)
        yield from a_log(commands)
        yield from many_systems(commands)
        yield from many_records(commands)


def answers_of_dev(commands: Commands) -> Iterator[Case]:
    """FanOutQA's accuracy and ROUGE of 310 answers."""
    questions, runs = dev_and_runs()
    path = commands.folder / "answers.jsonl"
    written(path, [question["id"] for question in questions], runs[0])
    score = functools.partial(commands.qabench, "score", "fanoutqa", path, *SCORES, "--json")

    @functools.cache
    def authors() -> Measured:
        support = HERE.parent / "tests" / "support"
        seconds, printed = commands.python("-c", AUTHORS, str(HERE), str(support))
        return Measured(seconds, json.loads(printed))

    def bare() -> Measured:
        return Measured(commands.python("-c", LOADED, MODEL)[0])

    def same(ours: Any, theirs: Any) -> bool:
        return theirs is None or ours == theirs

    once = frozenset([OFFICIAL])
    others = {OFFICIAL: authors, "spaCy is imported, and its model loaded": bare}
    title = "score of 310 answers, FanOutQA"
    yield Case(f"{title}, first time", functools.partial(score, first=True), others, same, once)
    yield Case(f"{title}, again", score, {OFFICIAL: authors}, same, once)


def a_log(commands: Commands) -> Iterator[Case]:
    """The log of a run, next to a file with the same answers."""
    logs, path = commands.folder / "logs", commands.folder / "replies.jsonl"
    with OpenAIServer() as server:
        server.reply = lambda body: REPLY
        run = ("run", "fanoutqa", "--setting", "closed-book", "--model", "m", "--no-cache")
        commands.qabench(*run, "--base-url", server.base_url, "--log-dir", logs, "--quiet")
    written(path, [question["id"] for question in dev_and_runs()[0]])
    yield Case(
        "score of a log of 310 answers",
        lambda: commands.qabench("score", next(logs.glob("*.eval")), "--json"),
        {"a file": lambda: commands.qabench("score", "fanoutqa", path, *SCORES, "--json")},
    )


def many_systems(commands: Commands) -> Iterator[Case]:
    """A comparison of 60 systems on FanOutQA's sample, each pair of them tested."""
    rows = sample()
    files = [commands.folder / f"system{number}.jsonl" for number in range(SYSTEMS)]
    for number, path in enumerate(files):
        texts = [answer_text(row, number + place) for place, row in enumerate(rows)]
        written(path, [row["id"] for row in rows], texts)
    compare = ("compare", "fanoutqa", *files, "--config", "sample", "--quiet")
    yield Case(f"compare of {SYSTEMS} systems", lambda: commands.qabench(*compare), {}, None)


def many_records(commands: Commands) -> Iterator[Case]:
    """Scores and a report of 100,000 answers."""
    path, answers = commands.folder / "questions.json", commands.folder / "many.jsonl"
    rows = sample()
    repeated = [rows[i % len(rows)] | {"id": f"{i:016x}"} for i in range(RECORDS)]
    path.write_text(json.dumps(repeated), encoding="utf-8")
    texts = [answer_text(row, i % 977) for i, row in enumerate(repeated)]
    written(answers, [row["id"] for row in repeated], texts)
    options = (answers, "--questions", path, *SCORES)
    report = ("--benchmark", "fanoutqa", "--output", commands.folder / "report")
    ways: dict[str, Callable[[], Measured]] = {
        "score": lambda: commands.qabench("score", "fanoutqa", *options, "--json", first=True),
        "report": lambda: commands.qabench("report", *options, *report),
    }
    for name, way in ways.items():
        measured_once = functools.cache(way)
        yield Case(f"{name} of {RECORDS:,} answers", measured_once, {}, None, warm=False)


def sample() -> list[dict[str, Any]]:
    """The questions of FanOutQA's sample."""
    path = HERE.parent / "loading_scripts/fanoutqa/sample/questions.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def answer_text(row: dict[str, Any], number: int) -> str:
    """An answer with some of a question's strings, and a number."""
    answer = row["answer"]
    parts = list(answer.items()) if isinstance(answer, dict) else answer
    parts = parts if isinstance(parts, list) else [parts]
    return f"I think {' and '.join(map(str, parts[: 1 + number % 4]))}, number {number}"


def written(path: Path, ids: Sequence[str], texts: Sequence[str] | None = None) -> None:
    """Write a file of answers; without texts each is ``REPLY``."""
    rows = zip(ids, texts or [REPLY] * len(ids), strict=True)
    lines = [json.dumps({"id": id, "answer": text}) + "\n" for id, text in rows]
    path.write_text("".join(lines), encoding="utf-8")
