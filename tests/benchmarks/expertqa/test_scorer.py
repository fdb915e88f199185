"""Files of predictions: scores equal to those of the metrics on the same input."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import qabench
from qabench.adapters.files import evaluate
from qabench.benchmarks import benchmark
from qabench.benchmarks.expertqa import BENCHMARK
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.notes import problem_sentences
from qabench.evaluation.records import Score
from qabench.evaluation.scoring import Questions

Row = dict[str, Any]
EXPERTQA = benchmark("expertqa")
MEANS = ("macro", "micro", "macro_without_abstentions", "micro_without_abstentions")


def scored(config: str, rows: list[Row], **options: Any) -> Evaluation:
    return evaluate(BENCHMARK, config, EXPERTQA.read(rows), **options)


def scores(evaluation: Evaluation) -> dict[str, Score]:
    return evaluation.scores()


def values(evaluation: Evaluation) -> dict[str, float]:
    return {name: score.interval.mean for name, score in scores(evaluation).items()}


def labeled(questions: Questions, seed: int = 0) -> list[Row]:
    """Predictions with random labels and fact scores for the annotated claims."""
    drawn = random.Random(seed)
    return [
        {
            "id": question.id,
            "claims": [
                {
                    "claim": claim["claim_string"],
                    "evidence": claim["evidence"],
                    "label": drawn.choice("YN"),
                    "fact_score": drawn.choice([None, 0.0, 0.25, 0.5, 1.0]),
                }
                for claim in question.row["answers"][0]["claims"] or ()
            ],
        }
        for question in questions.rows
    ]


def flat(rows: list[Row | None], name: str) -> list[list[Any] | None]:
    return [None if row is None else [claim[name] for claim in row["claims"]] for row in rows]


@pytest.mark.parametrize("split", ["validation", "test"])
def test_annotated_claims_score_as_metrics(mirror: Path, split: str, compared: Callable[[str], None]) -> None:
    questions = load_questions("random", split)
    rows = labeled(questions)
    found = scored("random", rows[5:], split=split)
    given: list[Row | None] = [*[None] * 5, *rows[5:]]
    references = [question.row for question in questions.rows]
    ours = values(found)
    theirs = qabench.load_metric("expertqa_autoais").compute(predictions=flat(given, "label"), references=references)
    assert [ours[f"autoais_{name}"] for name in MEANS] == [theirs[name] for name in MEANS]
    assert ours["evidence"] == 1 - theirs["claims_without_evidence"] / theirs["claims"]
    assert scores(found)["autoais_micro"].n == theirs["counted_claims"]
    for group, metric, name in (
        ("autoais_agreement", "expertqa_autoais_agreement", "label"),
        ("fact_score_agreement", "expertqa_factscore_agreement", "fact_score"),
    ):
        theirs = qabench.load_metric(metric).compute(predictions=flat(given, name), references=references)
        assert ours[f"{group}.accuracy"] == theirs["accuracy"]
        assert scores(found)[f"{group}.accuracy"].n == theirs["claims"]
        for of in ("complete", "not_complete") if group == "autoais_agreement" else ("correct", "not_correct"):
            for measure in ("precision", "recall", "f1"):
                assert ours[f"{group}.{of}.{measure}"] == theirs[of][measure]
    assert found.problems[0].startswith("questions without a prediction: 5")
    compared(f"{len(rows)} answers, random {split}")


def test_claims_of_another_system() -> None:
    questions = load_questions("sample")
    ids = [question.id for question in questions.rows]
    rows: list[Row] = [
        {
            "id": ids[0],
            "answer": "It is. It was [1].",
            "labels_by": "google/t5_xxl_true_nli_mixture@abc:float32",
            "claims": [
                {"claim": "It is.", "evidence": [], "label": "N"},
                {"claim": "It was [1].", "evidence": ["[1] A book"], "label": "Y", "fact_score": 0.5},
                {"claim": "It will.", "evidence": ["[1] A book"], "label": "N"},
            ],
        },
        {"id": ids[1], "answer": "I don't know.", "claims": [{"claim": "No.", "evidence": ["x"], "label": "Y"}]},
    ]
    found = scored("sample", rows)
    ours = values(found)
    assert ours["autoais_macro"] == 0.75 and ours["autoais_micro"] == pytest.approx(2 / 3)
    assert ours["autoais_macro_without_abstentions"] == 0.5 and ours["fact_score"] == 0.5
    assert ours["evidence"] == 3 / 4 and ours["abstains"] == 0.5 and ours["rouge1"] < 0.5
    assert not [name for name in ours if "agreement" in name]
    said = found.deviations(scores(found)["autoais_macro"])
    assert any("claims counted: all with evidence" in sentence for sentence in said)
    assert any("labels: stated:google/t5_xxl_true_nli_mixture@abc:float32, which is not" in text for text in said)
    (record, *_) = found.records
    shown = {"text": "It was [1].", "evidence": ["[1] A book"], "label": "Y", "fact_score": 0.5}
    assert record.detail["claims"][1] == shown
    assert [one.status for one in found.records[:3]] == ["answered", "answered", "missing"]


def test_wrong_predictions_are_named_and_lose_nothing_else() -> None:
    questions = load_questions("sample")
    rows = labeled(questions, 2)
    rows[0]["claims"] = rows[0]["claims"][1:]
    rows[1]["claims"] = ["a text"]
    rows[2]["claims"][0]["fact_score"] = 1.5
    rows[3]["claims"][0]["evidence"] = "a text"
    rows[4]["answer"] = 5
    found = scored("sample", rows)
    assert [record.problem is None for record in found.records] == [False] * 5 + [True] * 3
    assert found.problems[0].startswith("unusable predictions: 5 (")
    assert "line 2): claims is ['a text']; allowed" in found.problems[0]
    # Each unusable prediction is counted once.
    assert problem_sentences(found) == list(found.problems)
    whole = values(scored("sample", labeled(questions, 2)))
    # Citation precision is there if no claim with a label has several pieces of evidence.
    assert set(values(found)) - {"citation_precision"} == set(whole) and len(found.records) == len(questions.rows)


def test_an_unreadable_label_is_named_and_the_others_count() -> None:
    questions = load_questions("sample")
    rows = labeled(questions, 2)
    whole = scored("sample", rows)
    rows[1]["claims"][0]["label"] = "perhaps"
    found = scored("sample", rows)
    (sentence,) = problem_sentences(found)
    assert sentence.startswith('1 x a claim has the label \'perhaps\', which counts as no label; allowed: "Y" or "N"')
    labels = [claim["label"] for claim in found.records[1].detail["claims"]]
    others = [claim["label"] for claim in whole.records[1].detail["claims"]]
    assert labels == [None, *others[1:]] and found.records[1].status == "answered"
    rows[1]["claims"][0]["label"] = "yes"
    assert scored("sample", rows).records[1].detail["claims"][0]["label"] == "Y"


def test_empty_answers_are_listed() -> None:
    questions = load_questions("sample")
    rows = [{"id": question.id, "answer": "An answer."} for question in questions.rows]
    rows[0]["answer"], rows[2]["answer"] = "", " "
    (sentence,) = problem_sentences(scored("sample", rows))
    assert sentence == f"2 x empty: the answer is empty ({rows[0]['id']}, {rows[2]['id']})"


@pytest.mark.parametrize(
    ("config", "rows", "options", "message"),
    [
        ("questions", [{"answer": "A"}], {}, "nothing to score"),
        ("sample", [{"answer": "A"}], {"groups": ["autoais"]}, "autoais cannot be computed"),
        ("sample", [{"answer": "A"}], {"split": "test"}, "no split 'test'; allowed: train"),
    ],
)
def test_errors_explain_the_fix(mirror: Path, config: str, rows: list[Row], options: Row, message: str) -> None:
    id = load_questions(config).rows[0].id
    with pytest.raises(InputError, match=message):
        scored(config, [{"id": id} | row for row in rows], **options)


def test_custom_questions(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"example_id": 7, "context": "", "question": "Is it?", "answer": "It is so."}\n')
    found = evaluate(BENCHMARK, None, EXPERTQA.read([{"id": "7", "answer": "It is so."}]), questions=file)
    assert values(found)["rouge1"] == 1.0 and found.config == "custom"
    said = found.deviations(scores(found)["rouge1"])
    assert any(sentence.startswith("data: not a file of the dataset") for sentence in said)
    with pytest.raises(InputError, match="cannot read the questions"):
        load_questions(file=tmp_path / "none.jsonl")


def test_annotated_claims_may_be_in_another_order() -> None:
    rows = labeled(load_questions("sample"))
    in_order = scored("sample", rows)
    reverse = scored("sample", [row | {"claims": row["claims"][::-1]} for row in rows])
    assert values(reverse) == values(in_order) and reverse.signatures == in_order.signatures
    assert [record.detail for record in reverse.records] == [record.detail for record in in_order.records]
    # A text that is repeated could be any of its claims.
    claims = [*rows[1]["claims"][::-1], rows[1]["claims"][0]]
    other = scored("sample", [rows[0], rows[1] | {"claims": claims}, *rows[2:]])
    assert "unusable predictions: 1" in other.problems[0]
