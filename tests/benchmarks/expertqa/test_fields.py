"""``qabench expertqa``: fields of other tools, citations that the authors' splitter does not read,
labels of judges.
"""

from pathlib import Path
from typing import Any

import pytest
from claim_lines import claim, command, lines, written

import qabench
from qabench.benchmarks import benchmark
from qabench.benchmarks.expertqa.fields import label_of, with_plain_marks
from qabench.benchmarks.expertqa.passages import load_passages
from qabench.errors import QabenchError
from qabench.models.entailment import punkt

Row = dict[str, Any]
TEXTS = ["Iron oxide", "Ice is light."]
ANSWER = "Mars is red [1]. Ice floats [2]."


@pytest.mark.parametrize(
    "fields",
    [
        {"answer": ANSWER, "attribution": TEXTS},
        {"answer": ANSWER, "evidence": TEXTS},
        {"answer": ANSWER, "contexts": TEXTS},
        {"response": ANSWER, "retrieved_contexts": TEXTS},
        {"output": ANSWER, "docs": [{"text": text} for text in TEXTS], "qa_pairs": [{"question": "?"}]},
    ],
)
def test_fields_of_other_tools(fields: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = written(tmp_path / "a.jsonl", {"id": "1", **fields}), tmp_path / "claims.jsonl"
    assert command("expertqa", "claims", file, "-o", out) == 0
    assert [own["evidence"] for own in lines(out)[0]["claims"]] == [[text] for text in TEXTS]
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert [line for line in warnings if "spaCy is not installed" not in line] == []


@pytest.mark.parametrize("name", ["evidence", "contexts", "docs"])
def test_evidence_of_claims_under_other_names(
    name: str, tmp_path: Path, labeler: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.jsonl", {"id": "1", "claims": [{"claim": "Mars is red.", name: ["Iron"]}]})
    assert command("expertqa", "attribute", file, "-o", tmp_path / "labels.jsonl") == 0
    assert "1.0000" in capsys.readouterr().out
    metric = qabench.load_metric("expertqa_autoais")
    assert metric.compute(predictions=[{"claims": [{"claim": "Mars is red.", name: ["Iron"]}]}])["micro"] == 1.0


def test_fields_that_are_not_read_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": "1", "answer": ANSWER, "hits": ["a"], "mine": "x"}
    assert command("expertqa", "claims", written(tmp_path / "a.jsonl", row), "-o", tmp_path / "c.jsonl") == 0
    assert "fields with lists that are not read: hits" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "marks", "plain"),
    [
        ("Mars is red. [1] Ice floats. [2]", "[1], [2]", "Mars is red [1]. Ice floats [2]."),
        ("Mars is red【1】. Ice floats【2†source】.", "【1】, 【2†source】", "Mars is red[1]. Ice floats[2]."),
        ("Mars is red and ice floats [1, 2].", "[1, 2]", "Mars is red and ice floats [1][2]."),
        ("Mars is red and ice floats [1-2].", "[1-2]", "Mars is red and ice floats [1][2]."),
        ("Mars is red [7].", "[7]", "Mars is red [7]."),
        ("Mars is red [1]. Ice floats [2].", None, "Mars is red [1]. Ice floats [2]."),
    ],
)
def test_citations_that_are_not_read(
    answer: str, marks: str | None, plain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert with_plain_marks(answer) == plain
    file = written(tmp_path / "a.jsonl", {"id": "1", "answer": answer, "attribution": TEXTS})
    out = tmp_path / "claims.jsonl"
    assert command("expertqa", "claims", file, "-o", out) == 0
    text = " ".join(capsys.readouterr().err.split())
    assert (f"read as part of the next sentence: 1 ({marks} of 1)" in text) is (marks is not None)
    assert command("expertqa", "claims", file, "-o", out, "--plain-marks") == 0
    (row,) = lines(out)
    assert row["citations"] == "plain marks"
    if "7" not in answer:
        assert [text for own in row["claims"] for text in own["evidence"]] == TEXTS


def test_one_bad_answer_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": "1", "answer": ANSWER, "attribution": TEXTS},
        {"id": "2", "answer": ["no"]},
        {"id": "3", "answer": "x" * 300_000},
        {"id": "4", "answer": "It is.", "attribution": "x"},
        {"id": "5", "answer": ANSWER},
    ]
    out = tmp_path / "claims.jsonl"
    assert command("expertqa", "claims", written(tmp_path / "a.jsonl", *rows), "-o", out) == 0
    assert [row["id"] for row in lines(out)] == ["1", "5"]
    text = " ".join(capsys.readouterr().err.split())
    for line, id in ((2, "2"), (3, "3"), (4, "4")):
        assert f"line {line} (id {id}): " in text
    assert "answers that have sources and cite none" not in text


