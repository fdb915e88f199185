"""Shared by all tests: empty caches, no network, and optional real data and models."""

import ast
import gc
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# `python -m pytest` puts the root first, where an egg-info folder hides the installation.
ROOT = Path(__file__).parent.parent
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != ROOT]


def _parse_without_collection(*arguments: Any, **options: Any) -> Any:
    """Parse Python code: a warning from the garbage collector inside Python 3.11's parser is a
    SystemError.
    """
    gc.disable()
    try:
        return _parse(*arguments, **options)
    finally:
        gc.enable()


_parse, ast.parse = ast.parse, _parse_without_collection

# No timed assertions: machines are shared.
# The same inputs in each run: a failure comes from the change that CI checks.
settings.register_profile("qabench", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=20)

# Set before datasets and evaluate are imported, which read these once: tests do not use the user's
# caches.
_home = tempfile.TemporaryDirectory(prefix="qabench-tests-", ignore_cleanup_errors=True)
os.environ["HF_HOME"] = str(Path(_home.name) / "huggingface")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
os.environ["QABENCH_CACHE"] = str(Path(_home.name) / "qabench")
os.environ["QABENCH_OFFLINE"] = "1"
# pytest-xdist sets it to 80, and commands would wrap what they print in its processes only.
os.environ.pop("COLUMNS", None)
# Tests do not spend money.
for name in ("FANOUTQA_OPENAI_API_KEY", "FANOUTQA_OPENAI_API_BASE", "FANOUTQA_JUDGE_MODEL"):
    os.environ.pop(name, None)


