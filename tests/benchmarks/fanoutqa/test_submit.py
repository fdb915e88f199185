"""Submissions to FanOutQA's leaderboard: real ones, invalid ones, and how the leaderboard reads the files."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from qabench.benchmarks.fanoutqa import submission
from qabench.benchmarks.fanoutqa.commands import submit
from qabench.benchmarks.fanoutqa.submission import SETTINGS
from qabench.errors import InputError

IDS = [f"q{i}" for i in range(4)]
METADATA: dict[str, Any] = {
    "name": "Imaginary 7B", "authors": "Nobody", "url": None, "citation": "Nobody, 2026", "type": "PROMPT",
    "context": 4096, "is_trained_for_function_calling": False,
}  # fmt: skip
REAL = {"closedbook": "closedbook", "openbook": "openbook", "evidenceprovided": "wiki-provided"}


def official_check(root: Path, name: str) -> dict[str, dict[str, str]]:
    """Reads a file like the leaderboard's check, and fails like it; the last answer to an id counts."""
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


@pytest.fixture
def four_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "leaderboard_ids", lambda: IDS)


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


def checked(folder: Path, path: Path, name: str = "it", **changes: Any) -> submission.Submission:
    return submission.check(name, metadata_file(folder, **changes), {"closedbook": path}, IDS)


def messages(found: submission.Submission, error: bool = True) -> list[str]:
    return [problem.message for problem in found.problems if problem.error == error]


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
    assert done.exit_code == 0 and "error" not in done.stderr
    for setting, path in real.items():
        # The answers and their order are not changed.
        assert (tmp_path / f"{setting}-generations/{name}.jsonl").read_bytes() == path.read_bytes()
        warned = [line for line in done.stderr.splitlines() if line.startswith(str(path))]
        assert any("question of test_nov23" in line and ": 1 (36146d2306ce9ca3 (line" in line for line in warned)
        (said,) = [line for line in warned if "without an answer" in line] or ["which score 0: 0 ("]
        assert f"which score 0: {missing.get(setting, 0)} (" in said, setting
    compared(f"{sum(map(len, official_check(tmp_path, name).values()))} answers handed in as they are")


@pytest.mark.usefixtures("four_questions")
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
    assert invoke("--name=my_7B-2", *options).exit_code == 0  # writing the same files again is not a collision
    other = checked(tmp_path, good(tmp_path, "b.jsonl"), "my_7B-2")
    with pytest.raises(InputError, match=r"another submission has this name: .*metadata/my_7B-2\.json"):
        submission.write(other, tmp_path)


