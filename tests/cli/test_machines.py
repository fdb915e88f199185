"""What programs read: one shape of JSON, exact numbers of all comparisons, names for trackers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import qabench
from qabench.cli import app
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Record, ScoreSpec
from qabench.evaluation.score_spec import Pass
from qabench.hub.results import read_reports
from qabench.loading_scripts import FOLDER

FANOUTQA = [str(FOLDER / f"fanoutqa/sample/generations/{name}.jsonl") for name in ("careful", "hasty")]
OPTIONS = ("--config", "sample", "--lemmatizer", "simplemma", "--scores", "acc")
MLFLOW = re.compile(r"[\w\-. :/]+", re.ASCII)  # names of metrics that it takes


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def keys(value: Any) -> Any:
    """The keys of JSON data at all levels, of lists those of the first element."""
    if isinstance(value, dict):
        return {key: keys(element) for key, element in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value else type(value).__name__


@pytest.fixture
def silent(tmp_path: Path) -> Path:
    """Verdicts that name no error, so that the precision of errors is undefined."""
    path = tmp_path / "silent.jsonl"
    ids = qabench.load_dataset("felm", "sample", split="test")["index"]
    path.write_text("".join(json.dumps({"id": id, "answer": "ALL_CORRECT"}) + "\n" for id in ids))
    return path


def test_the_document_of_score_has_one_shape(silent: Path) -> None:
    one, two = (
        json.loads(run("score", "fanoutqa", *files, *OPTIONS, "--json").stdout) for files in (FANOUTQA[:1], FANOUTQA)
    )
    assert keys(one) == keys(two) and len(two["evaluations"]) == 2 == len(one)
    (felm,) = json.loads(run("score", "felm", silent, "--config", "sample", "--json").stdout)["evaluations"]
    assert felm.keys() == one["evaluations"][0].keys()
    assert (felm["scores"]["precision"], felm["intervals"]["precision"], felm["n"]["precision"]) == (None, None, 0)
    assert felm["undefined"]["precision"] and felm["scores"]["recall"] == 0
    for name in ("scores", "intervals", "n", "left_out", "unit", "deviations"):
        assert felm[name].keys() == felm["scores"].keys(), name


def test_a_report_and_a_leaderboard_name_undefined_scores(tmp_path: Path, silent: Path) -> None:
    ids = [json.loads(line)["id"] for line in silent.read_text().splitlines()]
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps({"id": id, "answer": "Answer: 1"}) + "\n" for id in ids))
    run("report", "felm", silent, other, "--config", "sample", "-o", tmp_path / "page", "--quiet")
    (section,) = json.loads((tmp_path / "page/report.json").read_text())["sections"]
    (row, defined) = [row for row in section["scores"] if row["metric"] == "f1"]
    assert row["run"] == "silent" and row["mean"] is None and row.keys() == defined.keys()
    assert defined["mean"] > 0
    assert section["findings"]["f1"].endswith("segments). Without this score: silent.")
    ranked = run("leaderboard", "felm", silent, other, "--config", "sample", "--quiet")
    assert "silent has no score f1: no segments are wrong, or none were" in ranked.stdout
    with pytest.raises(InputError, match=r"no scores of FELM to rank\. silent has no score f1: "):
        run("leaderboard", "felm", silent, "--config", "sample")


def test_groups_without_a_pair_are_named(tmp_path: Path, silent: Path) -> None:
    rows = qabench.load_dataset("felm", "sample", split="test")
    domain = rows[0]["domain"]
    lines = [json.dumps({"id": row["index"], "labels": [False] * len(row["labels"])}) for row in rows]
    own = [line for line, row in zip(lines, rows, strict=True) if row["domain"] == domain]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.jsonl").write_text("\n".join(own))
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    done = run("compare", "felm", *files, "--config", "sample", "--scores", "precision", "--by", "domain", "--json")
    document = json.loads(done.stdout)
    groups = [each["group"] for each in document["comparisons"] if each["group"]]
    others = sorted({row["domain"] for row in rows} - set(groups))
    assert domain in groups and others
    expected = f"precision by domain: fewer than two systems have a score for the same questions of {', '.join(others)}"
    assert document["notes"] == [expected]
    only_silent = qabench.evaluate_predictions("felm", "sample", silent, scores="precision")
    assert only_silent.why_unscored() == "they are undefined"


def test_groups_have_the_same_scores(silent: Path) -> None:
    (felm,) = json.loads(run("score", "felm", silent, "--config", "sample", "--by", "domain", "--json").stdout)[
        "evaluations"
    ]
    for group in felm["by"]["domain"].values():
        assert group["scores"].keys() == group["intervals"].keys() == felm["scores"].keys()


def test_the_document_of_compare_has_one_shape() -> None:
    one, two = (
        json.loads(run("compare", "fanoutqa", *FANOUTQA, *OPTIONS[:-1], scores, "--json").stdout)
        for scores in ("acc.loose", "acc")
    )
    assert keys(one) == keys(two) and (len(one["comparisons"]), len(two["comparisons"])) == (1, 2)
    assert one["comparisons"][0]["group"] is None


def test_results_reads_what_score_writes(tmp_path: Path, silent: Path) -> None:
    out = tmp_path / "scores.json"
    run("score", "fanoutqa", *FANOUTQA, *OPTIONS, "-o", out)
    assert [report["model"] for report in read_reports(out)] == ["careful", "hasty"]
    run("score", "felm", silent, "--config", "sample", "-o", out)
    entries = json.loads(run("results", out, "--setting", "raw", "--allow-unofficial", "--json").stdout)
    assert "recall" in str(entries) and "precision" not in str(entries)


def test_a_frame_has_all_comparisons() -> None:
    comparison = qabench.compare("fanoutqa", "sample", FANOUTQA, "acc", by=["type"], lemmatizer="simplemma")
    frame = comparison.to_pandas()
    assert len(frame) == sum(len(each.pairs) for each in (comparison, *comparison.others))
    assert set(frame["metric"]) == {"acc.loose", "acc.strict"} and set(frame["grouping"].dropna()) == {"type"}
    by_metric = frame[frame["group"].isna()].groupby("metric")["difference"].first()
    assert by_metric["acc.strict"] == comparison.others[0].pairs[0].difference.interval.mean


def lm_eval_samples(folder: Path, task: str, right: int, metric: str = "exact_match") -> Path:
    """Write samples of lm-evaluation-harness, the first ``right`` of 20 with the value 1."""
    folder.mkdir(exist_ok=True)
    path = folder / f"samples_{task}_2026-01-01T00-00-00.000000.jsonl"
    rows = []
    for i in range(20):
        row = {
            "doc_id": i,
            "doc": {"question": f"{task} {i}?"},
            "target": str(i),
            "filter": "none",
            "metrics": [metric],
        }
        rows.append(
            {
                **row,
                "metrics": [metric],
                "arguments": {},
                "resps": [[""]],
                "filtered_resps": [""],
                metric: float(i < right),
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_folder_of_several_tasks_is_compared_on_each(tmp_path: Path) -> None:
    for system, right in (("a", 18), ("b", 4)):
        for task in ("sums", "words"):
            lm_eval_samples(tmp_path / system, task, right)
    lm_eval_samples(tmp_path / "a", "alone", 1)
    done = run("compare", tmp_path / "a", tmp_path / "b")
    assert "sums: " in done.stdout and "words: " in done.stdout and "no other system is on alone" in done.stdout
    comparisons = json.loads(run("compare", tmp_path / "a", tmp_path / "b", "--json").stdout)["comparisons"]
    assert [each["config"] for each in comparisons] == ["sums", "words"]
    assert all(len(each["pairs"]) == 1 for each in comparisons)
    frame = qabench.compare([tmp_path / "a", tmp_path / "b"]).to_pandas()
    assert list(frame["questions"]) == ["sums", "words"]


def test_tasks_of_the_same_questions_with_other_scores(tmp_path: Path) -> None:
    for system, right in (("a", 18), ("b", 4)):
        lm_eval_samples(tmp_path / system, "sums", right)
        renamed = lm_eval_samples(tmp_path / system / "other", "sums", right, "err")
        renamed.rename(renamed.with_name(renamed.name.replace("sums", "more")))
    comparisons = json.loads(run("compare", tmp_path / "a", tmp_path / "b", "--json").stdout)["comparisons"]
    assert {each["config"]: each["metric"] for each in comparisons} == {"sums": "exact_match", "more": "err"}


def test_scores_that_only_some_logs_have_are_named(tmp_path: Path) -> None:
    files = []
    for system in ("a", "b"):
        path = lm_eval_samples(tmp_path / system, "sums", 4)
        if system == "a":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            lines = [json.dumps(row | {"err": 0.5, "metrics": ["exact_match", "err"]}) for row in rows]
            path.write_text("\n".join(lines))
        files.append(path)
    notes = json.loads(run("compare", *files, "--json").stdout)["notes"]
    assert notes == ["err is not compared: not in b"]
    with pytest.raises(InputError, match=f"{files[1]} has no score 'err'; allowed: scores exact_match$"):
        run("compare", *files, "--scores", "err")


def test_lower_is_better(tmp_path: Path) -> None:
    files = [lm_eval_samples(tmp_path / system, "sums", right, "err") for system, right in (("a", 18), ("b", 4))]
    (higher,) = json.loads(run("compare", *files, "--json").stdout)["comparisons"]
    (lower,) = json.loads(run("compare", *files, "--lower-is-better", "err", "--json").stdout)["comparisons"]
    assert higher["pairs"][0]["second"] == lower["pairs"][0]["first"] == lower["systems"][0]["system"]
    assert lower["pairs"][0]["significant"] and "is better" in lower["pairs"][0]["verdict"]
    run("report", *files, "--lower-is-better", "err", "-o", tmp_path / "page")
    (section,) = json.loads((tmp_path / "page/report.json").read_text())["sections"]
    assert f"{lower['pairs'][0]['first']} is the best system" in section["findings"]["err"]
    # The table for a paper has the lowest error rate in bold.
    table = run("score", *files, "--lower-is-better", "err", "--format", "markdown").stdout
    assert "**0.2000**" in table and "0.9000†" in table
    for command in ("score", "compare"):
        with pytest.raises(InputError, match="no system has the score 'wer'"):
            run(command, *files, "--lower-is-better", "wer")
    with pytest.raises(InputError, match="fanoutqa declares whether"):
        run("compare", "fanoutqa", *FANOUTQA, *OPTIONS, "--lower-is-better", "acc.loose")


def test_names_for_trackers() -> None:
    columns = ("mrr@10", "exact_match,first", "match", "a é", "a è")
    records = [Record("1", 1, "q", "", [], "a", "answered", scores=dict.fromkeys(columns, 0.5))]
    specs = [ScoreSpec(name, name, "", "g") for name in columns]
    specs.append(Pass(1, all=True).of(specs[2]))
    evaluation = Evaluation("p", "t", "", "c", "s", "m", "", "success", 1, records, score_specs=specs)
    metrics = evaluation.to_metrics()
    assert list(metrics) == ["mrr_at_10", "exact_match.first", "match", "a _", "a __2", "match.pass_hat_1"]
    assert all(map(MLFLOW.fullmatch, metrics)) and metrics["mrr_at_10"] == 0.5


def test_a_folder_with_the_name_of_the_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fanoutqa").mkdir()
    monkeypatch.chdir(tmp_path)
    for command in (("score",), ("report", "-o", "page"), ("compare",), ("leaderboard",)):
        done = run(command[0], "fanoutqa", *FANOUTQA, "--config", "sample", *command[1:])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "page/index.html").is_file()
