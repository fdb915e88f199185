"""Broken benchmarks from outside: they stop no command of another benchmark, and are named in one
line.
"""

import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import qabench
from qabench import benchmarks
from qabench.benchmarks.outside import custom_module
from qabench.cli import app, main, outside
from qabench.cli.new import new
from qabench.errors import InputError
from qabench.loading_scripts import usable_names
from qabench.runs.trust import task_of

ANSWERS = [{"id": "r1", "answer": "It is the Seine."}]
INSTANCE = "BENCHMARK = Rivers()"
LOGS = "from qabench.benchmarks.logs import Logs\n\n\nclass OwnLogs(Logs):\n"
OWN_LOGS = f"\n\nRivers.logs = lambda self: OwnLogs(self)\n{INSTANCE}"
# A change of the module of `qabench new` -> a part of the error of the benchmark.
CHANGES = {
    "syntax": ("class Rivers(", "class Rivers((", "SyntaxError"),
    "import": ("from typing import Any", "import no_such_module", "No module named 'no_such_module'"),
    "exit": (INSTANCE, f"raise SystemExit(0)\n{INSTANCE}", "SystemExit: 0"),
    "error": (INSTANCE, f"1 / 0\n{INSTANCE}", "ZeroDivisionError: division by zero"),
    "scores": (INSTANCE, f"Rivers.scores = 3\n{INSTANCE}", "scores is 3; allowed: a tuple or list with elements"),
    "settings": (INSTANCE, f"Rivers.settings = 5\n{INSTANCE}", "settings is 5; allowed: a tuple or list"),
    "options": (INSTANCE, f"Rivers.options = ['x']\n{INSTANCE}", "options is ['x']; allowed: a tuple or list"),
    "title": (INSTANCE, f"Rivers.title = None\n{INSTANCE}", "title is None; allowed: a string"),
    "groups": (INSTANCE, f"Rivers.groups = ['match']\n{INSTANCE}", "groups is ['match']; allowed: a dictionary"),
    "field": ('Setting("closed-book"', "Setting(7", "settings: the field name is 7; allowed: a string"),
    "models of logs": (
        INSTANCE,
        f"{LOGS}    model_fields = 'judge'\n{OWN_LOGS}",
        "model_fields is 'judge'; allowed",
    ),
    "kinds of logs": (INSTANCE, f"{LOGS}    kinds = []\n{OWN_LOGS}", "Logs: kinds is []; allowed: a dictionary"),
    "moved attribute": (INSTANCE, f"Rivers.log_kinds = {{}}\n{INSTANCE}", "Benchmark.log_kinds is now Logs.kinds of"),
    "moved method": (INSTANCE, f"Rivers.counts = None\n{INSTANCE}", "the method numbers() of the benchmark returns"),
    "other": (INSTANCE, "BENCHMARK = type('B', (), {'name': 'rivers'})()", "not an instance of a subclass"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    new("rivers", tmp_path)
    monkeypatch.setenv("QABENCH_PATH", str(tmp_path))
    return tmp_path / "rivers"


def change(folder: Path, old: str, new_text: str) -> None:
    path = folder / "__init__.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new_text))


def never_imported(name: str, folder: Path) -> Any:
    raise AssertionError(f"{name} is imported")


@pytest.mark.parametrize("kind", CHANGES)
def test_a_broken_benchmark_is_one_error(folder: Path, kind: str) -> None:
    old, new_text, message = CHANGES[kind]
    change(folder, old, new_text)
    with pytest.raises(InputError, match=re.escape(message)) as raised:
        qabench.evaluate_predictions("rivers", None, ANSWERS)
    assert "\n" not in str(raised.value)
    assert str(folder / "__init__.py") in str(raised.value)
    assert custom_module("rivers") not in sys.modules


@pytest.mark.parametrize("arguments", ["--help", "score --help", "run --help", "stats felm", "list felm"])
def test_commands_do_not_import_benchmarks_that_are_not_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    monkeypatch.setattr(benchmarks, "custom_benchmark", never_imported)
    (folder / "commands.py").write_text("")
    assert CliRunner().invoke(app, arguments.split()).exit_code in (0, 1)


def test_built_in_logs_and_scores_do_not_import_outside_code(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks, "custom_benchmark", never_imported)
    file = tmp_path / "answers.jsonl"
    file.write_text('{"id": "x", "answer": "y"}\n')
    result = CliRunner().invoke(app, ["score", "felm", str(file)])
    assert not isinstance(result.exception, AssertionError)
    assert task_of("felm", {}, "x.eval")[0].name == "felm"


def test_options_of_a_named_benchmark(folder: Path, tmp_path: Path) -> None:
    change(folder, "    groupings = ", '    options = (Option("shade", "A shade."),)\n    groupings = ')
    change(folder, "import Benchmark, Setting", "import Benchmark, Option, Setting")
    assert "--shade" in CliRunner().invoke(app, ["score", "rivers", "--help"]).output
    assert "--shade" not in CliRunner().invoke(app, ["score", "felm", "--help"]).output


def test_a_module_has_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qabench.benchmarks import base

    new("base", tmp_path)
    monkeypatch.setenv("QABENCH_PATH", str(tmp_path))
    assert qabench.benchmark("base").title == "Base"
    assert sys.modules["qabench.benchmarks.base"] is base


def test_a_submodule_is_imported_relatively(folder: Path) -> None:
    (folder / "formulas.py").write_text("TITLE = 'Streams'\n")
    change(folder, "class RiversScorer", "from .formulas import TITLE\n\n\nclass RiversScorer")
    change(folder, 'title = "Rivers"', "title = TITLE")
    assert qabench.benchmark("rivers").title == "Streams"


def test_special_files_and_entry_points_are_no_benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "__init__.py")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("QABENCH_PATH", os.pathsep.join(map(str, (tmp_path, tmp_path / "fifo", tmp_path / "none"))))
    assert set(qabench.benchmark_names()) - set(benchmarks.shipped_names()) == {"pipe"}
    with pytest.raises(InputError, match=r"benchmark pipe cannot be imported: .*is not a regular file"):
        qabench.benchmark("pipe")
    with pytest.warns(UserWarning, match=r"left out: .*pipe"):
        assert usable_names() == benchmarks.shipped_names()


def test_listings_name_broken_benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = {
        "bad": "BENCHMARK = (\n",
        "ending": "import os\nos._exit(3)\nBENCHMARK = 1\n",
        "slow": "import time\ntime.sleep(60)\nBENCHMARK = 1\n",
    }
    for name, code in codes.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(code)
    new("rivers", tmp_path)
    monkeypatch.setenv("QABENCH_PATH", str(tmp_path))
    real = outside.subprocess.Popen.communicate

    # Only the slow one has a deadline, so that a busy machine changes nothing.
    def communicate(process: subprocess.Popen[str], *, timeout: float | None = None) -> Any:
        slow = "slow" in str(process.args)
        return real(process, timeout=0.01 if slow and timeout is not None else None)

    monkeypatch.setattr(outside.subprocess.Popen, "communicate", communicate)
    result = outside.listing("configs")
    assert [row["benchmark"] for row in result.rows][-1] == "rivers"
    assert "SyntaxError: '(' was never closed" in result.broken["bad"] and "\n" not in result.broken["bad"]
    assert result.broken["ending"] == "its import ends with exit code 3"
    assert result.broken["slow"] == "its import takes more than 5 seconds"


@pytest.mark.parametrize("value", ["1", None, 1j, 10**400, [1.0], b"1", Decimal(1), {"a": 1}])
def test_scores_that_are_no_numbers(folder: Path, value: object) -> None:
    change(folder, '{"match": match(item.row["answer"], answer)}', "{'match': VALUE}")
    change(folder, INSTANCE, f"from decimal import Decimal\nVALUE = {value!r}\n{INSTANCE}")
    shown = "an integer of too many digits" if value == 10**400 else f"{value!r}"
    message = f"rivers: its scorer returned for the question 'r1' the score 'match': {shown}; allowed: a number"
    with pytest.raises(InputError, match=re.escape(message)):
        qabench.evaluate_predictions("rivers", None, ANSWERS)


def test_a_metric_names_the_position(folder: Path) -> None:
    change(folder, '{"match": match(item.row["answer"], answer)}', "{'match': None}")
    with pytest.raises(InputError, match=r"rivers: its scorer returned for the question '1' the score 'match': None"):
        qabench.load_metric("rivers_match").compute(predictions=["x"], references=["y"])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('no')", r"its scorer raised KeyError: 'no' for the question 'r1' .*rivers/__init__.py, line "),
        ("return 5", "its scorer returned for the question 'r1' 5; allowed: an Outcome"),
        ("return None", "its scorer returned for the question 'r1' None; allowed: an Outcome"),
        ("return Outcome(3)", "returned for the question 'r1' the scores 3; allowed: a dictionary"),
        ("return Outcome({}, detail='x')", "returned for the question 'r1' the detail 'x'; allowed: a dictionary"),
        ("return Outcome({}, status='odd')", "the status 'odd'; allowed: answered, "),
        ("return Outcome({}, answer=7)", "the answer 7; allowed: a string or None"),
        ("return Outcome({3: 1.0})", "the score 3: 1.0; allowed: a string as name, and a number"),
    ],
)
def test_what_a_scorer_raises_or_returns(folder: Path, body: str, message: str) -> None:
    text = (folder / "__init__.py").read_text()
    start, _, rest = text.partition('        answer = (item.fields or {}).get("answer")\n')
    (folder / "__init__.py").write_text(f"{start}        {body}\n\n\n{rest[rest.index('class Rivers(') :]}")
    with pytest.raises(InputError, match=message):
        qabench.evaluate_predictions("rivers", None, ANSWERS)