@pytest.mark.usefixtures("four_questions")
def test_errors_refuse_and_write_nothing(tmp_path: Path) -> None:
    bad = answers_file(tmp_path, *[{"id": "q0", "answer": n} for n in range(14)], name="bad.jsonl")
    answers = ("--closed-book", good(tmp_path), "--open-book", bad, "--evidence-provided", tmp_path / "nowhere.jsonl")
    done = invoke("--name=x", "--metadata", metadata_file(tmp_path), *answers, "--out", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "bad.jsonl: error: answers that are not strings" in done.stderr and "q0 (line 1): 0" in done.stderr
    assert "and 9 more)" in done.stderr and "error: cannot read " in done.stderr
    assert "rejected, nothing was written; errors: 3, warnings: 1" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"type": ["PROMPT"]}, "'type' is [\"PROMPT\"]; allowed: one of FOUNDATION, FINETUNE"),
        ({"context": "4096"}, "an integer above 0"),
        ({"context": True}, "an integer above 0"),
        ({"is_trained_for_function_calling": "no"}, "true or false"),
        ({"url": "example.org"}, "an http(s) address, or null"),
        ({"authors": " "}, "the system's authors"),
        ({"details": 7}, "'details' is 7"),
        ({"license": "mit"}, "would fail the leaderboard's check; allowed: name, authors"),
    ],
)
def test_invalid_metadata(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    (message,) = messages(checked(tmp_path, good(tmp_path), **changes))
    assert said in message


WITHOUT_URL = json.dumps({key: value for key, value in METADATA.items() if key != "url"}).encode()


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"[1]", WITHOUT_URL])
def test_files_without_metadata(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "m.json"
    if content is not None:
        path.write_bytes(content)
    (message,) = messages(submission.check("it", path, {"openbook": good(tmp_path)}, IDS))
    assert ("the key 'url' is missing" if content is WITHOUT_URL else "cannot be read") in message and "url" in message


@pytest.mark.parametrize("name", ["", "a.b", "../a", "é", "a\n"])
def test_names_of_other_characters(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="letters A-Z and a-z, digits, - and _"):
        checked(tmp_path, good(tmp_path), name)


def test_the_question_that_the_corrections_dropped(mirror: Path) -> None:
    # The package on PyPI contains the questions of November 2023.
    package = pytest.importorskip("fanoutqa", reason="needs the extra parity")
    path = Path(package.__file__).parent / "data/fanout-final-test.json"
    old = {row["id"] for row in json.loads(path.read_bytes())}
    assert old - set(submission.leaderboard_ids()) == {submission.DROPPED}


def test_every_problem_of_answers_is_named_with_its_line(tmp_path: Path) -> None:
    path = answers_file(
        tmp_path, {"id": "q0", "answer": "fine"}, {"id": "q1", "answer": None}, {"id": "q0", "answer": "again"},
        '{"id": "q2", "answ', {"id": "other", "answer": "x"}, {"id": "q2", "answer": ["a", "b"]},
        {"id": "36146d2306ce9ca3", "answer": " "}, "", {"id": "q3", "answer": "long" * 1001},
        '{"id": "q9", "answer": "\\ud800"}',
    )  # fmt: skip
    found = checked(tmp_path, path)
    named = [": 1 (line 4: not JSON", ": 1 (q0 (line 1))", ": 2 (other (line 5), q9 (line 10))"]
    named += [': 2 (q1 (line 2): null, q2 (line 6): ["a", "b"])', ": 1 (q9 (line 10))"]
    for part, message in zip(named, messages(found), strict=True):
        assert part in message
    warnings = [*[": 1 (36146d2306ce9ca3 (line 7))"] * 2, ": 1 (q3 (line 9))"]
    for part, message in zip(warnings, messages(found, error=False), strict=True):
        assert part in message


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(st.sampled_from(IDS), TEXTS, min_size=1), st.booleans())
def test_unchanged_answers(tmp_path_factory: pytest.TempPathFactory, answers: dict[str, str], escaped: bool) -> None:
    folder = tmp_path_factory.mktemp("any")
    lines = [json.dumps({"answer": text, "id": i, "model": "m"}, ensure_ascii=escaped) for i, text in answers.items()]
    (folder / "a.jsonl").write_bytes("\r\n\n".join(lines).encode())
    found = checked(folder, folder / "a.jsonl")
    assert not messages(found)
    submission.write(found, folder / "out")
    read = official_check(folder / "out", "it")["closedbook"]
    assert list(read.items()) == list(answers.items())


@pytest.fixture
def test_run(mirror: Path, tmp_path: Path) -> Callable[..., Path]:
    """Logs of closed-book runs on test questions."""
    from scripted_model import run as evaluate

    from qabench.benchmarks.fanoutqa.tasks import fanoutqa_closed_book

    def log(limit: int | None = None, **arguments: Any) -> Path:
        done = evaluate(fanoutqa_closed_book("test", **arguments), lambda messages: "x", tmp_path, limit=limit)
        return Path(done.location)

    return log


def test_official_runs_have_no_deviations(test_run: Callable[..., Path]) -> None:
    from qabench.runs.log import read_run

    part = read_run(str(test_run(limit=3)))
    assert submission.run_deviations(part) == ["3 of 724 questions were asked"]
    assert submission.run_deviations(replace(part, available=3)) == []


def test_other_prompts_and_protocols_are_rejected(test_run: Callable[..., Path], tmp_path: Path) -> None:
    log = test_run(limit=3, prompt="qabench")
    options = ["--name=x", "--metadata", metadata_file(tmp_path), "--closed-book", log, "--out", tmp_path]
    refused = invoke(*options)
    assert refused.exit_code == 2 and not (tmp_path / "metadata/x.json").exists()
    sentences = (
        "prompt: qabench's own, not the authors'",
        "protocol: qabench's own, not the authors'",
        "max tokens: 520, where the authors set no limit",
        "3 of 724 questions were asked",
    )
    assert all(f"error: {said}" in refused.stderr for said in sentences)
    assert invoke(*options, "--allow-unofficial").exit_code == 0
    details = json.loads((tmp_path / "metadata/x.json").read_text())["details"]
    assert all(said in details for said in sentences)
    wrong = invoke(*options[:3], "--open-book", log)
    assert wrong.exit_code == 2 and "not of fanoutqa openbook" in wrong.stderr