SKIP_REASONS = 5  # that the summary lists
NOT_COLLECTED = pytest.StashKey[list[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--integration", action="store_true", help="also the tests that start real servers")
    parser.addoption("--runslow", action="store_true", help="also the tests that take minutes")
    parser.addoption("--passed-to", metavar="FILE", type=Path, help="append the tests that pass to this file")
    parser.addoption(
        "--expected-skips",
        metavar="FILE",
        type=Path,
        help="fail if a test is skipped for a reason that begins with no line of this file",
    )
    parser.addoption("--passed-before", metavar="FILE", type=Path, help="leave out the tests in this file")


# Folders and files whose tests start processes, servers, a browser or runs of models: minutes on a
# laptop, so they run with --runslow, as in CI. Without it they are not even imported, unless named
# on the command line.
SLOW_FOLDERS = {"cluster", "contributing", "faults", "hub", "recipes", "report", "runs"}
SLOW_FILES = {
    "across/test_portability.py",
    "adapters/test_lm_eval.py",
    "benchmarks/expertqa/test_tasks.py",
    "benchmarks/expertqa/test_tasks_web.py",
    "benchmarks/fanoutqa/test_judge.py",
    "benchmarks/fanoutqa/test_paths.py",
    "benchmarks/fanoutqa/test_tasks.py",
    "benchmarks/fastbook/test_commands.py",
    "benchmarks/fastbook/test_tasks.py",
    "benchmarks/felm/test_same_scores.py",
    "benchmarks/felm/test_tasks.py",
    "cli/test_cli.py",
    "cli/test_compare.py",
    "cli/test_data.py",
    "data/test_containers.py",
    "llm/test_client.py",
    "retrieval/test_lucene.py",
    "retrieval/wiki/test_cli.py",
    "retrieval/wiki/test_faults.py",
}

# Files in these folders that run in seconds, and files in which the tests with the mark "quick" do.
QUICK_FILES = {
    "hub/test_results.py",
    "report/test_report.py",
    "runs/test_human.py",
    "runs/test_planning.py",
    "runs/test_score_tables.py",
}
PARTLY_QUICK_FILES = {
    "adapters/test_lm_eval.py",
    "contributing/test_contributing.py",
    "runs/test_folders.py",
    "runs/test_functions.py",
    "runs/test_running.py",
}
PARTLY_QUICK_FOLDERS = {"contributing", "hub", "report", "runs"}


def _is_slow(path: Path) -> bool:
    inside = path.relative_to(ROOT / "tests")
    if inside.as_posix() in QUICK_FILES:
        return False
    return inside.parts[0] in SLOW_FOLDERS or inside.as_posix() in SLOW_FILES


def _is_left_out(path: Path) -> bool:
    inside = path.relative_to(ROOT / "tests").as_posix()
    return inside not in PARTLY_QUICK_FOLDERS | PARTLY_QUICK_FILES and _is_slow(path)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NOT_COLLECTED] = []
    # Generated inputs: a few in a newcomer's run, hypothesis' usual hundred in CI.
    settings.load_profile("qabench" if config.getoption("--runslow") else "quick")
    # Processes of pytest-xdist report to the first one.
    if config.getoption("--passed-to") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(PassedTests(config.getoption("--passed-to")))


class PassedTests:
    """Appends the ids of tests that pass to a file, so that CI tries no test twice in one
    environment.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{report.nodeid}\n")


def _leave_out_passed(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that have passed, except those with generated inputs, of which --runslow tries
    more.
    """
    path = config.getoption("--passed-before")
    if path is None or not path.is_file():
        return
    passed = set(path.read_text(encoding="utf-8").splitlines())
    left_out = [
        item for item in items if item.nodeid in passed and not hasattr(getattr(item, "obj", None), "hypothesis")
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        chosen = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in chosen]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    inside = collection_path.is_relative_to(ROOT / "tests") and collection_path != ROOT / "tests"
    if inside and _is_left_out(collection_path) and not config.getoption("--runslow"):
        config.stash[NOT_COLLECTED].append(collection_path)
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_out_passed(config, items)
    for item in items:
        if _is_slow(item.path) and "quick" not in item.keywords:
            item.add_marker("slow")
    left_out = {"slow": ("--runslow", "takes minutes"), "integration": ("--integration", "starts real servers")}
    for mark, (option, why) in left_out.items():
        if not config.getoption(option):
            for item in items:
                if mark in item.keywords:
                    item.add_marker(pytest.mark.skip(reason=f"{why}: {option}"))


@pytest.fixture
def compared(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Called with the size of a parity test's comparison, which is printed at the end of the run."""
    return lambda what: request.node.user_properties.append(("compared", what))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    _say_why_skipped(terminalreporter)
    reports = terminalreporter.stats.get("passed", [])
    lines = [f"{r.nodeid}: {value}" for r in reports for name, value in r.user_properties if name == "compared"]
    if lines:
        terminalreporter.section("compared, all equal")
        terminalreporter.write_line("\n".join(sorted(lines)))


def _skip_reasons(terminalreporter: pytest.TerminalReporter) -> Counter[str]:
    """Return the number of skipped tests by reason."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        longrepr = report.longrepr
        reason = str(longrepr[2] if isinstance(longrepr, tuple) else longrepr)
        counts[reason.removeprefix("Skipped: ").partition(": /")[0]] += 1
    return counts


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which a test was skipped that is meant to run there."""
    path = session.config.getoption("--expected-skips")
    if path is None or hasattr(session.config, "workerinput"):
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    expected = tuple(line for line in lines if line and not line.startswith("#"))
    terminalreporter = session.config.pluginmanager.get_plugin("terminalreporter")
    unexpected = [reason for reason in _skip_reasons(terminalreporter) if not reason.startswith(expected)]
    for reason in unexpected:
        terminalreporter.write_line(f"unexpected skip: {reason}; expected ones are in {path}")
    if unexpected and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _say_why_skipped(terminalreporter: pytest.TerminalReporter) -> None:
    """One line per reason, not one per test."""
    counts = _skip_reasons(terminalreporter)
    # A complete run, such as CI's, lists all reasons.
    if len(counts) > SKIP_REASONS and not terminalreporter.config.getoption("--runslow"):
        rest = sum(count for _, count in counts.most_common()[SKIP_REASONS:])
        counts = Counter(dict(counts.most_common(SKIP_REASONS))) + Counter({"for other reasons: pytest -rs": rest})
    for reason, count in counts.items():
        terminalreporter.write_line(f"skipped {count}: {reason}")
    if folders := terminalreporter.config.stash[NOT_COLLECTED]:
        terminalreporter.write_line(f"left out {len(folders)} folders and files whose tests take minutes: --runslow")


@pytest.fixture(autouse=True)
def _no_model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the fixture ``spacy_model``, a test runs as on a machine without a spaCy model."""
    if "spacy_model" not in request.fixturenames:
        monkeypatch.delenv("QABENCH_SPACY_MODEL", raising=False)


@pytest.fixture(autouse=True)
def _from_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in messages that install an extra are those of a released qabench."""
    monkeypatch.setattr("qabench.errors.install_origin", dict)


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The folder with the real data."""
    named = os.environ.get("QABENCH_MIRROR")
    if not named or not Path(named).is_dir():
        pytest.skip("needs the real data: set QABENCH_MIRROR to a mirror (qabench fetch --mirror DIR)")
    return Path(named)


_MODEL = os.environ.get("QABENCH_SPACY_MODEL", "en_core_web_sm")


@pytest.fixture
def spacy_model() -> str:
    """A spaCy model of en_core_web_sm's architecture: an installed one, or QABENCH_SPACY_MODEL."""
    spacy = pytest.importorskip("spacy", reason="needs the extra parity")
    if not (spacy.util.is_package(_MODEL) or Path(_MODEL).is_dir()):
        pytest.skip("needs a spaCy model: install en_core_web_sm, or set QABENCH_SPACY_MODEL")
    return _MODEL


@pytest.fixture
def server() -> Iterator[Any]:
    """A server of chat completions; some modules have servers of other kinds under this name."""
    from openai_server import OpenAIServer

    with OpenAIServer() as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder for this test only."""
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"
