"""``qabench.run`` with Python functions, and ``qabench run --solver``."""

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from openai_server import OpenAIServer
from typer.testing import CliRunner, Result

import qabench
from qabench.cli import app
from qabench.data.answers import loads, text_of
from qabench.errors import InputError, QabenchError
from qabench.evaluation import ANSWERED, FAILED, MISSING
from qabench.runs.functions import _append, name_with_digest
from qabench.runs.log import read_run

SOLVERS = """
from inspect_ai.agent import agent
from inspect_ai.model import ModelOutput
from inspect_ai.solver import solver

def answered(state):
    state.output = ModelOutput.from_content("fixed", "Jupiter 1.326")
    state.messages.append(state.output.message)
    return state

@solver
def fixed():
    async def solve(state, generate):
        return answered(state)
    return solve

@agent
def fixed_agent():
    async def execute(state):
        "Answer every question."
        return answered(state)
    return execute

@solver
def fails_once():
    async def solve(state, generate):
        from pathlib import Path
        if state.sample_id == SECOND and not Path("failed").exists():
            Path("failed").touch()
            raise RuntimeError("no luck")
        return answered(state)
    return solve
"""


@pytest.mark.quick
@pytest.mark.parametrize("name", qabench.benchmark_names())
def test_a_function_answers_every_benchmark(name: str) -> None:
    rows: list[Any] = []

    def answer(question: str, row: Any) -> str:
        rows.append((question, row))
        return "Answer: 1"

    evaluation = qabench.run(name, "sample", answer, limit=3)
    assert [record.status for record in evaluation.records] == [ANSWERED] * 3
    assert all(question in row.values() for question, row in rows)
    assert evaluation.available == len(qabench.benchmark(name).questions("sample"))
    for score in evaluation.scores().values():
        assert any(text.startswith("solver: answer-") for text in evaluation.deviations(score))


@pytest.mark.quick
def test_python_says_why_answers_of_a_function_are_not_usable() -> None:
    evaluation = qabench.run("fastbook", "sample", lambda question, row: ["a passage", "another"])
    reason = "the answer is not a string: ['a passage', 'another']; retrieved texts are the field \"passages\""
    assert not evaluation.scores() and evaluation.counts()["missing"] == len(evaluation.records) == 12
    for shown in (repr(evaluation), evaluation.to_markdown().replace("\\", ""), " ".join(evaluation.problems)):
        assert reason in shown and "12" in shown


