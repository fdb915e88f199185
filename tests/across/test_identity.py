"""A prediction belongs to a question by its id, and by the question's text where both have it."""

from pathlib import Path
from typing import Any

import pytest

import qabench
from qabench.benchmarks import benchmark
from qabench.data.predictions import columns_named
from qabench.errors import InputError


def lfqa(split: str, *fields: str) -> list[dict[str, Any]]:
    """The reference answers of a split as predictions."""
    questions = benchmark("expertqa").load("lfqa_random", split=split).rows  # type: ignore[call-arg]
    return [{name: question.row[name] for name in (*fields, "answer")} for question in questions]


def evaluated(rows: list[dict[str, Any]], split: str) -> qabench.Evaluation:
    return qabench.evaluate_predictions("expertqa", "lfqa_random", rows, "rouge", split=split)


@pytest.mark.parametrize("fields", [("id", "question"), ("example_id", "question"), ("id", "question_id")])
def test_answers_of_another_split_are_refused(mirror: Path, fields: tuple[str, ...]) -> None:
    rows = lfqa("validation", *fields)
    with pytest.raises(InputError, match=r"216 predictions are for other questions.*split 'validation': score them"):
        evaluated(rows, "test")
    evaluation = evaluated(rows, "validation")
    assert evaluation.scores()["rouge1"].value == 1.0 and not evaluation.notes


@pytest.mark.parametrize("name", ["id", "question_id"])
def test_an_id_that_no_other_split_has_is_enough(mirror: Path, name: str) -> None:
    rows = [{name: row["question_id"], "answer": row["answer"]} for row in lfqa("test", "question_id")]
    evaluation = evaluated(rows, "test")
    assert evaluation.scores()["rouge1"].value == 1.0 and not evaluation.notes
    rows = [{name: row["question_id"], "answer": row["answer"]} for row in lfqa("validation", "question_id")]
    with pytest.raises(InputError, match="none of the 216 predictions"):
        evaluated(rows, "test")


def test_ids_of_several_splits_alone_are_scored_with_a_note(mirror: Path) -> None:
    (note,) = evaluated(lfqa("validation", "id"), "test").notes
    assert note.startswith("not checked whether these are predictions for the split test") and "216" in note


@pytest.mark.parametrize("name", ["fanoutqa", "expertqa", "felm", "fastbook"])
def test_the_text_of_another_question_is_refused(name: str) -> None:
    scored = benchmark(name)
    questions = scored.load("sample").rows
    columns = [column for column, value in questions[0].row.items() if value == questions[0].text]
    field = {"felm": "reply", "fastbook": "passages"}.get(name, "answer")
    value: Any = ["a"] if name == "fastbook" else "a"
    other = next(each for each in questions if each.text != questions[0].text)
    for column in ["question", *columns]:
        rows = [{"id": questions[0].id, column: other.text, field: value}]
        with pytest.raises(InputError, match="1 predictions are for other questions"):
            qabench.evaluate_predictions(name, "sample", rows)


def test_a_prompt_with_the_question_is_its_text() -> None:
    question = benchmark("fanoutqa").load("sample").rows[0]
    texts = [f"Answer this:\n{question.text}\n", question.text.upper(), question.text[:40], "", None, 3]
    for text in texts:
        rows = [{"id": question.id, "question": text, "answer": "a"}]
        options = {"lemmatizer": "simplemma"}
        assert qabench.evaluate_predictions("fanoutqa", "sample", rows, "acc", **options).answered


@pytest.mark.parametrize(("name", "field"), [("fanoutqa", "answer"), ("felm", "labels")])
def test_answers_of_the_dataset_are_no_predictions(name: str, field: str, tmp_path: Path) -> None:
    (rows,) = qabench.load_dataset(name, "sample").values()
    rows = rows.add_column("prediction", ["Answer: 1"] * len(rows))
    file = tmp_path / "rows.parquet"
    rows.to_parquet(file)
    message = rf"{field!r} has the dataset's own values in all {len(rows)} predictions, and 'prediction' is not read"
    for predictions in (file, rows, rows.to_list()):
        with pytest.raises(InputError, match=message):
            qabench.evaluate_predictions(name, "sample", predictions)
    with columns_named(None, "prediction"):
        named = qabench.evaluate_predictions(name, "sample", file)
    given = [{"id": id, "prediction": "Answer: 1"} for id in rows["id"]]
    assert named.scores() == qabench.evaluate_predictions(name, "sample", given).scores() and not named.notes
    # Rows without a column that could have the predictions are scored, which tries the scorer out.
    (note,) = qabench.evaluate_predictions(name, "sample", rows.remove_columns("prediction")).notes
    assert note.startswith(
        f"the predictions given: the column {field!r} has the dataset's own values in all {len(rows)} predictions; if"
    )
    plain = qabench.evaluate_predictions(name, "sample", rows.select_columns(["id", field]))
    assert not plain.notes
    with columns_named(None, field):
        assert not qabench.evaluate_predictions(name, "sample", file).notes


def test_a_column_of_the_dataset_is_not_read_as_a_reply() -> None:
    (rows,) = qabench.load_dataset("felm", "sample").values()
    # The column "response" has what the replies are about. The first response has no reply.
    outputs = [None, *["ALL_CORRECT"] * (len(rows) - 1)]
    rows = rows.remove_columns("labels").add_column("output", outputs)
    with pytest.raises(
        InputError, match=r"'response' has the dataset's own values in all .*, and 'output' is not read"
    ):
        qabench.evaluate_predictions("felm", "sample", rows.to_list())


def test_labels_of_the_dataset_beside_replies_are_refused() -> None:
    (rows,) = qabench.load_dataset("felm", "sample").values()
    rows = rows.add_column("reply", ["Answer: 1"] * len(rows))
    with pytest.raises(InputError, match=r"'labels' has the dataset's own values in all .*, and 'reply' is not read"):
        qabench.evaluate_predictions("felm", "sample", rows)
    with columns_named(None, "reply"):
        qabench.evaluate_predictions("felm", "sample", rows.to_list())