@pytest.mark.parametrize(
    ("label", "expected"),
    [(True, "Y"), (False, "N"), (1, "Y"), (0, "N"), ("Complete", "Y"), ("Partial", "N"), ("y", "Y"), (None, None),
     ("maybe", "maybe")],
)  # fmt: skip
def test_labels_of_judges(label: Any, expected: Any) -> None:
    assert label_of(label) == expected


@pytest.mark.parametrize(("yes", "no"), [("Y", "N"), (True, False), (1, 0), ("Complete", "Incomplete")])
def test_given_labels_are_scored(
    yes: Any, no: Any, tmp_path: Path, labeler: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"id": "1", "claims": [claim("Mars is red.", "x", label=no), claim("Ice floats.", "x", label=yes)]}
    rows = [row, {"id": "2", "claims": [claim("Salt is salty.", "x", label=yes)]}]
    file, out = written(tmp_path / "a.jsonl", *rows), tmp_path / "labels.jsonl"
    assert command("expertqa", "attribute", file, "-o", out) == 0
    printed = capsys.readouterr().out
    assert "0.7500" in printed and "unofficial" in printed and labeler.asked == 0
    assert [own["label"] for row in lines(out) for own in row["claims"]] == ["N", "Y", "Y"]
    result = qabench.load_metric("expertqa_autoais").compute(predictions=rows)
    assert (result["macro"], result["micro"], labeler.asked) == (0.75, 2 / 3, 0)
    assert result["macro_interval"][0] < 0.75 and result["deviations"]
    # A label that is missing is the model's; a given one is kept, and both are named.
    del rows[0]["claims"][1]["label"]
    assert command("expertqa", "attribute", written(file, *rows), "-o", tmp_path / "mixed.jsonl") == 0
    first = lines(tmp_path / "mixed.jsonl")[0]
    assert [own["label"] for own in first["claims"]] == ["N", "N"] and first["labels_by"] == "given,tiny@0:float32"
    assert "which is kept: 2 (--relabel" in capsys.readouterr().err
    assert command("expertqa", "attribute", file, "--relabel", "-o", tmp_path / "new.jsonl") == 0
    assert [own["label"] for own in lines(tmp_path / "new.jsonl")[0]["claims"]] == ["Y", "N"]


@pytest.mark.parametrize("label", [True, 1, "Complete", "Y"])
def test_score_reads_labels_of_judges(label: Any) -> None:
    questions = benchmark("expertqa").load("sample").rows
    rows = [
        {"id": question.id, "claims": [{"claim": own["claim_string"], "evidence": own["evidence"], "label": label}
                                       for answer in question.row["answers"] for own in answer["claims"]]}
        for question in questions
    ]  # fmt: skip
    evaluation = qabench.evaluate_predictions("expertqa", "sample", rows)
    assert evaluation.scores()["autoais_macro"].value == 1.0


def test_bm25_returns_only_passages_that_share_a_word(tmp_path: Path) -> None:
    rows = [{"id": f"D{number}", "text": text} for number, text in enumerate([*TEXTS, "Salt.", "Snow.", "Sand."])]
    passages = load_passages(str(written(tmp_path / "corpus.jsonl", *rows)))
    assert [document.id for document in passages.find("iron", "iron", 5).passages] == ["D0"]
    assert passages.find("gold", "gold", 5).passages == []


def test_what_punkt_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = pytest.importorskip("nltk", reason="needs the extra autoais")

    def missing(*arguments: object) -> None:
        raise LookupError

    monkeypatch.setattr(nltk, "sent_tokenize", missing)
    monkeypatch.setattr(nltk.data, "find", missing)
    with pytest.raises(QabenchError, match=r"python -m nltk\.downloader punkt_tab") as raised:
        punkt("It is.")
    assert "evidence" not in str(raised.value) and "split=" not in str(raised.value)
    needs = benchmark("expertqa").needs
    lacking = [need.what for need in needs if "NLTK's tokenizers/punkt_tab" in need.missing("expertqa")]
    assert lacking == ["AutoAIS labels", "atomic claims of fact scores"]
