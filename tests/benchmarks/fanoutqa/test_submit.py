"""Submissions to FanOutQA's leaderboard: real ones, invalid ones, and how the leaderboard reads the files."""

from __future__ import annotations

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
from qabench.errors import InputError, QabenchError

IDS = [f"q{i}" for i in range(4)]
METADATA: dict[str, Any] = {
    "name": "Imaginary 7B",
    "authors": "Nobody",
    "url": None,
    "citation": "Nobody, 2026",
    "type": "PROMPT",
    "context": 4096,
    "is_trained_for_function_calling": False,
}
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
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """The command in this process, with four questions instead of the real ones."""
    monkeypatch.setattr(submission, "leaderboard_ids", lambda: IDS)
    monkeypatch.chdir(tmp_path)
    return invoke


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


def checked(folder: Path, *rows: Any, **changes: Any) -> submission.Submission:
    return submission.check("it", metadata_file(folder, **changes), {"closedbook": answers_file(folder, *rows)}, IDS)


def kinds(problems: list[submission.Problem]) -> list[tuple[str, int | None]]:
    return [(problem.kind, problem.line) for problem in problems]


@pytest.mark.parametrize(
    ("name", "missing"),
    [("gpt-4o", {"openbook": 3}), ("claude-3", {"openbook": 9, "evidenceprovided": 1})],
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
    done = invoke(f"--metadata={root}/metadata/{name}.json", f"--name={name}", *options, f"--out={tmp_path}", "--json")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["errors"] == []
    for setting, path in real.items():
        # The answers and their order are not changed.
        assert (tmp_path / f"{setting}-generations/{name}.jsonl").read_bytes() == path.read_bytes()
        warned = {w["kind"]: w["message"] for w in report["warnings"] if w["file"] == str(path)}
        assert "36146d2306ce9ca3 is a question of test_nov23" in warned["dropped question"]
        said = warned.get("missing answers", "0 of 724 questions")
        assert said.startswith(f"{missing.get(setting, 0)} of 724 questions"), setting
    compared(f"{sum(map(len, official_check(tmp_path, name).values()))} answers handed in as they are")


def test_the_question_that_the_corrections_dropped(mirror: Path) -> None:
    # The package on PyPI contains the questions of November 2023.
    package = pytest.importorskip("fanoutqa", reason="needs the extra parity")
    path = Path(package.__file__).parent / "data/fanout-final-test.json"
    old = {row["id"] for row in json.loads(path.read_bytes())}
    assert old - set(submission.leaderboard_ids()) == set(submission.DROPPED)


def test_a_submission_of_one_setting(run: Callable[..., Result], tmp_path: Path) -> None:
    done = run("--name=my_7B-2", "--metadata", metadata_file(tmp_path), "--open-book", good(tmp_path))
    assert done.exit_code == 0
    assert done.stderr == ""
    for part in ("openbook-generations/my_7B-2.jsonl", "metadata/my_7B-2.json", "pull request", "zhudotexe/fanoutqa"):
        assert part in done.stdout
    root = tmp_path / "leaderboard-submissions"
    assert official_check(root, "my_7B-2") == {"openbook": {i: f"a.jsonl {i}" for i in IDS}}
    metadata = json.loads((root / "metadata/my_7B-2.json").read_text(encoding="utf-8"))
    assert metadata == METADATA | {
        "closedbook_generations": None,
        "openbook_generations": "my_7B-2.jsonl",
        "evidenceprovided_generations": None,
    }


def test_a_template_must_be_completed(run: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    done = run("--init", "--metadata", path)
    assert done.exit_code == 0
    assert "FOUNDATION, FINETUNE, PROMPT, OTHER" in done.stdout
    refused = run("--name=x", "--metadata", path, "--closed-book", good(tmp_path))
    assert refused.exit_code == 2
    for key in ("name", "authors", "citation", "type", "context", "is_trained_for_function_calling"):
        assert f"error: '{key}' is " in refused.stderr
    before = path.read_bytes()
    again = run("--init", "--metadata", path)
    assert isinstance(again.exception, InputError)
    assert "already exists" in str(again.exception)
    assert path.read_bytes() == before
    path.write_text(json.dumps(json.loads(before) | METADATA), encoding="utf-8")
    assert run("--name=x", "--metadata", path, "--closed-book", good(tmp_path)).exit_code == 0


def test_every_problem_of_answers_is_named_with_its_line(tmp_path: Path) -> None:
    found = checked(
        tmp_path,
        {"id": "q0", "answer": "fine"},
        {"id": "q1", "answer": None},
        {"id": "q0", "answer": "again"},
        '{"id": "q2", "answ',
        {"id": "other", "answer": "x"},
        {"id": "q2", "answer": ["a", "b"]},
        {"id": "36146d2306ce9ca3", "answer": " "},
        "",
        {"id": "q3", "answer": "long" * 1001},
        '{"id": "q9", "answer": "\\ud800"}',
    )
    assert kinds(found.errors) == [
        ("unreadable line", 4),
        ("answer is not a string", 2),
        ("repeated id", 3),
        ("unknown id", 5),
        ("answer is not a string", 6),
        ("unknown id", 10),
        ("not Unicode", 10),
    ]
    assert kinds(found.warnings) == [("dropped question", 7), ("empty answer", 7), ("long answer", 9)]
    said = "\n".join(problem.message for problem in found.problems)
    for part in ("q0 was already answered in line 1", "is null", "of type list", "4,004 characters", "not JSON"):
        assert part in said


def test_strict_writes_and_fails(run: Callable[..., Result], tmp_path: Path) -> None:
    some = answers_file(tmp_path, {"id": "q2", "answer": "x"})
    done = run("--name=x", "--metadata", metadata_file(tmp_path), "--closed-book", some, "--strict")
    assert done.exit_code == 2
    assert "leaderboard-submissions/metadata/x.json" in done.stdout
    assert "warning: 3 of 4 questions" in done.stderr


def test_errors_refuse_and_write_nothing(run: Callable[..., Result], tmp_path: Path) -> None:
    bad = answers_file(tmp_path, *[{"id": "q0", "answer": n} for n in range(14)], name="bad.jsonl")
    options = ("--name=x", "--metadata", metadata_file(tmp_path), "--closed-book", good(tmp_path), "--open-book", bad)
    done = run(*options)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "line 1: error: the answer to q0 is of type int: 0" in done.stderr
    assert "and 4 more of this kind" in done.stderr
    assert "rejected, nothing was written; errors: 27, warnings: 1" in done.stderr
    assert not (tmp_path / "leaderboard-submissions").exists()
    report = json.loads(run(*options, "--json").stdout)
    assert (report["written"], len(report["errors"]), report["files"], report["next"]) == (False, 27, [], [])


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"type": "MODEL"}, "wrong value", "'type' is \"MODEL\"; allowed: one of FOUNDATION, FINETUNE"),
        ({"type": ["PROMPT"]}, "wrong value", "'type' is"),
        ({"context": "4096"}, "wrong value", "an integer above 0"),
        ({"context": True}, "wrong value", "an integer above 0"),
        ({"context": -1}, "wrong value", "an integer above 0"),
        ({"is_trained_for_function_calling": "no"}, "wrong value", "true or false"),
        ({"url": "example.org"}, "wrong value", "an http(s) address, or null"),
        ({"name": " "}, "wrong value", "the system's name"),
        ({"authors": ["A", "B"]}, "wrong value", "the system's authors"),
        ({"citation": None}, "wrong value", "'citation' is null"),
        ({"details": 7}, "wrong value", "'details' is 7"),
        ({"license": "mit"}, "unknown key", "would fail the leaderboard's check; allowed: name, authors"),
    ],
)
def test_invalid_metadata(tmp_path: Path, changes: dict[str, Any], kind: str, said: str) -> None:
    found = checked(tmp_path, *[{"id": i, "answer": "x"} for i in IDS], **changes)
    assert kinds(found.errors) == [(kind, None)]
    assert said in found.errors[0].message


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (None, "unreadable file"),
        ('{\n "name": "x",\n "authors": }', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        ("[1]", "not metadata"),
        (json.dumps({key: value for key, value in METADATA.items() if key != "url"}), "missing key"),
        ("\ufeff" + json.dumps(METADATA), None),
    ],
)
def test_files_without_metadata(tmp_path: Path, text: str | bytes | None, kind: str | None) -> None:
    path = tmp_path / "m.json"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = submission.check("it", path, {"openbook": good(tmp_path)}, IDS)
    assert kinds(found.errors) == ([(kind, None)] if kind else [])


