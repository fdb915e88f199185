"""The commands as typed by users, in separate processes."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import qabench
from typer.testing import CliRunner

from qabench import loading_scripts
from qabench.benchmarks import benchmark
from qabench.cli import app
from qabench.errors import InputError

SAMPLE = ("--config", "sample")
GENERATIONS = loading_scripts.FOLDER / "fanoutqa/sample/generations"
FULL = Path("/dev/full")


def as_json(*arguments: str, **options: Any) -> Any:
    return json.loads(qabench(*arguments, "--json", **options).stdout)


def test_quickstart_ranks_the_sample_systems(tmp_path: Path) -> None:
    done = qabench("quickstart", QABENCH_MIRROR="", HOME=str(tmp_path), QABENCH_CACHE="")
    rows = re.findall(r"^acc.loose +(\w+)", done.stdout, re.MULTILINE)
    assert rows == ["careful", "rambling", "hasty"]
    for part in ("careful - hasty", "rambling - hasty", "not official (acc", "lemmatizer"):
        assert part in done.stdout
    assert "qabench score fanoutqa" in done.stderr
    assert "Next" not in qabench("quickstart", "--quiet", QABENCH_MIRROR="").stderr


def test_score_the_sample_with_every_output(tmp_path: Path) -> None:
    files = ("--output", tmp_path / "out/report.json", "--per-item", tmp_path / "rows.jsonl")
    given = ("score", "fanoutqa", GENERATIONS / "hasty.jsonl", *SAMPLE, "--by", "category", "--by", "type")
    done = qabench(*given, *files)
    for part in ("acc.loose", "95% interval", "By category", "12 questions", "questions without a prediction: 1"):
        assert part in done.stdout
    document = json.loads((tmp_path / "out/report.json").read_text(encoding="utf-8"))
    (report,) = document["evaluations"]
    counts = {name: count for name, count in report["counts"].items() if count}
    assert counts == {"answered": 10, "empty": 1, "missing": 1, "records": 12}
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert report["scores"]["acc.loose"] == sum(row["scores"]["acc.loose"] for row in rows) / 12
    assert report["official"]["acc"]["loose"] == report["scores"]["acc.loose"]
    assert report["intervals"]["acc.loose"]["mean"] == pytest.approx(report["scores"]["acc.loose"])
    assert sum(group["records"] for group in report["by"]["type"].values()) == 12
    assert [row["status"] for row in rows].count("missing") == 1
    (printed,) = as_json(*given)["evaluations"]
    assert {**printed, "created": ""} == {**report, "created": ""}


def test_several_files_are_rows_in_every_format() -> None:
    files = [GENERATIONS / f"{name}.jsonl" for name in ("careful", "hasty")]
    given = ("score", "fanoutqa", *files, *SAMPLE, "--scores", "acc")
    table = list(csv.DictReader(qabench(*given, "--format", "csv").stdout.splitlines()))
    assert [row["system"] for row in table] == ["careful", "careful", "hasty", "hasty"]
    exact = as_json(*given)["evaluations"]
    values = [evaluation["scores"][name] for evaluation in exact for name in ("acc.loose", "acc.strict")]
    assert [float(row["value"]) for row in table] == values and {row["n"] for row in table} == {"12"}
    assert "| careful | **0.8924**" in qabench(*given, "--format", "markdown").stdout
    assert "\\toprule" in qabench(*given, "--format", "latex").stdout


def test_predictions_from_standard_input() -> None:
    data = (GENERATIONS / "careful.jsonl").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "qabench", "score", "fanoutqa", "-", *SAMPLE, "--json"]
    done = subprocess.run(command, input=data, capture_output=True, text=True, check=True)
    of_file = as_json("score", "fanoutqa", GENERATIONS / "careful.jsonl", *SAMPLE)
    shown, expected = (document["evaluations"][0] for document in (json.loads(done.stdout), of_file))
    assert shown["scores"] == expected["scores"]


def test_numbers_are_not_truncated_at_80_columns(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from qabench.cli import output
    from qabench.io.tables import Table

    monkeypatch.setattr(output, "PIPE_WIDTH", 80)
    output.print_table(Table("t", ["system", *(f"metric{i}" for i in range(9))], [["a" * 30, *(["0.1234"] * 9)]]))
    text = capsys.readouterr().out
    assert text.count("0.1234") == 9


def test_a_table_in_a_pipe_is_as_wide_as_columns_says(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from qabench.cli import output
    from qabench.io.tables import Table

    table = Table("t", ["system", *(f"metric{i}" for i in range(9))], [["a" * 30, *(["0.1234"] * 9)]])
    for columns, width in (("60", 60), ("wide", output.PIPE_WIDTH), ("0", output.PIPE_WIDTH)):
        monkeypatch.setenv("COLUMNS", columns)
        output.print_table(table)
        longest = max(len(line.rstrip()) for line in capsys.readouterr().out.splitlines())
        assert longest <= width and (longest > 60) == (width > 60)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["score", "fanoutqa", "nowhere.jsonl", *SAMPLE], 2, "cannot read nowhere.jsonl"),
        (["score", "fanoutqa", "@", *SAMPLE, "--by", "color"], 2, "no grouping 'color'; allowed: category"),
        (["score", "fanoutqa", "@", *SAMPLE, "--lemmatizer", "x"], 2, "lemmatizer is 'x'; allowed: auto"),
        (["score", "fanoutqa", "@", "--format", "pdf"], 2, "unknown format 'pdf'; allowed: table, csv"),
        (
            ["score", "felm", "@", "--lemmatizer", "spacy"],
            2,
            "No such option: --lemmatizer (Possible options: --all-scores",
        ),
        (["score", "fanoutqa", "@", "--xyz"], 2, "No such option: --xyz (Possible options: --all-scores"),
        (["score", "fanoutqa", "@", "--lemmatiser", "x"], 2, "--lemmatiser (did you mean '--lemmatizer'?)"),
        (["score", "fanoutqa", "@", "--config", "dev"], 1, "is neither in a mirror"),
        (["nope"], 2, "No such command 'nope'; allowed: list, fetch"),
        (["scor"], 2, "did you mean 'score'?"),
        (["score", "fanoutqa"], 2, "Missing argument"),
        (["score", "fanoutqa", "@", *SAMPLE, "--output", "/dev/null/x.json"], 1, "cannot write /dev/null/x.json"),
    ],
)
def test_errors_explain_and_set_the_exit_code(arguments: list[str], code: int, message: str, tmp_path: Path) -> None:
    given = [str(GENERATIONS / "careful.jsonl") if a == "@" else a for a in arguments]
    done = qabench(*given, code=code, QABENCH_MIRROR=str(tmp_path))
    assert message in done.stderr and done.stdout == ""


def test_every_deviation_of_the_json_is_printed(tmp_path: Path) -> None:
    row = {"answer": "Eight minutes.", "claims": [{"claim": "Eight minutes.", "evidence": ["x"]}]}
    file, report = tmp_path / "answers.jsonl", tmp_path / "report.json"
    file.write_text("".join(json.dumps({"id": id} | row) + "\n" for id in benchmark("expertqa").questions("sample")))
    score = ["score", "expertqa", str(file), *SAMPLE, "--output", str(report)]
    printed = CliRunner().invoke(app, score, env={"COLUMNS": "250"}).stdout
    deviations = json.loads(report.read_text())["evaluations"][0]["deviations"]
    sentences = {sentence for sentences in deviations.values() for sentence in sentences}
    assert sentences and all(f"): {sentence}" in printed for sentence in sentences)
    assert CliRunner().invoke(app, [*score, "--strict"]).exit_code == 2


def test_version_and_no_arguments() -> None:
    from qabench import __version__

    assert qabench("--version").stdout == qabench("-V").stdout == f"qabench {__version__}\n"
    assert qabench("score", "-h").stdout == qabench("score", "--help").stdout
    assert "quickstart" in qabench(code=2).stderr


def test_the_environment_has_no_credentials_of_urls() -> None:
    url = "https://user:p@ss@host.example/v1?token=abc"
    names = ("QABENCH_SOURCE_URL", "QABENCH_SEARXNG_URL", "QABENCH_SEARCH_URL", "QABENCH_WIKIPEDIA_API")
    done = qabench("env", "--json", **dict.fromkeys(names, url))
    values = json.loads(done.stdout)["variables"]
    assert {values[name] for name in names} == {"https://host.example/v1"}
    assert "p@ss" not in qabench("env", **dict.fromkeys(names, url)).stdout


def run(*arguments: str, stdout: int, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "qabench", *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["--help"], ["--version"]])
def test_a_full_standard_output(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        done = run(*arguments, stdout=full.fileno())
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "No space left on device" in done.stderr


@pytest.mark.parametrize("command", ["register", "stats", "build"])
def test_a_cache_folder_that_is_a_file(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = str(tmp_path / "file")
    done = run(command, "fanoutqa", stdout=subprocess.DEVNULL, HF_HOME=home, QABENCH_CACHE=home)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr and done.stderr.count("qabench:") <= 1


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
@pytest.mark.parametrize("arguments", ["list", "--help", "env --json"])
def test_a_closed_stream_is_one_line(closed: str, arguments: str) -> None:
    command = f'"{sys.executable}" -P -m qabench {arguments} {closed}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    message = "qabench: standard output or error is closed; redirect it, such as to /dev/null\n"
    assert done.returncode == 1 and done.stdout + done.stderr == message


def test_files_are_written_before_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*arguments: object, **options: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("qabench.cli.evaluations.print_evaluations", closed)
    predictions = tmp_path / "predictions.jsonl"
    predictions.write_text('{"id": "463f5c17d453c3d3", "answer": "x"}\n')
    lines = tmp_path / "items.jsonl"
    CliRunner().invoke(app, ["score", "fanoutqa", str(predictions), "--config", "sample", "--per-item", str(lines)])
    assert "463f5c17d453c3d3" in lines.read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        "score fanoutqa a.jsonl -o a.jsonl",
        "score fanoutqa b.jsonl name=a.jsonl --per-item ./a.jsonl",
        "score fanoutqa b.jsonl --questions a.jsonl -o a.jsonl",
        "score fanoutqa b.jsonl -o new/a.jsonl --per-item new/a.jsonl",
        "compare fanoutqa b.jsonl,a.jsonl b.jsonl -o a.jsonl",
        "sample fanoutqa a.jsonl --judged gpt --labels 9 -o a.jsonl",
        "judge expertqa a.jsonl --replies a.jsonl",
        "judge expertqa a.jsonl -o a.jsonl",
        "retrieve a.jsonl --queries b.jsonl -o a.jsonl",
        "retrieve b.jsonl --queries a.jsonl -o a.jsonl",
    ],
)
def test_no_output_replaces_an_input(arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.jsonl", "b.jsonl"):
        Path(name).write_text('{"id": "463f5c17d453c3d3", "answer": "x", "text": "x"}\n')
    done = CliRunner().invoke(app, arguments.split())
    assert isinstance(done.exception, InputError), done.output
    assert "a.jsonl; name another file" in str(done.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize(
    ("name", "content"), [("expertqa", ""), ("fanoutqa", "[]"), ("fastbook", '{"questions": []}'), ("felm", "")]
)
def test_a_file_of_no_questions_is_said(name: str, content: str, tmp_path: Path) -> None:
    questions, answers = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    questions.write_text(content)
    answers.write_text('{"id": "1", "answer": "x"}\n')
    done = CliRunner().invoke(app, ["score", name, str(answers), "--questions", str(questions)])
    assert isinstance(done.exception, InputError) and "no questions" in str(done.exception)


@pytest.mark.parametrize(("names", "code"), [("mrr@3", 1), ("mrr@3,mrr@10", 0), ("mrr@10", 0)])
def test_a_report_says_which_scores_are_not_there(names: str, code: int, tmp_path: Path) -> None:
    """As `score` does, also with its exit code."""
    rows = [question.id for question in benchmark("fastbook").load("sample").rows]
    file = tmp_path / "passages.jsonl"
    file.write_text("".join(json.dumps({"id": row, "passages": ["x"]}) + "\n" for row in rows))
    for command, *words in (["score"], ["report", "-o", tmp_path / "page"]):
        arguments = [command, "fastbook", str(file), "--config", "sample", "--scores", names, *map(str, words)]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == code, done.output
        said = "no score mrr@3: computed is mrr@10; to compute it, add --k 3"
        assert (said in " ".join(done.output.split())) == ("mrr@3" in names)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["felm", "labels.jsonl", "--reply-format", "vicuna"],
            "reply_format has no effect: no prediction has reply or",
        ),
        (["felm", "labels.jsonl", "--reply-format", "answer"], None),
        (["felm", "replies.jsonl", "--reply-format", "vicuna"], None),
        (["fanoutqa", "answers.jsonl", "--scores", "acc", "--judge-model", "x"], "no scores of judge are computed"),
        (["fanoutqa", "answers.jsonl", "--scores", "acc", "--lemmatizer", "simplemma"], None),
        (["expertqa", "answers.jsonl", "--unlabeled", "exclude"], "unlabeled has no effect: no prediction has claims"),
    ],
)
def test_options_without_an_effect_are_named(
    words: list[str], says: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    field, _, _ = words[1].partition(".")
    lines = []
    for question in benchmark(words[0]).load("sample").rows:
        value: Any = "Answer: 1"
        if field == "labels":
            value = question.row["labels"]
        name = {"replies": "reply", "answers": "answer"}.get(field, field)
        lines.append(json.dumps({"id": question.id, name: value}) + "\n")
    Path(words[1]).write_text("".join(lines))
    done = CliRunner().invoke(app, ["score", *words, "--config", "sample"])
    printed = " ".join(done.output.split())
    assert done.exit_code == 0, printed
    assert "has no effect" in printed if says else "has no effect" not in printed
    assert (says or "") in printed


def test_naming_columns_of_tables_of_scores_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("id,f1\na,1\nb,0\n")
    for column, code in (("--id-column", 0), ("--answer-column", 2)):
        done = CliRunner().invoke(app, ["score", str(file), "--score", "f1", column, "id"])
        assert done.exit_code == bool(code), done.output
        assert not code or "the column 'id' has no effect" in str(done.exception)
