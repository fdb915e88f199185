"""Scores as ``.eval_results``: entries, files, the command, and a pull request on a local Hub."""

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
from huggingface_hub.errors import BadRequestError
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from qabench.benchmarks import Benchmark, benchmark, benchmark_names
from qabench.cli import app
from qabench.cli.hub import results
from qabench.errors import InputError, QabenchError
from qabench.evaluation.signature import IRRELEVANT, Field
from qabench.hub.leaderboards import eval_file, tasks_of
from qabench.hub.results import About, described, entries, to_yaml
from qabench.loading_scripts import dataset_table
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
    "benchmark": "fanoutqa", "config": "dev", "setting": "predictions", "model": "answers",
    "created": "2026-01-31T10:00:00+00:00", "status": "success", "path": "answers.jsonl", "expected": 310,
    "available": 310, "scores": SCORES,
    "intervals": {name: {"mean": value, "low": value - 0.01, "high": value + 0.01} for name, value in SCORES.items()},
    "n": dict.fromkeys(SCORES, 310), "left_out": dict.fromkeys(SCORES, 0), "unit": dict.fromkeys(SCORES, "questions"),
    "deviations": {name: [] for name in SCORES},
    "counts": {"answered": 306, "empty": 1, "missing": 3, "failed": 0, "records": 310}, "problems": [],
    "signatures": {"acc": ACC, "rouge": ROUGE},
}  # fmt: skip
CLOSED = About(setting="closed-book")
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1)


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
    with Hub(organizations=("someone", "qabench")) as hub:
        hub.used_here(monkeypatch)
        HfApi(endpoint=hub.url, token=TOKEN).create_repo(MODEL)
        yield hub


def test_an_entry_has_everything_a_reader_needs() -> None:
    (entry,) = entries(changed(left_out={"acc.loose": 2}), CLOSED, ["acc.loose"])
    assert (entry.dataset_id, entry.task_id) == ("qabench/fanoutqa", "dev_closed_book_acc_loose")
    assert (entry.value, entry.date) == (0.4321, "2026-01-31T10:00:00+00:00")
    assert entry.notes == (
        "acc.loose, closed-book; n 310 questions; 2 left out; answers: 1 empty, 3 missing; "
        f"95% interval 0.4221 to 0.4421; signature {ACC}"
    )
    assert entry.source_url is entry.source_name is None


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        ({"signatures": {"acc": ACC.replace("3.8", "3.9")}}, "lemmatizer: spacy-3.9 instead of spacy-3.8"),
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
    loose, rouge = entries(report, About("closed-book", allow_unofficial=True), ["acc.loose", "rouge1.fscore"])
    assert (loose.notes or "").startswith(f"UNOFFICIAL: {sentences}; acc.loose")
    assert "UNOFFICIAL" not in (rouge.notes or "")