@pytest.mark.parametrize("name", ["", "a b", "a.b", "../a", "é", "a/b", "a\n"])
def test_names_of_other_characters(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="letters A-Z and a-z, digits, - and _"):
        submission.check(name, metadata_file(tmp_path), {"openbook": good(tmp_path)}, IDS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--name=x",), "use at least one of"),
        (("--closed-book=a.jsonl",), "--name is required"),
    ],
)
def test_what_a_submission_needs(
    run: Callable[..., Result], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = run("--metadata", metadata_file(tmp_path), *arguments)
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)


def test_a_file_without_answers_is_one_of_the_problems(tmp_path: Path) -> None:
    answers = {"openbook": tmp_path / "nowhere.jsonl", "closedbook": good(tmp_path)}
    found = submission.check("it", metadata_file(tmp_path, type="X"), answers, IDS)
    assert [problem.kind for problem in found.errors] == ["wrong value", "no answers"]


def test_existing_names(tmp_path: Path) -> None:
    out = tmp_path / "out"
    mine = checked(tmp_path, *[{"id": i, "answer": "x"} for i in IDS])
    paths = submission.write(mine, out)
    assert submission.write(mine, out) == paths  # writing the same files again is not a collision
    other = checked(tmp_path, *[{"id": i, "answer": "y"} for i in IDS])
    with pytest.raises(InputError, match=r"another submission has this name: .*closedbook-generations/it\.jsonl"):
        submission.write(other, out)
    path = answers_file(tmp_path, {"id": "q0", "answer": "x"})
    for name in ("IT", "it"):  # different case, and another setting
        rival = submission.check(name, metadata_file(tmp_path), {"openbook": path}, IDS)
        with pytest.raises(InputError, match="another submission"):
            submission.write(rival, out)
    assert sorted(p.name for p in out.rglob("*.*")) == ["it.json", "it.jsonl"]