@pytest.mark.quick
def test_the_scores_are_those_of_a_file_with_the_answers(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"

    async def answer(question: str, row: Any) -> dict[str, str]:
        return {"answer": text_of(loads(row["answer"]))}

    evaluation = qabench.run("fanoutqa", "sample", answer, output=path)
    scores = {name: score.interval for name, score in evaluation.scores().items()}
    of_file = qabench.evaluate_predictions("fanoutqa", "sample", path)
    assert scores == {name: score.interval for name, score in of_file.scores().items()}
    assert scores["acc.loose"].mean == 1


@pytest.mark.quick
def test_failures_are_recorded_and_asked_again(tmp_path: Path) -> None:
    """A failed question has no answer in the file, where null would be the answer "None"."""
    path, asked = tmp_path / "answers.jsonl", []

    def answer(question: str, row: Any) -> str | None:
        asked.append(row["id"])
        if len(asked) == 2:
            raise RuntimeError("no luck")
        return None if len(asked) == 3 else "42"

    options: dict[str, Any] = {"output": path, "concurrency": 1}
    first = qabench.run("fanoutqa", "sample", answer, limit=4, **options)
    assert [record.status for record in first.records] == [ANSWERED, FAILED, FAILED, ANSWERED]
    assert first.records[1].problem == "RuntimeError: no luck"
    assert first.records[2].problem == "InputError: the function returned None; expected a string or a dict"
    of_file = qabench.evaluate_predictions("fanoutqa", "sample", path)
    assert [record.status for record in of_file.records[:4]] == [ANSWERED, MISSING, MISSING, ANSWERED]
    with path.open("a", encoding="utf-8") as file:
        file.write('{"id": "cut')  # killed while writing
    second = qabench.run("fanoutqa", "sample", answer, limit=5, **options)
    assert asked[4:] == [second.records[i].id for i in (1, 2, 4)]
    assert [record.status for record in second.records] == [ANSWERED] * 5
    assert len(path.read_text().splitlines()) == 5 and all(map(json.loads, path.read_text().splitlines()))
    with pytest.raises(InputError, match="another benchmark or config"):
        qabench.run("felm", "sample", answer, **options)
    with pytest.raises(QabenchError, match="no question was answered: ZeroDivisionError"):
        qabench.run("fanoutqa", "sample", lambda question, row: str(1 / 0), limit=1)


def with_default(question: str, row: Any, text: str = "one") -> str:
    return text


def of_closure(text: Any) -> Any:
    return lambda question, row: str(text)


class Agent:
    def __init__(self, text: str) -> None:
        self.text = text
        self.asked = 0

    def answer(self, question: str, row: Any) -> str:
        self.asked += 1
        return self.text

    __call__ = answer


FUNCTIONS: list[Any] = [
    with_default, functools.partial(with_default, text="two"), functools.partial(with_default, text="three"),
    lambda question, row: "one", lambda question, row: "two",
    *map(of_closure, ["one", "two", {"one": 1}, {"one": 2}, with_default, Agent]), Agent("one"), Agent("two"),
    Agent("one").answer, Agent("two").answer,
]  # fmt: skip


@pytest.mark.quick
def test_functions_with_the_same_source_have_different_digests() -> None:
    names = [name_with_digest(function) for function in FUNCTIONS]
    assert len(set(names)) == len(names) and [name_with_digest(function) for function in FUNCTIONS] == names
    assert name_with_digest(of_closure({"one": 1})) == names[7]
    locks = [name_with_digest(of_closure(threading.Lock())) for _ in range(2)]
    assert locks[0] == locks[1]
    clients = [name_with_digest(functools.partial(Agent(text).answer, threading.Lock())) for text in ("one", "two")]
    assert clients[0] != clients[1]  # a client that cannot be pickled hides no other value
    defaults = with_default.__defaults__
    with_default.__defaults__ = ("four",)
    try:
        assert name_with_digest(with_default) != names[0]
    finally:
        with_default.__defaults__ = defaults
    agent = Agent("one")
    assert name_with_digest(agent.answer) == names[-2]
    agent.answer("?", {})
    # what a function counts does not make it another function
    assert name_with_digest(agent.answer) == names[-2]


def test_a_digest_is_the_same_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "agents.py").write_text(
        "import os\nTEXT = os.environ['TEXT']\ndef helper(): return TEXT\ndef make(*parts):\n"
        "    return lambda question, row, cut=None: helper() + str(parts)\n"
    )
    program = "import agents; from qabench.runs.functions import name_with_digest as n\n"
    program += "print(n(agents.make({'b', 'a', 'c'}, ['x'], {'k': 1.5}, agents.helper, object())))"
    printed = set()
    for seed, text in ("1", "one"), ("2", "one"), ("2", "two"):
        command = [sys.executable, "-c", program]
        environment = os.environ | {"PYTHONHASHSEED": seed, "TEXT": text}
        printed.add(subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True).stdout)
    assert len(printed) == 2  # of "one" and of "two"


def test_the_answers_of_another_function_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    options: dict[str, Any] = {"output": path}
    first = qabench.run("fanoutqa", "sample", of_closure("one"), limit=1, **options)
    assert json.loads(path.read_text())["function"] == first.model
    message = rf"has answers of {first.model}, not of <lambda>-.*delete the file.*keep_answers"
    with pytest.raises(InputError, match=message):
        qabench.run("fanoutqa", "sample", of_closure("two"), limit=2, **options)
    assert len(path.read_text().splitlines()) == 1
    both = qabench.run("fanoutqa", "sample", of_closure("two"), limit=2, keep_answers=True, **options)
    assert [record.answer for record in both.records] == ["one", "two"]
    assert both.model == "+".join(sorted([first.model, name_with_digest(of_closure("two"))]))
    path.write_text(json.dumps({"id": first.records[0].id, "answer": "three"}) + "\n")
    with pytest.raises(InputError, match="has answers of an unknown function"):
        qabench.run("fanoutqa", "sample", of_closure("two"), **options)


