"""ExpertQA as a dataset: equal to its source files, strict about invalid files, loadable offline."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import qabench
from qabench.data.rows import SourceRow
from qabench.errors import DataError
from qabench.loading_scripts import FOLDER, dataset_table
from qabench.loading_scripts.expertqa import parse

DATA = "chaitanyamalaviya/ExpertQA/data"
SAMPLE = FOLDER / "expertqa" / "sample" / "answers.jsonl"
CONFIGS = dataset_table("expertqa").configs
OPTIONAL = {
    *("atomic_claims", "atomic_evidences", "fact_score", "autoais_label", "source_reliability", "revised_claim_string")
}


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def source_of(row: dict[str, Any]) -> dict[str, Any]:
    """The source's row, restored from a row of the dataset, which shows that the conversion is
    lossless.
    """
    metadata = dict(row["metadata"])
    metadata["question_type"] = metadata.pop("question_type_text")
    answers = {}
    for answer in copy.deepcopy(row.get("answers", [])):
        for claim in answer["claims"]:
            present = claim.pop("optional_fields")
            for key in OPTIONAL - set(present):
                assert claim.pop(key) is None
            if claim.pop("revised_evidence_is_text"):
                (claim["revised_evidence"],) = claim["revised_evidence"]
        answers[answer.pop("system")] = answer
    return {"question": row["question"], "annotator_id": row["annotator_id"], "answers": answers, "metadata": metadata}


def annotated(**claim: Any) -> dict[str, Any]:
    """A row of the main file: an answer of gpt4 whose first claim has the given fields, and no
    optional ones.
    """
    row = lines(SAMPLE)[6]
    row["answers"]["gpt4"]["claims"][0] |= claim
    return row


def row_of(config: str) -> dict[str, Any]:
    if config.startswith("lfqa"):
        return {"example_id": 0, "context": "", "question": "Do bees dance?", "answer": "Bees dance."}
    return annotated() | ({"answers": {}} if config == "questions" else {})


def parse_row(row: Any, parser: Any = parse.parse_answers) -> Any:
    return parser(SourceRow.of(row, "here.jsonl, line 1"))


def jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# The real files and the sample


def test_questions_equal_the_source(mirror: Path, tmp_path: Path) -> None:
    raw = lines(mirror / DATA / "r1_data_anon.jsonl")
    rows = list(qabench.load_dataset("expertqa", "questions", split="train", cache_dir=str(tmp_path)))
    assert len(rows) == 2507 and list(map(source_of, rows)) == raw


def test_lfqa_random_equals_the_source(mirror: Path, tmp_path: Path) -> None:
    files = {"train": "rand_lfqa_train", "validation": "rand_lfqa_val", "test": "rand_lfqa_test"}
    raw = {split: lines(mirror / DATA / f"lfqa/{name}.json") for split, name in files.items()}
    loaded = qabench.load_dataset("expertqa", "lfqa_random", cache_dir=str(tmp_path))
    ids = {
        split: [{"id": str(row["example_id"]), "question_id": parse.question_id(row["question"])} for row in rows]
        for split, rows in raw.items()
    }
    with_ids = {
        split: [{**own, **row} for own, row in zip(ids[split], rows, strict=True)] for split, rows in raw.items()
    }
    assert len({own["question_id"] for rows in ids.values() for own in rows}) == 1734 + 216 + 219
    assert {split: list(rows) for split, rows in loaded.items()} == with_ids
    assert {split: len(rows) for split, rows in raw.items()} == {"train": 1734, "validation": 216, "test": 219}


def test_random_equals_the_source(mirror: Path, tmp_path: Path) -> None:
    files = {split: mirror / DATA / f"lfqa/rand_{name}.jsonl" for split, name in (("validation", "val"), ("test",) * 2)}
    # the real one is too large for the mirror
    files["train"] = jsonl(tmp_path / "train.jsonl", annotated())
    loaded = qabench.load_dataset("expertqa", "random", data_files=files, cache_dir=str(tmp_path))
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": 1, "validation": 217, "test": 219}
    assert {split: list(map(source_of, rows)) for split, rows in loaded.items()} == {
        split: lines(path) for split, path in files.items()
    }
    assert all(len(row["answers"]) == 1 for rows in loaded.values() for row in rows)


def test_the_sample_equals_its_file(tmp_path: Path) -> None:
    rows = qabench.load_dataset("expertqa", "sample", split="train", cache_dir=str(tmp_path))
    assert list(map(source_of, rows)) == lines(SAMPLE)


def test_all_data_files_have_a_config() -> None:
    data = {path for path in dataset_table("expertqa").sources if not path.startswith(("modeling/", "prompts/"))}
    assert {file for config in CONFIGS.values() for file in config.files} == data


@pytest.mark.parametrize("config", [name for name in CONFIGS if name not in ("sample", "questions", "lfqa_random")])
def test_a_file_of_the_schema_loads(config: str, tmp_path: Path) -> None:
    rows = {split: [row_of(config)] * (i + 1) for i, split in enumerate(CONFIGS[config].splits)}
    files = {split: jsonl(tmp_path / f"{split}.jsonl", *of_split) for split, of_split in rows.items()}
    loaded = qabench.load_dataset("expertqa", config, data_files=files, cache_dir=str(tmp_path / "hf"))
    ids = ("id", "question_id")
    without_ids = lambda row: {name: row[name] for name in row if name not in ids}  # noqa: E731
    again = without_ids if config.startswith("lfqa") else source_of
    assert {split: [again(row) for row in of_split] for split, of_split in loaded.items()} == rows


@pytest.mark.parametrize("key", [name for name in parse.LABELS if name != "usefulness"])
def test_unknown_label(key: str) -> None:
    with pytest.raises(
        DataError, match=rf"here.jsonl, line 1, .*field '{key}': expected one of .*, got 'Maybe'$"
    ) as caught:
        parse_row(annotated(**{key: "Maybe"}))
    assert all(label in str(caught.value) for label in parse.LABELS[key])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"usefulness": "Great"}, r"line 1, field 'answers'\['gpt4'\], field 'usefulness': .* 'Great'"),
        ({"annotation_time": float("nan")}, "field 'annotation_time': expected a number from 0 to"),
        ({"annotation_time": -1}, "field 'annotation_time': expected a number from 0 to"),
        ({"annotation_time": 2**60}, "field 'annotation_time': expected a number from 0 to"),
        ({"annotation_time": True}, "field 'annotation_time': expected"),
    ],
)
def test_broken_answers(changes: dict[str, Any], message: str) -> None:
    row = annotated()
    row["answers"]["gpt4"] |= changes
    with pytest.raises(DataError, match=message):
        parse_row(row)


def test_unexpected_answers_and_fields() -> None:
    row = annotated()
    with pytest.raises(DataError, match="field 'answers': expected an empty object"):
        parse_row(row, parse.parse_question)
    with pytest.raises(DataError, match=r"field 'answers'\['gpt4'\]: unknown field 'grade'"):
        parse_row(row | {"answers": {"gpt4": row["answers"]["gpt4"] | {"grade": 1}}})
    with pytest.raises(DataError, match=r"field 'claims'\[0\]: unknown field 'grade'"):
        parse_row(annotated(grade=1))


def test_answers_before_annotation() -> None:
    row = annotated()
    claim = {"claim_string": "Bees dance.", "source_reliability": None}
    row["answers"] = {"any_system": {"answer_string": "Bees dance.", "claims": [claim]}, "other": {"answer_string": ""}}
    first, second = parse_row(row, parse.parse_answers)["answers"]
    assert first["system"] == "any_system" and second["claims"] is None
    assert first["claims"][0]["support"] is first["claims"][0]["evidence"] is first["attribution"] is None
    assert first["claims"][0]["optional_fields"] == ["source_reliability"]
    with pytest.raises(DataError, match="field 'answer_string' is missing"):
        parse_row(row | {"answers": {"gpt4": {"claims": None}}})
    del claim["claim_string"]
    with pytest.raises(DataError, match="field 'claim_string' is missing"):
        parse_row(row, parse.parse_answers)
