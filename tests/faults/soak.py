"""A long run under faults: ``run``, ``judge`` and ``score`` of many questions, killed many times.

python tests/faults/soak.py [--questions 10000] [--kills 10] [--steps run,judge,score]

A loopback server answers; every fifth call meets a fault (an error, a lost connection, half a reply). The commands are
killed with SIGKILL at even distances and started again. Prints a table: answers lost, calls paid twice, whether all
scores equal those of the same answers without any disturbance, and the memory and open files of the processes.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from openai_server import Fault, OpenAIServer  # noqa: E402

from qabench.loading_scripts import FOLDER  # noqa: E402
from qabench.runs.log import read_run  # noqa: E402

CONNECTIONS = 40
FAULT_EVERY = 5
NUMBER = re.compile(r"\(number (\d+)\)")
FAULTS = (
    Fault(500, body={"error": {"message": "oops"}}),
    Fault(429, headers={"Retry-After": "0"}, body={"error": {"message": "slow down"}}),
    Fault(503, body="<html>down</html>"),
    Fault(drop=True),
    Fault(body={"choices": []}, truncate=7),
)


@dataclass
class Watched:
    """One command, from its first start to its end, with all its kills.

    Attributes:
        calls: how many calls the server got.
        twice: how many were answered in full more than once.
        memory: resident MiB, about 20 times per second, one list per process.
        handles: open files, likewise.
    """

    name: str
    kills: int = 0
    calls: int = 0
    twice: int = 0
    seconds: float = 0.0
    memory: list[list[float]] = field(default_factory=list)
    handles: list[list[int]] = field(default_factory=list)

    def row(self, questions: int) -> str:
        memory, handles = self._change(self.memory, " MiB"), self._change(self.handles)
        counts = f"{self.kills} | {self.calls:,} | {self.twice}"
        return f"| {self.name} | {questions:,} | {counts} | {memory} | {handles} | {self.seconds:.0f} |"

    def _change(self, values: Sequence[Sequence[float]], unit: str = "") -> str:
        """Of the longest process, the largest value of its second quarter and of its last; and the peak of all."""
        longest = max(values, key=len)
        peak = f"peak {max(map(max, filter(None, values)), default=0):.0f}{unit}"
        if len(longest) < 8:
            return peak
        quarter = len(longest) // 4  # the first one is the start
        early, late = max(longest[quarter : 2 * quarter]), max(longest[-quarter:])
        return f"{early:.0f} to {late:.0f}{unit}, {peak}"


class Soak:
    """The files and the server of one soak."""

    def __init__(self, folder: Path, count: int, kills: int) -> None:
        self.folder, self.count, self.kills = folder, count, kills
        self.questions = folder / "questions.json"
        self.answers = folder / "undisturbed.jsonl"
        self.texts = self._write()
        self.environment = {
            **os.environ,
            "QABENCH_CACHE": str(folder / "cache"),
            "HF_HOME": str(folder / "hf"),
            "XDG_DATA_HOME": str(folder / "data"),
            "INSPECT_CACHE_DIR": str(folder / "inspect"),
            "FANOUTQA_OPENAI_API_KEY": "k",
            "NO_PROXY": "127.0.0.1",
            "QABENCH_OFFLINE": "1",
            "HF_HUB_OFFLINE": "1",
        }

    def _write(self) -> list[str]:
        sample = json.loads((FOLDER / "fanoutqa/sample/questions.json").read_text(encoding="utf-8"))
        rows = [{**sample[i % len(sample)], "id": f"q{i:06}"} for i in range(self.count)]
        for i, row in enumerate(rows):
            row["question"] = f"{row['question']} (number {i})"
        self.questions.write_text(json.dumps(rows), encoding="utf-8")
        lines = [json.dumps({"id": row["id"], "answer": answer_to(row["question"])}) for row in rows]
        self.answers.write_text("\n".join(lines), encoding="utf-8")
        return [row["question"] for row in rows]

    def watched(
        self,
        name: str,
        server: OpenAIServer,
        command: Callable[[], list[str]],
        done: Callable[[], int],
        kills: int | None = None,
    ) -> Watched:
        """Starts a command, kills it at even distances of ``done()``, and starts it until it ends."""
        result = Watched(name)
        begin = time.monotonic()
        kills = self.kills if kills is None else kills
        for kill in range(1, kills + 2):
            goal = self.count * kill // (kills + 1) if kill <= kills else None
            errors = (self.folder / f"{name}.log").open("ab")
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "qabench", *command()],
                env=self.environment,
                stdout=subprocess.PIPE if goal is None else subprocess.DEVNULL,
                stderr=errors,
            )
            errors.close()
            self._until(process, goal, done, result)
            if process.stdout:
                self.output = process.stdout.read()
                process.stdout.close()
        result.seconds = time.monotonic() - begin
        result.calls = len(server.calls)
        result.twice = sum(times - 1 for times in server.paid.values())
        return result

    def _until(
        self, process: subprocess.Popen[bytes], goal: int | None, done: Callable[[], int], result: Watched
    ) -> None:
        result.memory.append([])
        result.handles.append([])
        while process.poll() is None:
            if goal is not None and done() >= goal:
                process.kill()
                process.wait()
                result.kills += 1
                return
            self._measure(process.pid, result)
            time.sleep(0.05)
        if process.returncode:
            log = (self.folder / f"{result.name}.log").read_text(errors="replace")
            raise AssertionError(f"{result.name}: exit code {process.returncode}: {log[-600:]}")

    def _measure(self, pid: int, result: Watched) -> None:
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            result.handles[-1].append(len(os.listdir(f"/proc/{pid}/fd")))
            result.memory[-1].append(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20))
        except (OSError, IndexError):
            pass


def answer_to(question: str) -> str:
    """A deterministic answer: words of the question, more or fewer of them."""
    words = question.split()
    number = int.from_bytes(hashlib.sha256(question.encode()).digest()[:4], "little")
    return " ".join([*words[number % len(words) :], str(number % 100)])


def letter(body: dict[str, Any]) -> str:
    """A deterministic verdict of the judge."""
    asked = str(body["messages"][-1]["content"])
    return "Because.\n" + "ABCDEF"[hashlib.sha256(asked.encode()).digest()[0] % 6]


def faults(number: int, body: dict[str, Any]) -> Fault | None:
    return FAULTS[number // FAULT_EVERY % len(FAULTS)] if number % FAULT_EVERY == FAULT_EVERY - 1 else None


def asked_question(texts: list[str], body: dict[str, Any]) -> str:
    """The question in a prompt, by its number. The probe before a run has none."""
    found = NUMBER.search(str(body["messages"][-1]["content"]))
    return texts[int(found[1])] if found else "probe"


def soak_run(soak: Soak) -> Watched:
    logs = soak.folder / "logs"
    with OpenAIServer() as server:
        server.reply = lambda body: answer_to(asked_question(soak.texts, body))
        server.fault = faults
        server.delay = 0.01
        options = ["--base-url", server.base_url, "--max-connections", str(CONNECTIONS), "--json", "--no-cache"]
        first = ["-T", f"questions={soak.questions}", "-T", "lemmatizer=simplemma", "-T", "prompt=qabench"]

        def newest() -> Path | None:
            found = sorted(logs.glob("*.eval"), key=lambda path: path.stat().st_mtime)
            return found[-1] if found else None

        def command() -> list[str]:
            if log := newest():
                return ["run", "--resume", str(log), *options[:-1]]
            return ["run", "fanoutqa", "--model", "m", "--log-dir", str(logs), *first, *options]

        result = soak.watched("run", server, command, lambda: sum(call.completed for call in server.calls))
        log = newest()
        assert log is not None
        counts = read_run(log).counts()
        assert counts["answered"] == soak.count and not counts["missing"], counts
        return result


def soak_judge(soak: Soak) -> Watched:
    """Judges the undisturbed answers, and once more without faults and kills: the scores must be equal."""
    results = []
    for disturbed in (False, True):
        soak.environment["QABENCH_CACHE"] = str(soak.folder / f"cache-{disturbed}")
        with OpenAIServer() as server:
            server.reply, server.delay = letter, 0.01
            if disturbed:
                server.fault = faults
            options = [
                "--base-url",
                server.base_url,
                "--concurrency",
                str(CONNECTIONS),
                "--prompt",
                "qabench",
                "--json",
            ]
            source = [str(soak.answers), "--questions", str(soak.questions), "--model", "m"]
            judge = functools.partial(soak.watched, "judge", server, lambda: ["fanoutqa", "judge", *source, *options])  # noqa: B023
            watched = judge(lambda: sum(call.completed for call in server.calls), kills=soak.kills * disturbed)
        found = json.loads(soak.output)
        results.append({name: found.get(name) for name in ("scores", "counts", "gpt", "verdicts")})
    assert results[0] == results[1], results
    return watched


def soak_score(soak: Soak) -> Watched:
    """Scores the undisturbed answers; killed at even distances of time."""
    with OpenAIServer() as server:
        options = ["--questions", str(soak.questions), "--lemmatizer", "simplemma", "--json"]
        ticks = iter(range(0, 1 << 30, max(1, soak.count // 40)))
        command = ["score", "fanoutqa", str(soak.answers), *options]
        return soak.watched("score", server, lambda: command, lambda: next(ticks))


def say(line: str) -> None:
    print(line, flush=True)


STEPS = {"run": soak_run, "judge": soak_judge, "score": soak_score}


def soak(count: int, kills: int, steps: Sequence[str] = tuple(STEPS)) -> list[Watched]:
    """Prints the table. Raises AssertionError if anything is lost, wrong or paid too often."""
    say("| command | questions | kills | calls | paid twice | memory | handles | seconds |")
    say("|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="qabench-soak-") as name:
        one = Soak(Path(name), count, kills)
        results, scores = [], {}
        for step in steps:
            results.append(STEPS[step](one))
            scores[step] = json.loads(one.output).get("scores")
            say(results[-1].row(count))
    if "run" in scores and "score" in scores:
        assert scores["run"] == scores["score"], scores
    for result in results:
        assert result.twice <= result.kills * CONNECTIONS, f"{result.twice} calls paid twice"
    say("nothing lost; scores equal to those without any disturbance")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--steps", default=",".join(STEPS))
    options = parser.parse_args()
    soak(options.questions, options.kills, options.steps.split(","))