def test_all_files_or_none(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "metadata").write_text("in the way of a folder")
    mine = checked(tmp_path, *[{"id": i, "answer": "x"} for i in IDS])
    with pytest.raises(QabenchError, match="cannot write"):
        submission.write(mine, out)
    assert [path.name for path in out.rglob("*") if path.is_file()] == ["metadata"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(st.sampled_from(IDS), TEXTS, min_size=1), st.booleans())
def test_answers_are_submitted_unchanged(
    tmp_path_factory: pytest.TempPathFactory, answers: dict[str, str], escaped: bool
) -> None:
    folder = tmp_path_factory.mktemp("any")
    lines = [json.dumps({"answer": text, "id": i, "model": "m"}, ensure_ascii=escaped) for i, text in answers.items()]
    (folder / "a.jsonl").write_bytes("\r\n\n".join(lines).encode())
    found = submission.check("it", metadata_file(folder), {"closedbook": folder / "a.jsonl"}, IDS)
    assert not found.errors
    submission.write(found, folder / "out")
    read = official_check(folder / "out", "it")["closedbook"]
    assert list(read.items()) == list(answers.items())


@pytest.fixture
def test_run(mirror: Path, tmp_path: Path) -> Callable[..., Path]:
    """Logs of closed-book runs on test questions."""
    pytest.importorskip("inspect_ai", reason="needs the extra run")
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
    assert isinstance(wrong.exception, InputError) and "not of fanoutqa openbook" in str(wrong.exception)
