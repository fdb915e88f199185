"""What comparisons say: verdicts that know what is missing, common questions, and the same notes
everywhere.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import qabench
from qabench.benchmarks import benchmark
from qabench.cli import app
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Record
from qabench.evaluation.comparison import Comparison, compare
from qabench.evaluation.records import scores_of
from qabench.evaluation.tables import group_table
from qabench.io.tables import Table
from qabench.loading_scripts import FOLDER
from qabench.report.finding import finding
from qabench.report.section import sections_of

SAMPLE = ("--config", "sample", "--lemmatizer", "simplemma")
CAREFUL = FOLDER / "fanoutqa/sample/generations/careful.jsonl"
LOOSE = benchmark("fanoutqa").score_spec("acc.loose")


def evaluation(values: dict[str, float], missing: str = "", epochs: dict[str, list[float]] | None = None) -> Evaluation:
    """Return an evaluation by loose accuracy; the ids in ``missing`` are unanswered and count as 0."""
    records = []
    for id, value in values.items():
        for epoch, sample in enumerate((epochs or {}).get(id, [value]), start=1):
            status = "missing" if id in missing else "answered"
            records.append(Record(id, epoch, "q", "", [], None, status, scores={"acc.loose": sample}))
    about = ("log", "task", "fanoutqa", "sample", "closed-book", "m", "2026-01-01", "success", len(records))
    return Evaluation(*about, records, score_specs=[LOOSE])


def compared(**systems: Evaluation) -> Comparison:
    return compare(systems, LOOSE)


IDS = "abcdefghijklmnopqrst"


def test_equal_systems_do_not_differ() -> None:
    values = {id: (i % 4) / 4 for i, id in enumerate(IDS)}
    comparison = compared(big=evaluation(values), small=evaluation(values))
    (pair,) = comparison.pairs
    assert (pair.verdict, pair.significant, pair.ties, pair.detectable) == ("no difference", False, 20, None)
    assert "best" not in finding(comparison) and "big and small have equal scores" in finding(comparison)


def test_a_verdict_says_what_is_missing() -> None:
    full = dict.fromkeys(IDS, 1.0)
    half = evaluation({id: float(id < "k") for id in IDS}, missing=IDS[10:])
    comparison = compared(full=evaluation(full), half=half)
    (pair,) = comparison.pairs
    assert pair.verdict == "full is better (half has no answer to 10)" and pair.answered == 10
    assert "full is better (half has no answer to 10)" in str(comparison) and pair.as_dict()["unanswered_second"] == 10
    assert finding(comparison).endswith("half has no answer to 10.")
    other = evaluation({id: float(id >= "k") for id in IDS}, missing=IDS[:10])
    (pair,) = compared(half=half, other=other).pairs
    assert (pair.verdict, pair.significant) == ("no question was answered by both", False)


def test_systems_with_different_questions_are_not_ranked() -> None:
    """The first has the better score, on easy questions, and the second is better where both were
    asked.
    """
    easy = evaluation(dict.fromkeys(IDS[:10], 0.8))
    full = evaluation({id: 0.95 if id < "k" else 0.2 for id in IDS})
    comparison = compared(part=easy, full=full)
    (pair,) = comparison.pairs
    assert (pair.first, pair.n, pair.only_first, pair.only_second) == ("full", 10, 10, 0)
    assert pair.scores == pytest.approx((0.95, 0.8))
    note = (
        "full and part are compared on the 10 questions for which both have a score, where they have 0.9500 and 0.8000"
    )
    assert note in str(comparison) and "20 questions of full and 10 of part" in str(comparison)
    sentence = finding(comparison)
    assert "do not rank them. On the 10 that both have, full is 0.150" in sentence and "best" not in sentence


def test_a_mean_is_of_the_questions_means() -> None:
    """One question was sampled nine times, the other once."""
    uneven = evaluation({"a": 0, "b": 0.0}, epochs={"a": [1.0] * 9})
    score = uneven["acc.loose"]
    assert (score.value, score.size) == (0.5, "2 questions")
    shares = replace(LOOSE, name="share", columns=("part", "whole"), mean=None)
    shares = replace(shares, function=lambda part, whole: part / whole)
    counts = {"part": 1.0, "whole": 1.0}
    records = [
        replace(record, scores=counts if record.id == "a" else counts | {"part": 0.0}) for record in uneven.records
    ]
    assert scores_of([shares], records)["share"].value == 0.5


def test_bounds_stay_in_the_range_and_perfect_systems_have_them() -> None:
    felm = benchmark("felm")
    recall = felm.score_spec("recall")
    perfect = [
        Record(
            str(i), 1, "q", "", [], "a", "answered", scores={"error_tn": 2, "error_tp": 1, "error_fn": 0, "error_fp": 0}
        )
        for i in range(9)
    ]
    blind = [replace(record, scores={"error_tn": 2, "error_tp": 0, "error_fn": 1, "error_fp": 0}) for record in perfect]
    about = ("log", "task", "felm", "sample", "raw", "m", "2026-01-01", "success", 9)
    comparison = compare(
        {name: Evaluation(*about, rows, score_specs=felm.scores) for name, rows in (("p", perfect), ("b", blind))},
        recall,
    )
    (pair,) = comparison.pairs
    interval = pair.difference.interval
    assert (pair.wins, pair.losses, interval.high) == (9, 0, 1) and interval.low is not None and interval.low > 0.3
    for i, record in enumerate(perfect):
        wrong = float(i % 2)
        record.scores.update(
            responses_error_tn=1 - wrong, responses_error_tp=wrong, responses_error_fn=0.0, responses_error_fp=0.0
        )  # type: ignore[attr-defined]
    score = scores_of([felm.score_spec("responses_balanced_accuracy")], perfect)["responses_balanced_accuracy"]
    assert score.value == 1 and score.low is not None and 0.2 < score.low < 1 == score.high


def test_wins_are_counted_by_the_score_of_the_row() -> None:
    """Segments in error count for recall, false alarms for precision; F1 counts both."""
    felm = benchmark("felm")
    first = [
        {"error_tn": 2, "error_tp": 1, "error_fn": 0, "error_fp": 0},
        {"error_tn": 2, "error_tp": 0, "error_fn": 0, "error_fp": 1},
        {"error_tn": 2, "error_tp": 1, "error_fn": 0, "error_fp": 0},
    ]
    second = [
        {"error_tn": 2, "error_tp": 0, "error_fn": 1, "error_fp": 0},
        {"error_tn": 3, "error_tp": 0, "error_fn": 0, "error_fp": 0},
        {"error_tn": 2, "error_tp": 1, "error_fn": 0, "error_fp": 0},
    ]
    about = ("log", "task", "felm", "sample", "raw", "m", "2026-01-01", "success", 3)
    runs = {}
    for name, rows in (("first", first), ("second", second)):
        records = [Record(str(i), 1, "q", "", [], "a", "answered", scores=row) for i, row in enumerate(rows)]
        runs[name] = Evaluation(*about, records, score_specs=felm.scores)
    counts = {}
    for name in ("recall", "precision", "f1"):
        (pair,) = compare(runs, felm.score_spec(name)).pairs
        counts[name] = (pair.first, pair.wins, pair.ties, pair.losses)
    assert counts == {"recall": ("first", 1, 2, 0), "precision": ("second", 1, 1, 1), "f1": ("first", 1, 1, 1)}


def run(*arguments: object) -> str:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False).stdout


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """Return the answers of one system to the first and to the last half of the questions."""
    lines = CAREFUL.read_text().splitlines()
    paths = [tmp_path / "early.jsonl", tmp_path / "late.jsonl"]
    for path, half in zip(paths, (lines[:6], lines[6:]), strict=True):
        path.write_text("\n".join(half))
    return paths


def test_files_without_common_questions_are_not_compared(parts: list[Path]) -> None:
    assert "no question was answered by both" in run("compare", "fanoutqa", *parts, *SAMPLE)
    with pytest.raises(InputError, match=r"no two systems have a score \(acc.loose\) for the same question"):
        run("compare", "fanoutqa", *parts, *SAMPLE, "--only-score-answered")
    text = run("compare", "fanoutqa", CAREFUL, parts[0], *SAMPLE, "--only-score-answered")
    assert "compared on the 6 questions for which both have a score" in text


def test_a_pair_without_the_score_is_an_error(tmp_path: Path) -> None:
    """In one of the two files no segment is judged wrong, so that its precision is undefined."""
    rows = list(qabench.load_dataset("felm", "sample", split="test"))
    for name, reply in (("a", "Answer: 1"), ("b", "Answer: ALL_CORRECT")):
        lines = [json.dumps({"id": row["index"], "reply": reply}) for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    with pytest.raises(InputError, match="nothing to compare: b has no score precision"):
        run("compare", "felm", *files, "--config", "sample", "--scores", "precision")
    evaluations = [qabench.evaluate_predictions("felm", "sample", file) for file in files]
    (section,) = sections_of(evaluations)
    assert "Without" not in section.findings["recall"]


def test_python_shows_what_the_command_prints(tmp_path: Path) -> None:
    rows = list(qabench.load_dataset("felm", "sample", split="test"))
    lines = [
        json.dumps({"id": row["index"], "reply": "Answer: 1" if i else "I cannot say."}) for i, row in enumerate(rows)
    ]
    path = tmp_path / "replies.jsonl"
    path.write_text("\n".join([*lines, json.dumps({"id": "nobody", "reply": "Answer: 1"})]))
    evaluation = qabench.evaluate_predictions("felm", "sample", path)
    printed = run("score", "felm", path, "--config", "sample")
    for shown in (repr(evaluation), evaluation.to_markdown(), printed, json.dumps(evaluation.as_dict())):
        assert "1 x the reply has no verdict" in shown and "nobody" in shown


@pytest.fixture
def replies(tmp_path: Path) -> list[Path]:
    """Return FELM's files of two evaluators: one finds errors, one finds none in any response."""
    rows = list(qabench.load_dataset("felm", "sample", split="test"))
    paths = []
    for name in ("finds", "blind"):
        lines = []
        for row in rows:
            wrong = ", ".join(str(number) for number, label in enumerate(row["labels"], start=1) if not label)
            reply = f"Answer: {wrong}" if wrong and name == "finds" else "Answer: ALL_CORRECT"
            lines.append(json.dumps({"id": row["index"], "reply": reply}))
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("\n".join(lines))
    return paths


