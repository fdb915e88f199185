"""Submissions to FanOutQA's leaderboard: real ones, invalid ones, and how the leaderboard reads the
files.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from qabench.benchmarks.fanoutqa import BENCHMARK
from qabench.benchmarks.fanoutqa.commands import DROPPED, submit
from qabench.errors import InputError
from qabench.evaluation.scoring import Question, Questions
from qabench.loading_scripts.fanoutqa.leaderboard import SETTINGS

IDS = [f"q{i}" for i in range(4)]
METADATA: dict[str, Any] = {
    "name": "Imaginary 7B", "authors": "Nobody", "url": None, "citation": "Nobody, 2026", "type": "PROMPT",
    "context": 4096, "is_trained_for_function_calling": False,
}  # fmt: skip
REAL = {"closedbook": "closedbook", "openbook": "openbook", "evidenceprovided": "wiki-provided"}


def official_check(root: Path, name: str) -> dict[str, dict[str, str]]:
    """Reads a file like the leaderboard's check, and fails like it; the last answer to an id
    counts.
    """
    metadata = json.loads((root / f"metadata/{name}.json").read_text(encoding="utf-8"))
    required = {*METADATA, *(f"{setting}_generations" for setting in SETTINGS)}
    assert required <= metadata.keys() <= required | {"details"}
    read: dict[str, dict[str, str]] = {}
    for setting in SETTINGS:
        if file := metadata[f"{setting}_generations"]:
            with (root / f"{setting}-generations" / file).open(encoding="utf-8") as lines:
                rows = [json.loads(line) for line in lines]
            assert all(type(row["answer"]) is str for row in rows)
            read[setting] = {row["id"]: row["answer"] for row in rows}
    return read


@pytest.fixture(autouse=True)
def four_questions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = Questions("test", "", [Question(id, "", "", {}, {}) for id in IDS])
    if "mirror" not in request.fixturenames:
        monkeypatch.setattr(type(BENCHMARK), "load", lambda self, config: questions)


def invoke(*arguments: Any) -> Result:
    app = typer.Typer()
    app.command()(submit)
    return CliRunner().invoke(app, [*map(str, arguments)])


def metadata_file(folder: Path, **changes: Any) -> Path:
    path = folder / "metadata.json"
    path.write_text(json.dumps(METADATA | changes, indent=2), encoding="utf-8")
    return path


def answers_file(folder: Path, *rows: Any, name: str = "a.jsonl") -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return folder / name


def good(folder: Path, name: str = "a.jsonl") -> Path:
    return answers_file(folder, *[{"id": i, "answer": f"{name} {i}"} for i in IDS], name=name)


def rejection(folder: Path, path: Path, *options: object, name: str = "it", **changes: Any) -> str:
    """The error for a submission, of which nothing is written."""
    metadata = metadata_file(folder, **changes)
    out = folder / "out"
    done = invoke("--name", name, "--metadata", metadata, "--open-book", path, "--out", out, *options)
    assert isinstance(done.exception, InputError) and not out.exists()
    return str(done.exception)


@pytest.mark.parametrize(
    ("name", "missing"), [("gpt-4o", {"openbook": 3}), ("claude-3", {"openbook": 9, "evidenceprovided": 1})]
)
def test_real_submissions_pass_with_warnings(
    mirror: Path, tmp_path: Path, name: str, missing: dict[str, int], compared: Callable[[str], None]
) -> None:
    root = mirror / "zhudotexe/fanoutqa/leaderboard-submissions"
    real = {s: root / f"{s}-generations/results-{word}-{name}.jsonl" for s, word in REAL.items()}
    if not all(path.is_file() for path in real.values()):
        pytest.skip("the mirror has no submissions")
    options = [
        f"--{option}={real[s]}"
        for option, s in zip(("closed-book", "open-book", "evidence-provided"), SETTINGS, strict=True)
    ]
    done = invoke(f"--metadata={root}/metadata/{name}.json", f"--name={name}", *options, f"--out={tmp_path}")
    assert done.exit_code == 0, done.exception
    read = official_check(tmp_path, name)
    for setting, path in real.items():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        # The answers and their order are not changed.
        assert list(read[setting].items()) == [(row["id"], row["answer"]) for row in rows]
        warned = [line for line in done.stderr.splitlines() if line.startswith(str(path))]
        count = missing.get(setting, 0)
        assert len(warned) == (count > 0) and all(f"which score 0: {count} (" in line for line in warned)
    compared(f"{sum(map(len, read.values()))} answers handed in as they are")


def test_a_submission_of_one_setting(tmp_path: Path) -> None:
    options = ("--metadata", metadata_file(tmp_path), "--open-book", good(tmp_path), "--out", tmp_path)
    done = invoke("--name=my_7B-2", *options)
    assert (done.exit_code, done.stderr) == (0, "")
    for part in ("openbook-generations/my_7B-2.jsonl", "metadata/my_7B-2.json", "pull request", "zhudotexe/fanoutqa"):
        assert part in done.stdout
    assert official_check(tmp_path, "my_7B-2") == {"openbook": {i: f"a.jsonl {i}" for i in IDS}}
    metadata = json.loads((tmp_path / "metadata/my_7B-2.json").read_text(encoding="utf-8"))
    files = {"closedbook_generations": None, "openbook_generations": "my_7B-2.jsonl"}
    assert metadata == METADATA | files | {"evidenceprovided_generations": None}
    again = invoke("--name=my_7B-2", *options)
    assert "my_7B-2.jsonl exists: use another --name or --out" in str(again.exception)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"type": "MODEL"}, "field 'type': expected one of FOUNDATION, FINETUNE"),
        ({"context": "4096"}, "field 'context': expected integer"),
        ({"context": True}, "field 'context': expected integer"),
        ({"is_trained_for_function_calling": "no"}, "expected true or false"),
        ({"url": 7}, "expected string or null"),
        ({"details": 7}, "field 'details': expected string"),
        ({"license": "mit"}, "unknown field 'license'; the fields are name, authors"),
    ],
)
def test_invalid_metadata(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    assert said in rejection(tmp_path, good(tmp_path), **changes)


WITHOUT_URL = json.dumps({key: value for key, value in METADATA.items() if key != "url"}).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "there is no file"), (b"\xff\xfe", "m.json"), (b"[1]", "an object"), (WITHOUT_URL, "'url' is missing")],
)
def test_files_without_metadata(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "m.json"
    if content is not None:
        path.write_bytes(content)
    assert said in rejection(tmp_path, good(tmp_path), "--metadata", path)


@pytest.mark.parametrize("name", ["", "a.b", "../a", "\u00e9", "a\n"])
def test_names_of_other_characters(tmp_path: Path, name: str) -> None:
    assert "a name of letters, digits, - and _" in rejection(tmp_path, good(tmp_path), name=name)


def test_the_question_that_the_corrections_dropped(mirror: Path) -> None:
    # The package on PyPI contains the questions of November 2023.
    package = pytest.importorskip("fanoutqa", reason="needs the extra parity")
    path = Path(package.__file__).parent / "data/fanout-final-test.json"
    old = {row["id"] for row in json.loads(path.read_bytes())}
    assert old - {question.id for question in BENCHMARK.load("test").rows} == {DROPPED}


def test_every_problem_of_answers_is_named_with_its_line(tmp_path: Path) -> None:
    path = answers_file(
        tmp_path, {"id": "q0", "answer": "fine"}, {"id": "q1", "answer": None}, {"id": "q0", "answer": "again"},
        '{"id": "q2", "answ', {"id": "other", "answer": "x"}, {"id": "q2", "answer": ["a", "b"]},
        {"id": DROPPED, "answer": " "}, "", {"id": "q3", "answer": "long" * 1001},
    )  # fmt: skip
    error = rejection(tmp_path, path)
    for part in (
        "unreadable lines: 1 (line 4: not JSON",
        "replaced by a later line: 1 (q0 (line 1))",
        "for unknown questions: 1 (other (line 5))",
        "that are not strings: 2 (q1 (line 2), q2 (line 6))",
    ):
        assert part in error
    assert "cannot read" in rejection(tmp_path, tmp_path / "nowhere.jsonl")


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    path = answers_file(tmp_path, {"id": "other", "answer": "x"}, {"id": "q1", "answer": 7})
    metadata = metadata_file(tmp_path, type="MODEL", context="4096", license="mit")
    done = invoke("--name=a.b", "--metadata", metadata, "--open-book", path, "--closed-book", tmp_path / "none.jsonl")
    first, *lines = str(done.exception).splitlines()
    assert isinstance(done.exception, InputError) and first == "the submission has 7 errors:"
    expected = [
        "--name is 'a.b'; allowed: a name of letters, digits, - and _",
        f"cannot read {tmp_path}/none.jsonl",
        f"{path}: predictions for unknown questions: 1 (other (line 1)). Fix or remove these lines",
        f"{path}: answers that are not strings: 1 (q1 (line 2)). Fix or remove these lines",
        f"{metadata}: unknown field 'license'",
        f"{metadata}, field 'type': expected one of FOUNDATION",
        f"{metadata}, field 'context': expected integer",
    ]
    for line, start in zip(lines, expected, strict=True):
        assert line.strip().startswith(start), line


def test_no_answers(tmp_path: Path) -> None:
    done = invoke("--name=a", "--metadata", metadata_file(tmp_path))
    assert str(done.exception).startswith("there are no answers; give those of at least one setting")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(st.sampled_from(IDS), TEXTS, min_size=1), st.booleans())
def test_unchanged_answers(tmp_path_factory: pytest.TempPathFactory, answers: dict[str, str], escaped: bool) -> None:
    folder = tmp_path_factory.mktemp("any")
    lines = [json.dumps({"answer": text, "id": i, "model": "m"}, ensure_ascii=escaped) for i, text in answers.items()]
    (folder / "a.jsonl").write_bytes("\r\n\n".join(lines).encode())
    metadata = metadata_file(folder)
    done = invoke("--name=it", "--metadata", metadata, "--closed-book", folder / "a.jsonl", "--out", folder)
    assert done.exit_code == 0, done.exception
    assert list(official_check(folder, "it")["closedbook"].items()) == list(answers.items())


def test_logs_of_runs(mirror: Path, tmp_path: Path) -> None:
    from benchmark_tasks import fanoutqa_closed_book
    from scripted_model import run as evaluate

    log = evaluate(fanoutqa_closed_book("test", prompt="qabench"), lambda messages: "x", tmp_path, limit=3).location
    options = ["--name=x", "--metadata", metadata_file(tmp_path), "--out", tmp_path]
    done = invoke(*options, "--closed-book", log)
    assert done.exit_code == 0 and "questions without an answer, which score 0: 721 (" in done.stderr
    assert set(official_check(tmp_path, "x")["closedbook"].values()) == {"x"}
    wrong = invoke(*options, "--open-book", log)
    assert "is a run of fanoutqa closed-book, not of fanoutqa open-book" in str(wrong.exception)
