"""Reports: their numbers, what they say of the runs, and the command."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from report_runs import fastbook_run, felm_run, run_of, three_systems, written
from typer.testing import CliRunner

from qabench.cli.report import report
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.evaluation import Evaluation, Message, Record
from qabench.report import build_report
from qabench.report.analysis import analyse
from qabench.report.names import figure_name, outcome
from qabench.report.records import LONGEST_TEXT, shortened
from qabench.report.sections import sections_of
from qabench.runs.figures import figures
from qabench.scoring.felm import felm_scores
from qabench.stats import bootstrap_mean, paired_randomization

pytest.importorskip("altair", reason="needs the extra report")
pytest.importorskip("vl_convert", reason="needs the extra report")


@pytest.fixture(scope="module")
def three() -> list[Evaluation]:
    return three_systems()


def test_scores_are_those_of_the_runs(three: list[Evaluation], tmp_path: Path) -> None:
    section = written(build_report(three, tmp_path))["sections"][0]
    for label, run in zip(("large", "medium", "small"), three, strict=True):
        found = {
            row["figure"]: (row["mean"], row["low"], row["high"]) for row in section["scores"] if row["run"] == label
        }
        assert found == {name: (one.mean, one.low, one.high) for name, one in figures(run).items()}
        assert {row["n"] for row in section["scores"]} == {len(run.records)}


def test_a_category_is_its_own_records(three: list[Evaluation]) -> None:
    rows = next(b.rows for b in analyse(sections_of(three)[0]).breakdowns if b.name == "category")
    row = next(r for r in rows if (r["run"], r["group"], r["figure"]) == ("large", "Astronomy", "acc.loose"))
    values = [record.scores["acc.loose"] for record in three[0].records if "Astronomy" in record.groups["category"]]
    assert (row["n"], row["mean"]) == (len(values), sum(values) / len(values))


def test_pairs_are_tested_on_common_questions(three: list[Evaluation]) -> None:
    first, second = three[0], replace(three[2], records=three[2].records[3:])
    (section,) = sections_of([first, second])
    row = next(row for row in analyse(section).pairs if row["figure"] == "acc.loose")
    ours, theirs = ([record.scores["acc.loose"] for record in run.records[-9:]] for run in (first, second))
    test = paired_randomization(ours, theirs)
    assert (row["n"], row["p"]) == (9, test.p_value)
    assert (row["difference"], row["low"]) == (test.interval.mean, test.interval.low)
    assert row["wins"] + row["ties"] + row["losses"] == 9
    assert row["wins"] == sum(a > b for a, b in zip(ours, theirs, strict=True))


def test_felm_is_compared_by_its_own_f1() -> None:
    runs = [felm_run(seed=1), felm_run(model="org/other", seed=2)]
    (section,) = sections_of(runs)
    analysis = analyse(section)
    scored = [
        felm_scores(
            *([[part[key] for part in r.detail["segments"]] for r in run.records] for key in ("label", "verdict"))
        )
        for run in runs
    ]
    f1 = [score.as_dict()["f1"] for score in scored]
    row = next(row for row in analysis.pairs if row["figure"] == "f1")
    assert row["difference"] == pytest.approx(max(f1) - min(f1), abs=1e-12)
    assert row["first"] == list(section.runs)[f1.index(max(f1))]


def test_errors_found_by_their_type() -> None:
    def record(id: str, *segments: tuple[bool, bool | None, str | None]) -> Record:
        parts = [
            {"text": "", "label": label, "verdict": verdict, "type": kind, "comment": ""}
            for label, verdict, kind in segments
        ]
        return Record(id, 1, "", "", [], "", "answered", scores={"tp": 1.0}, detail={"segments": parts})

    records = [
        record("a", (False, False, "knowledge_error"), (False, True, "knowledge_error"), (True, False, None)),
        record("b", (False, None, "knowledge_error"), (False, False, "")),
    ]
    (section,) = sections_of([run_of("felm", "all", "raw", "m/x", records)])
    rows = next(b for b in analyse(section).breakdowns if b.name == "error type").rows
    assert {row["group"]: (row["n"], row["mean"]) for row in rows} == {
        "knowledge error": (3, 1 / 3),
        "type not given": (1, 1.0),
    }
    expected = bootstrap_mean([1, 0, 0], clusters=["a", "a", "b"])
    assert (rows[0]["low"], rows[0]["high"]) == (expected.low, expected.high)


def test_curves_end_at_the_run_s_own_figures() -> None:
    run = fastbook_run(k=5)
    analysis = analyse(sections_of([run])[0])
    last = {row["figure"]: row["mean"] for row in analysis.curves if row["k"] == 5}
    official = {name.partition("@")[0]: one.mean for name, one in figures(run).items()}
    assert last == pytest.approx({"MRR": official["mrr"], "Recall": official["recall"]}, abs=1e-12)
    assert [row["k"] for row in analysis.curves if row["figure"] == "MRR"] == [1, 2, 3, 4, 5]
    missed = sum(part["rank"] is None for record in run.records for part in record.detail["components"])
    assert f": {missed} of " in analysis.curve_notes[0]


def test_missing_and_unscored_answers_are_told(three: list[Evaluation], tmp_path: Path) -> None:
    records = [replace(three[0].records[0], scores={}), *three[0].records[1:]]
    run = replace(three[0], records=records, expected=20, status="cancelled", unofficial="simplemma-2")
    page = build_report([run], tmp_path).read_text(encoding="utf-8")
    assert "8 of 20 answers are missing" in page
    assert "1 answers have no score" in page
    assert "did not finish (status: cancelled)" in page
    assert "Unofficial scores: simplemma-2" in page
    outcomes = {row["outcome"]: row["n"] for row in written(tmp_path / "index.html")["sections"][0]["outcomes"]}
    assert sum(outcomes.values()) == 20
    assert outcomes["none"] == 9


def test_a_run_that_nothing_can_score_says_why(three: list[Evaluation], tmp_path: Path) -> None:
    records = [replace(record, scores={}) for record in three[0].records]
    page = build_report([replace(three[0], records=records, unscored="the answers are secret")], tmp_path)
    assert "Nothing is scored: the answers are secret." in page.read_text(encoding="utf-8")


def test_labels_tell_runs_apart(three: list[Evaluation]) -> None:
    one = three[0]
    again = [
        replace(one, setting="open-book"),
        replace(one, model="other/large"),
        replace(one, created="2026-05-01T11:00"),
    ]
    labels = list(sections_of([one, *again])[0].runs)
    assert len(set(labels)) == 4
    assert all(label.startswith("large · ") for label in labels)
    assert list(sections_of(three)[0].runs) == ["large", "medium", "small"]


def test_the_same_runs_give_the_same_page(three: list[Evaluation], tmp_path: Path) -> None:
    pages = [build_report(three, tmp_path / name).read_bytes() for name in ("a", "b")]
    assert pages[0] == pages[1]


def test_nothing_to_report(three: list[Evaluation], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the log of one run"):
        build_report([], tmp_path)
    with pytest.raises(InputError, match=r"large\.eval has no records yet \(status: started\)"):
        build_report([replace(three[0], records=[], status="started")], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made(three: list[Evaluation], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(QabenchError, match="cannot write"):
        build_report(three[:1], tmp_path / "file")


def test_without_altair(three: list[Evaluation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtra, match=r"qabench\[report\]"):
        build_report(three[:1], tmp_path)


def test_names_for_people() -> None:
    names = ("acc.loose", "rouge1.fscore", "rougeL.recall", "mrr@10", "responses_f1", "my_own.score")
    assert [figure_name(name) for name in names] == [
        "Loose accuracy",
        "ROUGE-1 F",
        "ROUGE-L recall",
        "MRR@10",
        "Responses: F1 (errors)",
        "My own score",
    ]
    assert [outcome(score) for score in (None, -0.5, 0.0, 0.2, 1 - 1e-12)] == [
        "none",
        "wrong",
        "wrong",
        "partly",
        "right",
    ]


def test_long_texts_keep_both_ends() -> None:
    text = "a" * LONGEST_TEXT + "the end"
    short = shortened(text)
    assert short.startswith("aaa") and short.endswith("the end")
    assert "7 characters are left out" in short
    assert shortened(text[:LONGEST_TEXT]) == text[:LONGEST_TEXT]


def test_what_was_not_scored_alike_is_told(three: list[Evaluation], tmp_path: Path) -> None:
    signatures = ["fanout_acc|lemmatizer:spacy|prompt:a", "fanout_acc|lemmatizer:simplemma|prompt:b"]
    runs = [replace(run, signatures={"acc": line}) for run, line in zip(three, signatures, strict=False)]
    page = build_report(runs, tmp_path).read_text(encoding="utf-8")
    assert "The runs were not scored alike (acc: lemmatizer);" in page
    page = build_report([runs[0], replace(runs[1], signatures=runs[0].signatures)], tmp_path).read_text(
        encoding="utf-8"
    )
    assert "not scored alike" not in page


def test_the_command(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra run")
    from inspect_ai import eval as run_task
    from scripted_model import scripted

    model = scripted(lambda messages: "Mars, 1998 and Lima")
    options: dict[str, Any] = {"task_args": {"config": "sample"}, "log_dir": str(tmp_path / "logs"), "display": "none"}
    run_task("qabench/fanoutqa_closed_book", model=model, **options)
    (log,) = (tmp_path / "logs").glob("*.eval")
    command = typer.Typer()
    command.command()(report)
    done = CliRunner().invoke(command, [str(log), "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert Path(said["page"]).stat().st_size == said["bytes"]
    assert json.loads(Path(said["numbers"]).read_text())["sections"][0]["runs"][0]["counts"]["answered"] == 12
    missing = CliRunner().invoke(command, [str(tmp_path / "no.eval"), "--out", str(tmp_path / "none")])
    assert isinstance(missing.exception, InputError)
    assert not (tmp_path / "none").exists()


def test_conversations_are_bounded(three: list[Evaluation], tmp_path: Path) -> None:
    chatter = [Message("tool", "x" * 50_000) for _ in range(200)]
    run = replace(three[0], records=[replace(record, messages=chatter) for record in three[0].records])
    assert build_report([run], tmp_path).stat().st_size < 2_000_000
