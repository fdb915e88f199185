"""Files of predictions for FELM: replies, verdicts and problems."""

import json
from pathlib import Path
from typing import Any

import pytest

from qabench import load_metric
from qabench.adapters.files import evaluate
from qabench.benchmarks.felm import BENCHMARK
from qabench.data.predictions import read_predictions
from qabench.errors import InputError
from qabench.evaluation import Evaluation

ROWS = [question.row for question in BENCHMARK.load("sample").rows]


def scored(lines: list[dict[str, Any]], **options: Any) -> Evaluation:
    return evaluate(BENCHMARK, "sample", read_predictions(lines), **options)


def values(evaluation: Evaluation) -> dict[str, float]:
    return {name: score.interval.mean for name, score in evaluation.scores().items()}


def labels_of(rows: Any) -> list[dict[str, Any]]:
    return [{"id": row["index"], "labels": row["labels"]} for row in rows]


def test_the_labels_themselves_are_perfect() -> None:
    found = scored(labels_of(ROWS))
    assert set(values(found).values()) == {1.0}
    assert found.counts()["answered"] == len(ROWS) and not found.problems
    assert "|replies:verdicts|" in found.signatures["felm"]
    assert found.scores()["f1"].n == sum(len(row["labels"]) for row in ROWS)
    assert found.scores()["responses_f1"].n == len(ROWS)


def test_verdicts_and_equal_replies_score_the_same() -> None:
    verdicts = [[i % 3 != 1 for i in range(len(row["labels"]))] for row in ROWS]
    wrong = [", ".join(str(i) for i, factual in enumerate(one, 1) if not factual) for one in verdicts]
    ids = [row["index"] for row in ROWS]
    by_labels = scored([{"id": id, "labels": one} for id, one in zip(ids, verdicts, strict=True)])
    texts = [f"Answer: {one}" if one else "ALL_CORRECT" for one in wrong]
    for name in ("reply", "answer"):
        by_reply = scored([{"id": id, name: text} for id, text in zip(ids, texts, strict=True)])
        assert values(by_reply) == values(by_labels)
    sampled = [{"id": id, "reply": [text, "Answer: 1", text]} for id, text in zip(ids, texts, strict=True)]
    assert values(scored(sampled)) == values(by_labels)
    vicuna = [{"id": id, "reply": one or r"ALL\_CORRECT"} for id, one in zip(ids, wrong, strict=True)]
    assert values(scored(vicuna, reply_format="vicuna")) == values(by_labels)


@pytest.mark.parametrize(
    ("reply_format", "evaluator", "sampled", "deviation"),
    [
        ("answer", None, False, None),
        ("vicuna", None, False, "the replies are read as Vicuna's, but the evaluator is not named"),
        ("vicuna", "gpt-4", False, "the replies of gpt-4 are read as Vicuna's"),
        ("vicuna", "lmsys/vicuna-33b-v1.3", False, None),
        ("answer", "Vicuna 33B", False, 'the replies of Vicuna 33B are read after "Answer: "'),
        ("answer", "Vicuna 33B", True, None),
        ("vicuna", None, True, None),
    ],
)
def test_one_official_format(reply_format: str, evaluator: str | None, sampled: bool, deviation: str | None) -> None:
    options = {"reply_format": reply_format, "evaluator": evaluator}
    replies: list[Any] = [["Answer: 1"] if sampled else "Answer: 1"] * len(ROWS)
    evaluation = scored([{"id": row["index"], "reply": one} for row, one in zip(ROWS, replies, strict=True)], **options)
    metric = load_metric("felm_factuality")
    result = metric.compute(predictions=replies, references=[row["labels"] for row in ROWS], **options)
    for deviations in (evaluation.deviations(evaluation.scores()["f1"]), result["deviations"]):
        about_format = [sentence for sentence in deviations if sentence.startswith("the replies")]
        assert len(about_format) == (deviation is not None)
        assert all(sentence.startswith(str(deviation)) for sentence in about_format)