@pytest.mark.parametrize(
    ("report", "message"),
    [(REPORT | {"deviations": {}}, "its deviations are not recorded"),
     (changed(scores={"acc.loose": math.nan}), "acc.loose of answers.jsonl is nan; an entry needs a finite number")],
)  # fmt: skip
def test_unusable_scores(report: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        entries(report, CLOSED)


@given(st.dictionaries(st.integers(1, 99), st.floats(allow_nan=False, allow_infinity=False), min_size=1), NAMES)
def test_files_are_read_back_unchanged(values: dict[int, float], remark: str) -> None:
    scores = {f"mrr@{k}": value for k, value in values.items()}
    ranked = REPORT | {
        "benchmark": "fastbook", "scores": scores, "n": dict.fromkeys(scores, 1), "intervals": {}, "signatures": {},
        "deviations": {name: [remark] for name in scores},
    }  # fmt: skip
    made = entries(ranked, About("rag bm25", allow_unofficial=True))
    text = to_yaml(made)
    assert parse_eval_result_entries(yaml.safe_load(text)) == made and to_yaml(made, text.encode()) == text


def test_other_entries_of_a_file_are_kept() -> None:
    theirs = b"- dataset: {id: a/b, task_id: t}\n  value: 1.5\n  evaluation_framework: theirs\n"
    old = to_yaml(entries(REPORT, CLOSED, ["acc.loose", "acc.strict"]), theirs)
    better = entries(changed(scores={"acc.loose": 0.7}), CLOSED, ["acc.loose", "rouge1.fscore"])
    new = yaml.safe_load(to_yaml(better, old.encode()))
    assert [row["value"] for row in new] == [1.5, 0.7, 0.1, 0.5] and new[0] == yaml.safe_load(theirs)[0]


def test_entries_are_printed_or_written(report: Path, tmp_path: Path) -> None:
    done = command(report, "--setting=open-book")
    assert done.exit_code == 0, done.exception
    assert done.stdout.startswith("# .eval_results/fanoutqa_dev_open_book.yaml\n")
    assert "date: '2026-01-31T10:00:00+00:00'" in done.stdout
    path = tmp_path / ".eval_results/fanoutqa_dev_open_book.yaml"
    for metric in SCORES:
        done = as_json(report, "--setting=open-book", f"--scores={metric}", "--output", tmp_path)
        assert done["written"] == [str(path)]
    rows = parse_eval_result_entries(yaml.safe_load(path.read_text(encoding="utf-8")))
    names = {f"dev_open_book_{name.replace('.', '_')}": value for name, value in SCORES.items()}
    assert {row.task_id: row.value for row in rows} == names


@pytest.mark.parametrize("content", [b"- value: [1\n", b"\xff\xfe", b"- a\n", b"a: b", b"- value: 1"])
def test_a_file_of_broken_yaml_is_kept(report: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / ".eval_results/fanoutqa_dev_open_book.yaml"
    path.parent.mkdir()
    path.write_bytes(content)
    assert str(path) in failed(report, "--setting=open-book", "--scores=acc.loose", "--output", tmp_path)
    assert path.read_bytes() == content


def test_a_log_has_setting_date_and_model(tmp_path: Path) -> None:
    """The log of a run of a model that fails at every second question."""
    inspect_ai = pytest.importorskip("inspect_ai", reason="needs the extra run")
    scripted_model = pytest.importorskip("scripted_model")
    turns = itertools.cycle(["Mars, 1998 and Lima", ConnectionError("the wire is cut")])
    (log,) = inspect_ai.eval(
        "qabench/fanoutqa_closed_book", model=scripted_model.scripted(lambda messages: next(turns), name="log"),
        task_args={"config": "sample", "lemmatizer": "simplemma"}, log_dir=str(tmp_path / "logs"), max_connections=1,
        display="none",
    )  # fmt: skip
    ((name, rows),) = as_json(log.location, "--allow-unofficial")["files"].items()
    assert name == ".eval_results/fanoutqa_sample_closed_book.yaml" and rows[0]["notes"].startswith("UNOFFICIAL: ")
    assert "acc.loose, closed-book; n 12 questions; answers: 6 failed; 95% interval 0." in rows[0]["notes"]
    assert as_json(tmp_path / "logs", "--allow-unofficial")["files"][name] == rows
    printed = write(tmp_path / "printed.json", read_run(log.location).as_dict())
    assert as_json(printed, "--allow-unofficial")["files"][name] == rows
    assert "is a run in the setting closed-book, not open-book" in failed(log.location, "--setting=open-book")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "does not have the setting of the run: add --setting, such as closed-book, open-book"),
     (("--setting=nosuch",), "FanOutQA has no setting 'nosuch'; allowed: closed-book, open-book, evidence-provided"),
     (("--setting=open-book", "--scores=f1"), "has no score 'f1'; allowed: scores acc.loose, acc.strict, "),
     (("--setting=open-book", "--dataset=a"), "the dataset is 'a'"),
     (("--setting=open-book", "--dataset=a/.."), "the dataset is 'a/..'"),
     (("--setting=open-book", "--push=a b"), "the model is 'a b', which is not a name")],
)  # fmt: skip
def test_wrong_usage(report: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in failed(report, *arguments)


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "is not JSON"),
     ("{}", "is not a report of scores"),
     ('{"benchmark": "felm", "scores": {}}', "has no config, setting, created, intervals, n, deviations")],
)  # fmt: skip
def test_files_that_are_not_reports(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    assert said in failed(path)


def test_scores_of_other_tasks_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", REPORT | {"benchmark": "", "config": "mine"})
    assert "answers.jsonl has scores of the task 'mine', which is not a qabench benchmark; score its" in failed(path)


def test_answers_of_an_agent_have_its_setting(report: Path) -> None:
    done = command(report, "--setting=agent", "--scores=acc.loose", "--allow-unofficial")
    assert "dev_agent_acc_loose" in done.stdout


def test_the_same_score_twice_is_refused(report: Path) -> None:
    assert "dev_open_book_acc_loose" in failed(report, report, "--setting=open-book")


def test_a_pull_request_is_opened_once(hub: Hub, report: Path, tmp_path: Path) -> None:
    done = as_json(report, "--setting=closed-book", "--push", MODEL)
    assert done["pull_request"].endswith(f"/{MODEL}/discussions/1")
    repo = hub.repo("model", MODEL)
    name = ".eval_results/fanoutqa_dev_closed_book.yaml"

    def rows(number: int) -> Any:
        return yaml.safe_load(hub.contents[repo.commit(f"refs/pr/{number}").tree[name].oid])

    assert rows(1) == done["files"][name] and name not in repo.tip.tree
    assert repo.pull_requests == ["Add evaluation results: fanoutqa_dev_closed_book"]
    repo.refs["refs/heads/main"] = repo.refs["refs/pr/1"]
    again = command(report, "--setting=closed-book", "--push", MODEL)
    assert "already has these results: no pull request was opened" in again.stdout
    newer = write(tmp_path / "newer.json", REPORT | {"created": "2026-02-01"})
    later = as_json(newer, "--setting=closed-book", "--scores=acc.loose", "--push", MODEL)
    assert later["pull_request"].endswith("/discussions/2")
    assert "does not exist" in failed(report, "--setting=open-book", "--push", "someone/nothing")
    assert [row["date"] == "2026-02-01" for row in rows(2)] == [True, False, False]
    newest = write(tmp_path / "newest.json", REPORT | {"created": "2026-02-02"})
    updated = as_json(newest, "--setting=closed-book", "--scores=acc.strict", "--push", MODEL)
    assert updated["pull_request"] == later["pull_request"] and len(repo.pull_requests) == 2
    assert [row["date"] for row in rows(2)] == ["2026-02-01", "2026-02-02", REPORT["created"]]


def test_a_dry_run_writes_and_sends_nothing(hub: Hub, report: Path, tmp_path: Path) -> None:
    arguments = (report, "--setting=closed-book", "--output", tmp_path / "clone", "--push", MODEL, "--dry-run")
    document = as_json(*arguments)
    path = tmp_path / "clone/.eval_results/fanoutqa_dev_closed_book.yaml"
    assert (document["would_write"], document["written"], document["pull_request"]) == ([str(path)], [], None)
    shown = command(*arguments)
    assert f"would write {path}" in shown.stdout and f"fanoutqa_dev_closed_book.yaml to {MODEL}" in shown.stdout
    assert "task_id" in shown.stdout and not path.exists() and hub.repo("model", MODEL).pull_requests == []


def test_entries_name_the_commit_of_the_dataset(hub: Hub, report: Path, tmp_path: Path) -> None:
    api = HfApi(endpoint=hub.url, token=TOKEN)
    api.create_repo("someone/fanoutqa", repo_type="dataset")
    digest = "0123456789ab"
    signed = {"acc": f"fanout_acc|config:dev|data:{digest}|lemmatizer:spacy-3.8|qabench:1"}
    scores = {"acc.loose": 0.4321}
    path = write(tmp_path / "signed.json", REPORT | {"scores": scores, "signatures": signed})
    arguments = (path, "--setting=closed-book", "--dataset=someone/fanoutqa", "--push", MODEL, "--allow-unofficial")

    def revisions(*more: str) -> list[str | None]:
        (rows,) = as_json(*arguments, *more)["files"].values()
        return [row["dataset"].get("revision") for row in rows]

    assert revisions() == [None]  # nothing says which data the repository has
    for sha256, revision in (("f" * 64, None), (digest.ljust(64, "0"), "current")):
        manifest = json.dumps({"sources": [{"sha256": sha256, "git_blob_sha1": None}]}).encode()
        target = {"path_in_repo": "qabench.json", "repo_id": "someone/fanoutqa", "repo_type": "dataset"}
        api.upload_file(path_or_fileobj=manifest, **target)
        expected = hub.repo("dataset", "someone/fanoutqa").tip.id if revision else None
        assert revisions() == [expected]
    assert revisions("--dataset-revision=" + "a" * 40) == ["a" * 40]


def test_entries_belong_to_tasks_of_the_dataset() -> None:
    """What `results` writes for a complete official evaluation is on the leaderboards of the
    dataset.
    """
    for name in benchmark_names():
        scorer, table = benchmark(name), dataset_table(name)
        tasks = tasks_of(scorer)
        ids = {task["id"] for task in tasks}
        assert tasks and len(ids) == len(tasks)
        assert all(task["split"] in table.config(task["config"]).splits for task in tasks)
        official = [spec.at("10") for spec in scorer.scores if spec.official]
        for config, groups in scorer.leaderboards.groups.items():
            scores = {spec.name: 0.5 for spec in official if spec.group in groups}
            setting = (scorer.leaderboards.settings or [setting.name for setting in scorer.settings])[-1]
            report = REPORT | {
                "benchmark": name, "config": config, "setting": setting, "scores": scores, "signatures": {},
                "intervals": {}, "n": dict.fromkeys(scores, 5), "deviations": dict.fromkeys(scores, ()),
            }  # fmt: skip
            assert {entry.task_id for entry in entries(report, About())} <= ids, (name, config)
        file = eval_file(name, "qabench")
        assert file and file["tasks"] == tasks and file["evaluation_framework"] == "qabench"


def test_results_say_which_leaderboards_show_them(report: Path, hub: Hub) -> None:
    api = HfApi(endpoint=hub.url, token=TOKEN)
    hub.frameworks.add("qabench")
    arguments = (report, "--setting", "closed-book", "--dataset", "someone/fanoutqa", "--push", MODEL)
    assert (
        "could not check which leaderboards of someone/fanoutqa will show these scores: " in command(*arguments).stderr
    )
    api.create_repo("someone/fanoutqa", repo_type="dataset")
    assert "3 of 3 scores are only on the model's page" in command(*arguments).stderr
    content = yaml.safe_dump(eval_file("fanoutqa", "qabench")).encode()
    target = {"path_in_repo": "eval.yaml", "repo_id": "someone/fanoutqa", "repo_type": "dataset"}
    api.upload_file(path_or_fileobj=content, **target)
    shown = "dev_closed_book_acc_loose, dev_closed_book_acc_strict, dev_closed_book_rouge1_fscore"
    said = command(*arguments).stderr
    assert f"scores that leaderboards of someone/fanoutqa will show: {shown}\n" in said
    assert "only on the model's page" not in said


def test_the_board_of_a_dataset_shows_the_entries(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = HfApi(endpoint=hub.url, token=TOKEN)
    api.create_repo("qabench/fanoutqa", repo_type="dataset")
    eval_yaml = yaml.safe_dump(eval_file("fanoutqa", "qabench")).encode()
    target = {"path_in_repo": "eval.yaml", "repo_id": "qabench/fanoutqa", "repo_type": "dataset"}
    with pytest.raises(BadRequestError, match="evaluation_framework"):
        api.upload_file(path_or_fileobj=eval_yaml, **target)
    hub.frameworks.add("qabench")  # as after a pull request to huggingface.js
    api.upload_file(path_or_fileobj=eval_yaml, **target)
    better = REPORT | {"scores": {name: value + 0.1 for name, value in SCORES.items()}}
    api.create_repo("someone/better")
    for model, document in ((MODEL, REPORT), ("someone/better", better)):
        as_json(write(tmp_path / "report.json", document), "--setting=closed-book", "--push", model)
    # The entries of one model are merged, the others are an open pull request.
    repo = hub.repo("model", MODEL)
    repo.refs["refs/heads/main"] = repo.refs["refs/pr/1"]

    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setattr("qabench.cli.reports.offline_variable", lambda: None)
    shown = CliRunner().invoke(app, ["leaderboard", "fanoutqa", "--json"])
    rows = [row for row in json.loads(shown.stdout) if row["source"].startswith("Hub: ")]
    board = {(row["system"], row["metric"]): (row["rank"], row["score"]) for row in rows}
    assert {(row["config"], row["setting"]) for row in rows} == {("dev", "closed-book")}
    for name, value in SCORES.items():
        assert board["someone/better", name] == (1, pytest.approx(value + 0.1))
        assert board[MODEL, name] == (2, value)


def test_a_run_of_another_model_is_named(hub: Hub, tmp_path: Path) -> None:
    def said(**changes: Any) -> str:
        path = write(tmp_path / "run.json", REPORT | {"setting": "closed-book"} | changes)
        return command(path, "--push", MODEL, "--dry-run").stderr

    assert "run.json is about the model other, not someone/model" in said(name="other", model="openai-api/qabench/x")
    for changes in (
        {"name": MODEL, "model": "openai-api/qabench/x"},
        {"model": f"hf/{MODEL}"},
        {"setting": "predictions"},
    ):
        assert "is about the model" not in said(**changes)


@pytest.mark.parametrize("notes", ["", "n 5", "acc.loose; signature ", "run 3, closed-book; signature no"])
def test_notes_of_others_describe_nothing(notes: str) -> None:
    assert described(notes, benchmark("fanoutqa"))[1:] == ("", "")


@pytest.mark.parametrize("url", ["logs/RUN.eval", "ftp://a.org/log", "https://", "javascript:alert(1)"])
def test_a_source_is_a_link(report: Path, url: str) -> None:
    assert "is not a link; allowed: a URL that starts with https://" in failed(report, f"--source-url={url}")


@pytest.mark.parametrize("revision", ["main", "v0.2.0", "", "5503434", "A" * 40, "g" * 40, "a" * 64, "a" * 40 + "\n"])
def test_a_revision_is_a_whole_commit(report: Path, revision: str) -> None:
    said = failed(report, f"--dataset-revision={revision}")
    assert "allowed: a whole commit, which has 40 digits from 0 to 9 and a to f" in said