def test_a_system_without_the_score_keeps_its_row(replies: list[Path]) -> None:
    text = run("score", "felm", *replies, "--config", "sample", "--all-scores")
    (row,) = [line for line in text.splitlines() if line.startswith("precision") and "blind" in line]
    assert row.split() == ["precision", "blind", "undefined", "no"]


def test_groups_have_intervals(replies: list[Path]) -> None:
    text = run("score", "felm", replies[0], "--config", "sample", "--by", "domain")
    rows = [line.split() for line in text[text.index("By domain") :].splitlines()]
    (math,) = [row for row in rows if row[:2] == ["recall", "math"]]
    assert math[3] == "1.0000" and math[5] == "to" and math[-1] == "segments"


def test_systems_are_compared_by_group(replies: list[Path]) -> None:
    arguments = ("compare", "felm", *replies, "--config", "sample", "--scores", "recall", "--by", "domain")
    document = json.loads(run(*arguments, "--json"))
    comparisons = document["comparisons"]
    assert comparisons[0]["group"] is None and {each["grouping"] for each in comparisons[1:]} == {"domain"}
    assert all(pair["n"] < comparisons[0]["pairs"][0]["n"] for each in comparisons[1:] for pair in each["pairs"])
    assert "corrected over all pairs of all groups (holm)" in run(*arguments)
    with pytest.raises(InputError, match="the questions have no grouping 'type'; allowed: domain, error type"):
        run(*arguments[:-1], "type")


