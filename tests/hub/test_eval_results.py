"""Scores as ``.eval_results``: entries, files, the command, and a pull request on a Hub that runs here."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
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

from qabench.benchmarks.fanoutqa.predictions import evaluate, load_questions
from qabench.cli.results import results
from qabench.errors import InputError, QabenchError
from qabench.generations import read_generations
from qabench.hub.results import eval_reports
from qabench.hub.results.eval_results import Evaluation, Figure, entries, task_id, to_yaml
from qabench.loading_scripts import FOLDER
from qabench.runs.log import read_run
from qabench.runs.results import as_dict
from qabench.scoring.felm import felm_scores
from qabench.text import Normalizer

ACC = "fanout_acc|config:dev|only_score_answered:no|lemmatizer:spacy-3.8|qabench:1"
DEV = Evaluation("fanoutqa", "dev", "closed-book", "2026-01-31")
LOOSE = Figure("acc.loose", 0.4321, 0.40001, 0.46, 310, ACC)
MODEL = "someone/model"
LABELS = [[True, False], [False, True, True], [True]]
REPLIES = ["Answer: 1, 2", None, "Answer: 1"]
# What `qabench evaluate-felm --json` prints, of three responses of which one has no verdict.
FELM: dict[str, Any] = felm_scores(LABELS, REPLIES, on_unparsed="exclude").as_dict() | {
    "benchmark": "felm",
    "config": "wk",
    "official": felm_scores(LABELS, REPLIES, on_unparsed="correct").as_dict(),
    "counts": {"responses": 3, "scored": 2, "unscored": 1},
    "method": "cot",
    "by": "claims",
    "signature": "felm_factuality|config:wk|method:cot|qabench:1",
}


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


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """What ``qabench score fanoutqa sample --output`` writes, made to be of a spaCy model and of dev."""
    file = FOLDER / "fanoutqa/sample/generations/hasty.jsonl"
    scored = evaluate(read_generations(file), load_questions("fanoutqa", "sample"), normalizer=Normalizer("simplemma"))
    text = json.dumps(scored.as_dict() | {"unofficial": None})
    return write(tmp_path / "report.json", json.loads(text.replace("sample", "dev").replace("UNOFFICIAL ", "")))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with Hub(organizations=("someone",)) as hub:
        hub.used_here(monkeypatch)
        HfApi(endpoint=hub.url, token=TOKEN).create_repo(MODEL)
        yield hub


def test_an_entry_says_all_that_a_reader_needs() -> None:
    (entry,) = entries([LOOSE], replace(DEV, revision="v1.0", remarks=["with 3 missing"]))
    assert (entry.dataset_id, entry.dataset_revision) == ("qabench/fanoutqa", "v1.0")
    assert (entry.task_id, entry.value, entry.date) == ("dev_closed_book_acc_loose", 0.4321, "2026-01-31")
    assert entry.notes == (
        f"acc.loose, closed-book; n 310; 95 % interval 0.4000 to 0.4600; with 3 missing; signature {ACC}"
    )
    assert entry.source_url == "https://github.com/qabench/qabench"
    assert entry.source_name is not None
    assert entry.source_name.startswith("qabench ")


@pytest.mark.parametrize(
    ("benchmark", "signed"),
    [
        ("fanoutqa", {"acc.loose": "acc", "rouge1.fscore": "rouge"}),
        ("felm", {"f1": "felm", "responses_f1": "felm", "official_f1": "felm_official"}),
        ("expertqa", {"autoais_micro": "expertqa", "rouge1": "rouge"}),
        ("fastbook", {"mrr@10": "retrieval", "rouge1.fscore": "rouge"}),
    ],
)
def test_each_figure_has_the_signature_of_its_family(benchmark: str, signed: dict[str, str]) -> None:
    report = {
        "benchmark": benchmark,
        "scores": {},
        "intervals": {name: {"mean": 0.5, "low": 0.4, "high": 0.6} for name in signed},
        "counts": {"scored": 3},
        "signatures": {family: family for family in signed.values()},
    }
    assert {figure.name: figure.signature for figure in eval_reports.figures(report)} == signed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (ACC.replace("spacy-3.8", "UNOFFICIAL simplemma-2.0"), "lemmatizer simplemma-2.0"),
        (ACC.replace("answered:no", "answered:yes"), "only the answered questions are scored"),
        ("felm|limit:5|qabench:1", "only the first 5 items are scored"),
        ({"unofficial": "a reason"}, "a reason"),
        ({"config": "sample"}, "the sample is for trying things out"),
    ],
)
def test_unofficial_figures_are_refused_or_say_so(change: str | dict[str, Any], reason: str) -> None:
    figure = replace(LOOSE, signature=change) if isinstance(change, str) else LOOSE
    evaluation = DEV if isinstance(change, str) else replace(DEV, **change)
    with pytest.raises(InputError, match=rf"1 of 1 figures are unofficial; acc\.loose: {reason}"):
        entries([figure], evaluation)
    (entry,) = entries([figure], evaluation, allow_unofficial=True)
    assert (entry.notes or "").startswith(f"UNOFFICIAL: {reason}; acc.loose")


@pytest.mark.parametrize(
    ("figures", "change", "said"),
    [
        ([], {}, "no figures"),
        ([Figure("x", math.nan)], {}, "x is nan; an entry needs a finite number"),
        ([Figure("x", math.inf)], {}, "finite"),
        ([LOOSE], {"date": "31.1.2026"}, r"the date is '31\.1\.2026'; allowed: an ISO date"),
        ([LOOSE], {"dataset": "fanoutqa"}, "the dataset is 'fanoutqa'; allowed"),
    ],
)
def test_what_no_entry_is_made_of(figures: list[Figure], change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        entries(figures, replace(DEV, **change))


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1)


@given(
    st.lists(st.tuples(NAMES, st.floats(allow_nan=False, allow_infinity=False)), min_size=1),
    st.sampled_from(["2026-01-31", "2026-01-31T10:00:00+00:00", "2026-01-31T10:00:00Z"]),
    NAMES,
)
def test_files_come_back_as_they_were(values: list[tuple[str, float]], date: str, remark: str) -> None:
    figures = {task_id("dev", "x", name): Figure(name, value) for name, value in values}.values()
    made = entries(figures, replace(DEV, date=date, remarks=[remark]))
    text = to_yaml(made)
    assert parse_eval_result_entries(yaml.safe_load(text)) == made
    assert to_yaml(made, text) == text


def test_other_entries_of_a_file_stay() -> None:
    theirs = "- dataset: {id: a/b, task_id: t}\n  value: 1.5\n  evaluation_framework: theirs\n"
    old = to_yaml(entries([LOOSE, Figure("acc.strict", 0.1)], DEV), theirs)
    new = yaml.safe_load(to_yaml(entries([replace(LOOSE, value=0.5), Figure("rouge1.fscore", 0.2)], DEV), old))
    assert [row["value"] for row in new] == [1.5, 0.5, 0.1, 0.2]
    assert new[0] == yaml.safe_load(theirs)[0]


@pytest.mark.parametrize("old", ["a: b", "- 1", "[", "- value: 1", "text"])
def test_a_file_that_holds_no_entries_is_left_alone(old: str) -> None:
    with pytest.raises(InputError, match="no list of entries"):
        to_yaml(entries([LOOSE], DEV), old)


def test_a_report_is_printed(report: Path) -> None:
    done = command(report, "--setting=closed-book", "--date=2026-01-31", "--revision=v1")
    assert done.exit_code == 0, done.exception
    assert done.stdout.startswith("# .eval_results/fanoutqa_dev_closed_book.yaml\n")
    assert "date: '2026-01-31'" in done.stdout
    rows = parse_eval_result_entries(yaml.safe_load(done.stdout))
    assert [row.task_id.removeprefix("dev_closed_book_") for row in rows] == [
        "acc_loose", "acc_strict", "rouge1_fscore", "rouge2_fscore", "rougeL_fscore",
    ]  # fmt: skip
    scores = json.loads(report.read_text(encoding="utf-8"))["scores"]
    assert [row.value for row in rows[:3]] == [*scores["acc"].values(), scores["rouge"]["rouge1"]["fscore"]]
    assert {row.dataset_revision for row in rows} == {"v1"}
    assert all("; n 12; 95 % interval 0." in (row.notes or "") for row in rows)
    assert all("with 1 missing, 1 empty; signature fanout_" in (row.notes or "") for row in rows)


def test_the_date_is_that_of_the_report(report: Path) -> None:
    import os

    os.utime(report, (1_700_000_000, 1_700_000_000))
    (rows,) = as_json(report, "--setting=x", "--figure=acc.loose")["files"].values()
    assert [row["date"] for row in rows] == ["2023-11-14"]


def test_files_are_written_and_added_to(report: Path, tmp_path: Path) -> None:
    first = as_json(report, "--setting=open-book", "--figure=acc.loose", "--out", tmp_path)
    path = tmp_path / ".eval_results/fanoutqa_dev_open_book.yaml"
    assert first["written"] == [str(path)]
    command(report, "--setting=open-book", "--figure=acc.strict", "--out", tmp_path)
    rows = parse_eval_result_entries(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert [row.task_id for row in rows] == ["dev_open_book_acc_loose", "dev_open_book_acc_strict"]


def test_felm_has_its_official_figures_on_request(tmp_path: Path) -> None:
    path = write(tmp_path / "felm.json", FELM)
    ((name, rows),) = as_json(path)["files"].items()
    assert name == ".eval_results/felm_wk_cot_by_claims.yaml"
    figures = ("f1", "precision", "recall", "balanced_accuracy")
    assert {row["dataset"]["task_id"]: row["value"] for row in rows} == {
        f"wk_cot_by_claims_{name}": FELM[name] for name in figures
    }
    assert rows[0]["notes"] == f"f1, cot by claims; n 3; with 1 unscored; signature {FELM['signature']}"
    (rows,) = as_json(path, "--figure=official_f1", "--figure=responses_f1")["files"].values()
    assert [row["value"] for row in rows] == [FELM["official"]["f1"], FELM["responses"]["f1"]]
    assert len({FELM["f1"], FELM["official"]["f1"], FELM["responses"]["f1"]}) == 3
    undefined = write(tmp_path / "undefined.json", FELM | {"precision": None})
    assert len(as_json(undefined)["files"][name]) == 3


def ran(folder: Path, **options: Any) -> str:
    """The log of a run of a model that answers one question, fails at the next, and so on."""
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


def test_a_log_knows_setting_date_and_model(tmp_path: Path) -> None:
    log = ran(tmp_path)
    ((name, rows),) = as_json(log, "--allow-unofficial")["files"].items()
    assert name == ".eval_results/fanoutqa_sample_closed_book.yaml"
    assert len(rows) == 5
    assert rows[0]["date"].startswith("20")
    assert "acc.loose, closed-book; n 12; 95 % interval 0." in rows[0]["notes"]
    assert "; with 6 failed; signature fanout_acc|" in rows[0]["notes"]
    printed = write(tmp_path / "printed.json", as_dict(read_run(log)))
    assert as_json(printed, "--allow-unofficial")["files"][name] == rows
    assert "is of the setting closed-book, not of open-book" in failed(log, "--setting=open-book")


def test_a_log_of_some_questions_is_unofficial(tmp_path: Path) -> None:
    log = ran(tmp_path, limit=3)
    assert "only some of the questions were asked" in failed(log, "--figure=rouge1.fscore")
    (rows,) = as_json(log, "--figure=rouge1.fscore", "--allow-unofficial")["files"].values()
    assert rows[0]["notes"].startswith(
        "UNOFFICIAL: only some of the questions were asked; rouge1.fscore, closed-book; n 3"
    )


def test_a_run_that_was_stopped_is_unofficial() -> None:
    assert eval_reports.unofficial({"status": "cancelled"}) == "the run did not end (cancelled)"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "does not say how the model answered: add --setting"),
        (("--setting=x", "--figure=acc"), "has no figure 'acc'; allowed: acc.loose, acc.strict, rouge1.fscore"),
        (("--setting=x", "--source-name=logs"), "--source-url"),
        (("--setting=x", "--date=today"), "the date is 'today'"),
        (("--setting=x", "--dataset=a"), "the dataset is 'a'"),
        (("--setting=x", "--push=a b"), "no name of a model"),
    ],
)
def test_wrong_usage(report: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in failed(report, *arguments)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"benchmark": "felm", "config": "wk"}', "\ud800", '{"intervals": {"a": 1}}']
)
def test_files_that_are_no_reports(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    assert "qabench score ... --output FILE" in failed(path)
    assert "cannot read the report" in failed(tmp_path / "nowhere.json")


def test_the_same_figure_twice_is_refused(report: Path) -> None:
    assert "dev_x_acc_loose" in failed(report, report, "--setting=x")


def test_a_pull_request_is_opened_once(hub: Hub, report: Path, tmp_path: Path) -> None:
    felm = write(tmp_path / "felm.json", FELM)
    assert "not of closed-book" in failed(report, felm, "--setting=closed-book", "--push", MODEL)
    assert not hub.lines("POST")[1:]
    done = as_json(report, "--setting=closed-book", "--push", MODEL)
    assert done["pull_request"].endswith(f"/{MODEL}/discussions/1")
    api = HfApi(endpoint=hub.url, token=TOKEN)
    name = ".eval_results/fanoutqa_dev_closed_book.yaml"
    assert name not in api.list_repo_files(MODEL)
    downloaded = Path(api.hf_hub_download(MODEL, name, revision="refs/pr/1", cache_dir=tmp_path / "seen"))
    text = downloaded.read_text(encoding="utf-8")
    assert yaml.safe_load(text) == done["files"][name]
    assert api.get_discussion_details(MODEL, 1).title == "Add evaluation results: fanoutqa_dev_closed_book"

    api.merge_pull_request(MODEL, 1)
    again = command(report, "--setting=closed-book", "--push", MODEL)
    assert "has these results already: no pull request was opened" in again.stdout
    changed = as_json(report, "--setting=closed-book", "--date=2026-01-31", "--figure=acc.loose", "--push", MODEL)
    assert changed["pull_request"].endswith("/discussions/2")
    second = api.hf_hub_download(MODEL, name, revision="refs/pr/2", cache_dir=tmp_path / "seen")
    rows = parse_eval_result_entries(yaml.safe_load(Path(second).read_text(encoding="utf-8")))
    assert len(rows) == 5
    assert [row.date == "2026-01-31" for row in rows] == [True, False, False, False, False]


def test_another_model_than_the_report_names(hub: Hub, tmp_path: Path) -> None:
    path = write(tmp_path / "felm.json", FELM | {"model": "openai/other"})
    assert f"is of the model openai/other, and goes to {MODEL}" in command(path, "--push", MODEL).stderr


def test_what_stands_between_here_and_the_hub(hub: Hub, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push = (report, "--setting=x", "--push")
    assert "no such repository" in failed(*push, "someone/nothing")
    monkeypatch.setenv("HF_TOKEN", "hf_of_nobody")
    assert "token" in failed(*push, MODEL)
    monkeypatch.delenv("HF_TOKEN")
    assert "there is no token for http://127.0.0.1" in failed(*push, MODEL)
    assert hub.repo("model", MODEL).discussions == []