def test_ctrl_c_keeps_the_answers_and_says_how_to_go_on(tmp_path: Path, capsys: Any) -> None:
    path, asked = tmp_path / "answers.jsonl", []

    def answer(question: str, row: Any) -> str:
        asked.append(question)
        if len(asked) == 3:
            signal.raise_signal(signal.SIGINT)
        return "42"

    options: dict[str, Any] = {"output": path, "concurrency": 1, "limit": 5}
    first = qabench.run("fanoutqa", "sample", answer, **options)
    done = len(path.read_text().splitlines())
    assert (first.status, first.counts()[ANSWERED], first.counts()[MISSING]) == ("cancelled", done, 5 - done)
    said = capsys.readouterr().err
    assert f"interrupted after {done} of 5 questions; repeat the call to ask the others; {path} has" in said
    second = qabench.run("fanoutqa", "sample", answer, **options)
    assert (second.status, second.counts()[ANSWERED]) == ("success", 5)
    with pytest.raises(InputError, match=r"qabench\.run\(NAME, CONFIG, answer\)"):
        qabench.run("fanoutqa", answer)  # type: ignore[arg-type]


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"anser": "42"}, "InputError: the function's answer is {'anser': '42'}; allowed: a string, or a dict"),
        ({"answer": {1, 2}}, "allowed: a string, or a dict"),
        ({}, "allowed: a string, or a dict"),
        (b"42", "InputError: the function's answer is b'42'; allowed: a string, or a dict"),
        (object(), "allowed: a string, or a dict"),
        (float("nan"), "InputError: the function's answer is nan; allowed: a string, or a dict"),
        (Unprintable(), "RuntimeError: no repr"),
    ],
)
def test_a_bad_answer_is_one_failed_question(reply: Any, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    asked: list[str] = []

    def answer(question: str, row: Any) -> Any:
        asked.append(question)
        return reply if len(asked) == 2 else "42"

    evaluation = qabench.run("fanoutqa", "sample", answer, output=path, concurrency=1, limit=4)
    assert [record.status for record in evaluation.records] == [ANSWERED, FAILED, ANSWERED, ANSWERED]
    assert reason in str(evaluation.records[1].problem)
    assert ["answer" in json.loads(line) for line in path.read_text().splitlines()] == [True, False, True, True]


@pytest.mark.quick
def test_an_answer_is_scored_as_it_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    replies: list[Any] = []
    for _ in range(2):  # the second run reads the file
        evaluation = qabench.run(
            "fanoutqa", "sample", lambda question, row: {"answer": ("Mars", 1998), "n": {1: 2}}, output=path, limit=2
        )
        replies.append([(record.answer, record.scores) for record in evaluation.records])
    assert replies[0] == replies[1]


@pytest.mark.quick
def test_no_part_of_an_answer_stays_on_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    _append(path, {"id": "1"})
    resource = pytest.importorskip("resource", reason="limits of POSIX")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40, limits[1]))
        with pytest.raises(QabenchError, match="repeat the call to continue"):
            _append(path, {"id": "2", "answer": "x" * 100})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    _append(path, {"id": "3"})
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["1", "3"]


@pytest.mark.quick
def test_answers_in_flight_are_written_when_the_run_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    all_started = threading.Barrier(3)
    started: list[str] = []

    def answer(question: str, row: Any) -> str:
        started.append(question)
        if len(started) <= 3:
            all_started.wait()
        else:
            time.sleep(0.5)  # the main thread gets the signal before all questions are answered
        if question == started[0]:
            signal.raise_signal(signal.SIGINT)
        return "42"

    evaluation = qabench.run("fanoutqa", "sample", answer, output=path, concurrency=3)
    assert evaluation.status == "cancelled" and len(started) < 8
    assert len(path.read_text().splitlines()) == len(started) == evaluation.counts()[ANSWERED]


@pytest.mark.quick
def test_a_model_in_python(tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    options: dict[str, Any] = {"setting": "raw", "config": "sample", "limit": 2, "log_dir": tmp_path}
    options["progress"] = lambda *counts: done.append(counts)
    with OpenAIServer() as server:
        evaluation = qabench.run("felm", model="m", base_url=server.base_url, **options)
    assert [record.status for record in evaluation.records] == [ANSWERED] * 2 and done[-1] == (2, 2)
    assert evaluation.setting == "raw" and Path(evaluation.path).parent == tmp_path
    with pytest.raises(InputError, match="log_dir"):
        qabench.run("felm", "sample", model="m", output=tmp_path / "answers.jsonl")


@pytest.fixture
def solvers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    second = list(qabench.benchmark("felm").questions("sample"))[1]
    Path("solvers.py").write_text(SOLVERS.replace("SECOND", repr(second)))
    return tmp_path / "solvers.py"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["run", *arguments])


@pytest.mark.parametrize("name", ["fixed", "fixed_agent"])
def test_a_solver_answers(name: str, solvers: Path) -> None:
    result = run("fanoutqa", "--config", "sample", "--limit", "2", "--solver", f"solvers.py@{name}")
    assert f"not official (all scores): solver: {name}-" in result.output
    (log,) = Path("logs").glob("*.eval")
    evaluation = read_run(log)
    assert evaluation.setting == "agent" and evaluation.model.startswith(f"{name}-")
    assert [record.answer for record in evaluation.records] == ["Jupiter 1.326"] * 2


def test_a_run_with_a_solver_is_resumed_with_the_same_file(solvers: Path) -> None:
    option = ["--solver", "solvers.py@fails_once"]
    run("felm", "--config", "sample", "--limit", "2", *option)
    (log,) = Path("logs").glob("*.eval")
    assert [record.status for record in read_run(log).records] == [ANSWERED, FAILED]
    source = solvers.read_text()
    solvers.write_text(source + "\n")
    for repeated in ([], option):
        error = run("--resume", str(log), *repeated).exception
        assert isinstance(error, InputError) and "was run with the solver fails_once-" in str(error)
    solvers.write_text(source)
    assert run("--resume", str(log)).exit_code == 0
    newest = max(Path("logs").glob("*.eval"), key=lambda path: path.stat().st_mtime)
    assert [record.status for record in read_run(newest).records] == [ANSWERED] * 2