def test_problems_are_counted_and_named() -> None:
    lines = labels_of(ROWS)
    lines[0] = {"id": ROWS[0]["index"], "labels": [True] * 99}
    lines[1] = {"id": ROWS[1]["index"], "reply": 7}
    lines[2] = {"id": ROWS[2]["index"], "reply": None}
    lines[3] = {"id": ROWS[3]["index"], "reply": " "}
    lines[4] = {"id": ROWS[4]["index"], "labels": ["yes"]}
    found = scored([*lines[:-1], {"id": "nobody's", "reply": ""}])
    n = len(ROWS[0]["labels"])
    unusable = next(problem for problem in found.problems if problem.startswith("unusable"))
    assert unusable.startswith(f"unusable predictions: 3 (0 (line 1): 99 verdicts for {n} segments;")
    assert "(line 2): 7; allowed:" in unusable and "(line 5): labels are ['yes']" in unusable
    assert any("unknown questions: 1 (nobody's (line" in problem for problem in found.problems)
    statuses = [record.status for record in found.records]
    assert statuses[:5] == ["missing", "missing", "missing", "empty", "missing"] and statuses[-1] == "missing"
    assert f"5 of {len(ROWS)} questions have no answer (missing)" in found.deviations(found.scores()["f1"])
    # Each counts as "all segments are correct".
    assert [record.scores["error_tp"] + record.scores["error_fp"] for record in found.records[:5]] == [0] * 5
    assert "readable_error_tp" not in found.records[3].scores


def test_replies_without_a_verdict_are_a_problem() -> None:
    first, second = (row["index"] for row in ROWS[:2])
    found = scored([{"id": first, "reply": "Who knows?"}, {"id": second, "reply": ["Answer: 1", "Who knows?", "?"]}])
    problems = [record.problem for record in found.records[:3]]
    assert problems == ["the reply has no verdict", "2 of 3 replies have no verdict", "the file has no prediction"]


def test_verdicts_in_place_of_a_reply_are_labels() -> None:
    found = scored([{"id": ROWS[0]["index"], "answer": ROWS[0]["labels"]}, *labels_of(ROWS[1:])])
    assert str(found.records[0].problem).endswith("give verdicts as labels")


@pytest.mark.parametrize("reply", ["Answer:1", "**Answer:** 1"])
def test_replies_that_are_officially_misread_are_a_problem(reply: str) -> None:
    found = scored([{"id": ROWS[0]["index"], "reply": reply}, {"id": ROWS[1]["index"], "reply": "Answer: 1"}])
    misread, read = found.records[:2]
    assert misread.status == "answered" and misread.scores["error_tn"] + misread.scores["error_fn"] == len(
        ROWS[0]["labels"]
    )
    assert str(misread.problem).startswith("officially, the reply is not read as the verdict") and read.problem is None


def test_files_and_custom_questions(tmp_path: Path) -> None:
    path = tmp_path / "mine-3.5.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in labels_of(ROWS)))
    questions = Path(__file__).parents[3] / "loading_scripts/felm/sample/all.jsonl"
    found = evaluate(BENCHMARK, "math", BENCHMARK.read(path), questions=questions)
    math = [row["index"] for row in ROWS if row["domain"] == "math"]
    assert [record.id for record in found.records] == math and found.model == "mine-3.5"
    assert any("is not the authors' file" in said for said in found.deviations(found.scores()["f1"]))


def test_questions_that_cannot_be_read() -> None:
    with pytest.raises(InputError, match="cannot read the questions /nowhere"):
        scored(labels_of(ROWS), questions=Path("/nowhere"))
    with pytest.raises(InputError, match=r"the config leaderboard of FELM has no questions, only .*; allowed: all, "):
        evaluate(BENCHMARK, "leaderboard", read_predictions(labels_of(ROWS)))


@pytest.mark.parametrize("name", ["reply", "answer", "gen"])
def test_null_fields_of_a_table_are_absent(name: str) -> None:
    rows = [{"id": row["index"], name: "Answer: 1"} for row in ROWS[1:]]
    rows += labels_of(ROWS[:1])
    nothing = dict.fromkeys(("labels", "reply", "answer", "gen"))
    # A table that was written from such rows has all columns in all rows.
    of_table = scored([nothing | row for row in rows])
    assert values(of_table) == values(scored(rows)) and not of_table.problems
    assert of_table.signatures == scored(rows).signatures


def test_an_evaluator_is_a_name() -> None:
    wrong: Any = 3
    with pytest.raises(InputError, match="evaluator is 3; allowed: the name of a model"):
        scored(labels_of(ROWS), evaluator=wrong)
