"""Scores as ``.eval_results``: entries, files, the command, and a pull request on a local Hub."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from click.testing import Result
from hub_server import TOKEN, Hub
from huggingface_hub import HfApi, parse_eval_result_entries
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from qabench.benchmarks import Benchmark
from qabench.cli.hub import results
from qabench.errors import InputError, QabenchError
from qabench.evaluation.signature import IRRELEVANT, Field
from qabench.hub.results import About, entries, to_yaml
from qabench.runs.log import read_run

MODEL = "someone/model"
ACC = "fanout_acc|config:dev|lemmatizer:spacy-3.8|qabench:1"
ROUGE = "fanout_rouge|config:dev|qabench:1"
DECLARED = {
    "fanout_acc": {"config": Field(("dev",)), "lemmatizer": Field(("spacy-3.8",)), "reply": IRRELEVANT},
    "fanout_rouge": {"config": Field(("dev",))},
}
SCORES = {"acc.loose": 0.4321, "acc.strict": 0.1, "rouge1.fscore": 0.5}
# What `qabench score --output` writes: an official evaluation of dev.
REPORT: dict[str, Any] = {
    "benchmark": "fanoutqa",
    "config": "dev",
    "setting": "predictions",
    "model": "answers",
    "created": "2026-01-31T10:00:00+00:00",
    "status": "success",
    "path": "answers.jsonl",
    "expected": 310,
    "available": 310,
    "scores": SCORES,
    "intervals": {name: {"mean": value, "low": value - 0.01, "high": value + 0.01} for name, value in SCORES.items()},
    "n": dict.fromkeys(SCORES, 310),
    "left_out": dict.fromkeys(SCORES, 0),
    "unit": dict.fromkeys(SCORES, "questions"),
    "deviations": {name: [] for name in SCORES},
    "counts": {"answered": 306, "empty": 1, "missing": 3, "failed": 0, "records": 310},
    "problems": [],
    "signatures": {"acc": ACC, "rouge": ROUGE},
}
CLOSED = About(setting="closed-book")


def changed(**changes: Any) -> dict[str, Any]:
    """The report with parts of its dicts replaced."""
    merged = {
        name: REPORT[name] | value if isinstance(value, Mapping) and isinstance(REPORT.get(name), Mapping) else value
        for name, value in changes.items()
    }
    return REPORT | merged


def command(*arguments: Any) -> Result:
    app = typer.Typer()
    app.command()(results)
    return CliRunner().invoke(app, list(map(str, arguments)))


def failed(*arguments: Any) -> str:
    done = command(*arguments)
    assert isinstance(done.exception, QabenchError), done.output
    return str(done.exception)


def as_json(*arguments: Any) -> Any:
    done = command(*arguments, "--json")
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)


def write(path: Path, report: Any) -> Path:
    path.write_text(json.dumps(report), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Benchmark, "declaration", lambda self, score: DECLARED.get(score, {}))


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return write(tmp_path / "report.json", REPORT)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with Hub(organizations=("someone",)) as hub:
        hub.used_here(monkeypatch)
        HfApi(endpoint=hub.url, token=TOKEN).create_repo(MODEL)
        yield hub


def test_an_entry_has_everything_a_reader_needs() -> None:
    about = About("closed-book", "2026-01-31", revision="v1.0")
    (entry,) = entries(changed(left_out={"acc.loose": 2}), about, ["acc.loose"])
    assert (entry.dataset_id, entry.dataset_revision) == ("qabench/fanoutqa", "v1.0")
    assert (entry.task_id, entry.value, entry.date) == ("dev_closed_book_acc_loose", 0.4321, "2026-01-31")
    assert entry.notes == (
        "acc.loose, closed-book; n 310 questions; 2 left out; answers: 1 empty, 3 missing; "
        f"95% interval 0.4221 to 0.4421; signature {ACC}"
    )
    assert entry.source_url == "https://github.com/qabench/qabench"
    assert (entry.source_name or "").startswith("qabench ")


def test_unreadable_replies_are_in_the_notes() -> None:
    judged = {"scores": {"gpt": 0.5}, "left_out": {"gpt": 0, "gpt_readable": 7}, "n": {"gpt": 310}}
    (entry,) = entries(changed(**judged, deviations={"gpt": []}), CLOSED, ["gpt"])
    assert "gpt, closed-book; n 310 questions; 7 without a readable reply; answers:" in (entry.notes or "")


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        ({"deviations": {"acc.loose": ["the run did not finish (error)"]}}, "the run did not finish (error)"),
        ({"signatures": {"acc": ACC.replace("3.8", "3.9")}}, "lemmatizer: spacy-3.9 instead of spacy-3.8"),
        ({"signatures": {"acc": ACC + "|extra:1"}}, "extra: 1 (the official value is not known)"),
        ({"signatures": {"acc": "fanout_acc|config:dev"}}, "lemmatizer: not recorded"),
        (
            {"deviations": {"acc.loose": ["77 are left out"]}, "signatures": {"acc": ACC.replace("dev", "sample")}},
            "77 are left out; config: sample instead of dev",
        ),
    ],
)
def test_deviating_scores_are_rejected_or_noted(change: dict[str, Any], sentences: str) -> None:
    report = changed(**change)
    with pytest.raises(InputError, match="--allow-unofficial") as refused:
        entries(report, CLOSED, ["acc.loose", "rouge1.fscore"])
    assert f"1 of 2 scores of answers.jsonl are not official. acc.loose: {sentences}. " in str(refused.value)
    allowed = About("closed-book", allow_unofficial=True)
    loose, rouge = entries(report, allowed, ["acc.loose", "rouge1.fscore"])
    assert (loose.notes or "").startswith(f"UNOFFICIAL: {sentences}; acc.loose")
    assert "UNOFFICIAL" not in (rouge.notes or "")


def test_scores_without_recorded_deviations_are_refused() -> None:
    with pytest.raises(InputError, match="its deviations are not recorded"):
        entries(REPORT | {"deviations": {}}, CLOSED)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_unusable_values(value: float) -> None:
    with pytest.raises(InputError, match=f"acc.loose of answers.jsonl is {value}; an entry needs a finite number"):
        entries(changed(scores={"acc.loose": value}), CLOSED)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1)


@given(
    st.dictionaries(st.integers(1, 99), st.floats(allow_nan=False, allow_infinity=False), min_size=1),
    st.sampled_from(["2026-01-31", "2026-01-31T10:00:00+00:00", "2026-01-31T10:00:00Z"]),
    NAMES,
)
def test_files_are_read_back_unchanged(values: dict[int, float], date: str, remark: str) -> None:
    scores = {f"mrr@{k}": value for k, value in values.items()}
    ranked = REPORT | {
        "benchmark": "fastbook", "scores": scores, "n": dict.fromkeys(scores, 1), "intervals": {}, "signatures": {},
        "deviations": {name: [remark] for name in scores},
    }  # fmt: skip
    made = entries(ranked, About("bm25", date, allow_unofficial=True))
    text = to_yaml(made)
    assert parse_eval_result_entries(yaml.safe_load(text)) == made
    assert to_yaml(made, text) == text


def test_other_entries_of_a_file_are_kept() -> None:
    theirs = "- dataset: {id: a/b, task_id: t}\n  value: 1.5\n  evaluation_framework: theirs\n"
    old = to_yaml(entries(REPORT, CLOSED, ["acc.loose", "acc.strict"]), theirs)
    better = entries(changed(scores={"acc.loose": 0.7}), CLOSED, ["acc.loose", "rouge1.fscore"])
    new = yaml.safe_load(to_yaml(better, old))
    assert [row["value"] for row in new] == [1.5, 0.7, 0.1, 0.5]
    assert new[0] == yaml.safe_load(theirs)[0]


@pytest.mark.parametrize("old", ["a: b", "- 1", "[", "- value: 1", "text"])
def test_a_file_without_entries_is_not_changed(old: str) -> None:
    with pytest.raises(InputError, match="exists and is not a list of entries"):
        to_yaml(entries(REPORT, CLOSED), old)


def test_a_report_is_printed(report: Path) -> None:
    done = command(report, "--setting=closed-book", "--revision=v1")
    assert done.exit_code == 0, done.exception
    assert done.stdout.startswith("# .eval_results/fanoutqa_dev_closed_book.yaml\n")
    assert "date: '2026-01-31T10:00:00+00:00'" in done.stdout
    rows = parse_eval_result_entries(yaml.safe_load(done.stdout))
    assert {row.task_id.removeprefix("dev_closed_book_"): row.value for row in rows} == {
        name.replace(".", "_"): value for name, value in SCORES.items()
    }
    assert {row.dataset_revision for row in rows} == {"v1"}


def test_files_are_written_and_extended(report: Path, tmp_path: Path) -> None:
    first = as_json(report, "--setting=open-book", "--metric=acc.loose", "--output", tmp_path)
    path = tmp_path / ".eval_results/fanoutqa_dev_open_book.yaml"
    assert first["written"] == [str(path)]
    command(report, "--setting=open-book", "--metric=acc.strict", "--output", tmp_path)
    rows = parse_eval_result_entries(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert [row.task_id for row in rows] == ["dev_open_book_acc_loose", "dev_open_book_acc_strict"]


@pytest.mark.parametrize("content", [b"- value: [1\n", b"\xff\xfe", b"- a\n"])
def test_a_file_of_broken_yaml_is_kept(report: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / ".eval_results/fanoutqa_dev_open_book.yaml"
    path.parent.mkdir()
    path.write_bytes(content)
    assert str(path) in failed(report, "--setting=open-book", "--metric=acc.loose", "--output", tmp_path)
    assert path.read_bytes() == content


def ran(folder: Path, **options: Any) -> str:
    """The log of a run of a model that fails at every second question."""
    inspect_ai = pytest.importorskip("inspect_ai", reason="needs the extra run")
    scripted_model = pytest.importorskip("scripted_model")
    turns = itertools.cycle(["Mars, 1998 and Lima", ConnectionError("the wire is cut")])
    (log,) = inspect_ai.eval(
        "qabench/fanoutqa_closed_book",
        model=scripted_model.scripted(lambda messages: next(turns), name=folder.name),
        task_args={"config": "sample", "lemmatizer": "simplemma"},
        log_dir=str(folder),
        max_connections=1,
        display="none",
        **options,
    )
    return str(log.location)


def test_a_log_has_setting_date_and_model(tmp_path: Path) -> None:
    log = ran(tmp_path / "logs")
    ((name, rows),) = as_json(log, "--allow-unofficial")["files"].items()
    assert name == ".eval_results/fanoutqa_sample_closed_book.yaml"
    assert rows[0]["date"].startswith("20")
    assert rows[0]["notes"].startswith("UNOFFICIAL: ")
    assert "acc.loose, closed-book; n 12 questions; answers: 6 failed; 95% interval 0." in rows[0]["notes"]
    assert "; signature fanout_acc|" in rows[0]["notes"]
    assert as_json(tmp_path / "logs", "--allow-unofficial")["files"][name] == rows
    printed = write(tmp_path / "printed.json", read_run(log).as_dict())
    assert as_json(printed, "--allow-unofficial")["files"][name] == rows
    assert "is a run in the setting closed-book, not open-book" in failed(log, "--setting=open-book")


def test_a_log_of_some_questions_is_unofficial(tmp_path: Path) -> None:
    log = ran(tmp_path, limit=3)
    assert "scores of" in failed(log) and "are not official" in failed(log, "--metric=rouge1.fscore")
    (rows,) = as_json(log, "--metric=rouge1.fscore", "--allow-unofficial")["files"].values()
    assert rows[0]["notes"].startswith("UNOFFICIAL: ")
    assert "; rouge1.fscore, closed-book; n 3 questions" in rows[0]["notes"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "does not have the setting of the run: add --setting"),
        (("--setting=x", "--metric=acc"), "has no metric 'acc'; allowed: acc.loose, acc.strict, rouge1.fscore"),
        (("--setting=x", "--source-name=logs"), "--source-url"),
        (("--setting=x", "--date=today"), "the date is 'today'; allowed: an ISO date"),
        (("--setting=x", "--dataset=a"), "the dataset is 'a'"),
        (("--setting=x", "--dataset=../x"), "the dataset is '../x'"),
        (("--setting=x", "--dataset=a/.."), "the dataset is 'a/..'"),
        (("--setting=x", "--push=a b"), "the model is 'a b', which is not a name"),
    ],
)
def test_wrong_usage(report: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in failed(report, *arguments)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("{}", "is not a report of scores"),
        ("\ud800", "is not JSON"),
        ('[{"benchmark": "x"}]', "is not a report of scores"),
        ('{"benchmark": "felm", "scores": {}}', "has no config, setting, created, intervals, n, deviations"),
    ],
)
def test_files_that_are_not_reports(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    assert said in failed(path)


def test_the_same_score_twice_is_refused(report: Path) -> None:
    assert "dev_x_acc_loose" in failed(report, report, "--setting=x")


def test_a_pull_request_is_opened_once(hub: Hub, report: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.json", REPORT | {"setting": "open-book"})
    assert "not closed-book" in failed(report, other, "--setting=closed-book", "--push", MODEL)
    assert not hub.lines("POST")[1:]
    done = as_json(report, "--setting=closed-book", "--push", MODEL)
    assert done["pull_request"].endswith(f"/{MODEL}/discussions/1")
    api = HfApi(endpoint=hub.url, token=TOKEN)
    name = ".eval_results/fanoutqa_dev_closed_book.yaml"
    assert name not in api.list_repo_files(MODEL)
    downloaded = Path(api.hf_hub_download(MODEL, name, revision="refs/pr/1", cache_dir=tmp_path / "seen"))
    text = downloaded.read_text(encoding="utf-8")
    assert yaml.safe_load(text) == done["files"][name]
    repo = hub.repo("model", MODEL)
    assert repo.pull_requests == ["Add evaluation results: fanoutqa_dev_closed_book"]
    repo.refs["refs/heads/main"] = repo.refs["refs/pr/1"]
    again = command(report, "--setting=closed-book", "--push", MODEL)
    assert "already has these results: no pull request was opened" in again.stdout
    later = as_json(report, "--setting=closed-book", "--date=2026-02-01", "--metric=acc.loose", "--push", MODEL)
    assert later["pull_request"].endswith("/discussions/2")
    second = api.hf_hub_download(MODEL, name, revision="refs/pr/2", cache_dir=tmp_path / "seen")
    rows = parse_eval_result_entries(yaml.safe_load(Path(second).read_text(encoding="utf-8")))
    assert [row.date == "2026-02-01" for row in rows] == [True, False, False]


def test_errors_of_the_hub(hub: Hub, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push = (report, "--setting=x", "--push")
    assert "does not exist" in failed(*push, "someone/nothing")
    monkeypatch.setenv("HF_TOKEN", "hf_of_nobody")
    assert "token" in failed(*push, MODEL)
    monkeypatch.delenv("HF_TOKEN")
    assert "no token for http://127.0.0.1" in failed(*push, MODEL)
    assert hub.repo("model", MODEL).pull_requests == []


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 200, "body": b"<html>"},
        {"status": 200, "body": b"[1]"},
        {"status": 302, "headers": {"Location": "http://127.0.0.2:9/x"}},
        {"status": 418, "body": b'{"error": "\\u001b[31m"}'},
    ],
)
def test_a_hostile_hub_is_one_error(hub: Hub, report: Path, fault: dict[str, Any]) -> None:
    hub.fail(".*", times=100, **fault)
    message = failed(report, "--setting=x", "--push", MODEL)
    assert TOKEN not in message and message.count("\n") == 0
    assert hub.repo("model", MODEL).pull_requests == []