def test_replies_to_other_domains_are_not_unknown(mirror: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"id": str(number), "reply": "Answer: 1"}) for number in (*range(847), "nobody")]
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    problems = qabench.evaluate_predictions("felm", "wk", tmp_path / "all.jsonl").problems
    assert problems[0].startswith("predictions for questions of other domains: 663 (")
    assert problems[1].startswith("predictions for unknown questions: 1 (")


def printed_at(width: int, table: Table) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(table, soft_wrap=True)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_tables_of_groups_are_legible_at_80_columns() -> None:
    rows = []
    for question in benchmark("expertqa").load("sample", None).rows:
        claims = question.row["answers"][0]["claims"]
        labeled = [{"claim": each["claim_string"], "evidence": each["evidence"], "label": "Y"} for each in claims]
        rows.append({"id": question.id, "claims": labeled})
    evaluation = qabench.evaluate_predictions("expertqa", "sample", rows)
    by_system = group_table([evaluation], ["s"], "system", "By system", True)
    lines = printed_at(80, by_system)
    assert max(map(len, lines)) <= 80
    # Each score has its name above its systems, once, in the order of the table of all scores.
    names = [line for line in lines if line in evaluation.scores()]
    assert names == list(evaluation.scores()) and "autoais_agreement.not_complete.f1" in names
    assert sum(line.startswith("post_hoc_sphere_gpt4  ") for line in lines) == len(names)
    assert all(len(line.split("  ")) > 3 for line in lines if line.startswith("post_hoc_sphere_gpt4"))
    # What fits stays one table, and a long name is broken after a dot.
    assert printed_at(200, by_system)[2].startswith("autoais_macro   ")
    wide = Table("t", ["score", "value"], [["autoais_agreement.not_complete.precision", "0.5000"]])
    assert printed_at(40, wide)[2:] == ["autoais_agreement.not_complete.   0.5000", "precision"]


def test_scores_of_lfqa_by_field(mirror: Path) -> None:
    questions = benchmark("expertqa").load("lfqa_random", None).rows
    rows = [{"id": question.id, "answer": question.reference} for question in questions]
    evaluation = qabench.evaluate_predictions("expertqa", "lfqa_random", rows, scores=["rouge"])
    fields = evaluation.by_group("field")
    assert sum(map(len, fields.values())) == 219 and len(fields["Law"]) == 14
    assert evaluation.scores_by_group("field")["Law"]["rouge1"].value == 1
    assert "question type" in evaluation.groupings()