@pytest.mark.parametrize(("result", "shown"), [("3", "3"), ("[]", "0 outcomes"), ("None", "None")])
def test_a_scorer_of_many_items_returns_one_outcome_each(folder: Path, result: str, shown: str) -> None:
    code = f"    def score(self, items, progress=None):\n        return {result}\n\n    def outcome("
    change(folder, "    def outcome(", code)
    with pytest.raises(InputError, match=f"rivers: its scorer returned {shown} for 4 questions; allowed"):
        qabench.evaluate_predictions("rivers", None, ANSWERS)


def test_other_errors_in_its_code_are_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder, "    def scorer(", "    def question(self, row):\n        return 1 / 0\n\n    def scorer(")
    monkeypatch.setattr(sys, "argv", ["qabench", "score", "rivers", str(folder / "questions.jsonl")])
    with pytest.raises(SystemExit) as stopped:
        main()
    error = capsys.readouterr().err
    assert stopped.value.code == 1 and error.count("\n") == 1
    assert error.startswith("qabench: the benchmark rivers failed: ZeroDivisionError: division by zero (")
    assert f"{folder}/__init__.py, line " in error


def test_a_bug_of_this_package_keeps_its_traceback() -> None:
    from qabench.benchmarks.felm.scorer import FelmScorer
    from qabench.evaluation.scoring import Item, outcomes_of

    with pytest.raises((KeyError, TypeError, AttributeError)):
        outcomes_of(object.__new__(FelmScorer), [Item({}, {"reply": 3})], "felm")
