"""ExpertQA as a dataset: equal to its source files, strict about invalid files, loadable offline."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import qabench
import qabench.loading_scripts as loading_scripts
from qabench.data.pinned import SourceFile, SourceTable
from qabench.data.rows import Row, read_json_lines
from qabench.errors import DataError, InputError, SourceUnavailable
from qabench.loading import builder
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.expertqa import parse, stats

REPO = "chaitanyamalaviya/ExpertQA"
TABLE = loading_scripts.source_table("expertqa")
SAMPLE = loading_scripts.FOLDER / "expertqa" / "sample" / "answers.jsonl"
CONFIGS = dataset_table("expertqa").configs
IN_THE_MIRROR = ("questions", "lfqa_random")
ANSWERED = ("main", "all_evidences", "autoais", "factscores", "random", "domain")
OPTIONAL = {
    *("atomic_claims", "atomic_evidences", "fact_score", "autoais_label", "source_reliability", "revised_claim_string")
}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets.disable_progress_bars()


def real(path: str) -> Path:
    """The file in the mirror; skips the test if it is missing."""
    for folder in os.environ.get("QABENCH_MIRROR", "").split(os.pathsep):
        if folder and (found := Path(folder, REPO, path)).exists():
            return found
    pytest.skip(f"QABENCH_MIRROR is not set or has no {REPO}/{path}")


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def source_of(row: dict[str, Any]) -> dict[str, Any]:
    """The source's row, restored from a row of the dataset, which shows that the conversion is lossless."""
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
    """A row of the main file: one answer with one claim with the given fields."""
    fields = {
        "claim_string": "Bees dance [1].",
        "evidence": ["[1] https://example.org/bees"],
        "support": "Complete",
        "reason_missing_support": "",
        "informativeness": "Very relevant",
        "worthiness": "Yes",
        "correctness": "Probably correct",
        "reliability": "Reliable",
        "revised_claim": "Bees dance [1].",
        "revised_evidence": "[1] https://example.org/bees",
    }
    answer = {
        "answer_string": "Bees dance [1].",
        "attribution": ["[1] https://example.org/bees"],
        "claims": [fields | claim],
        "revised_answer_string": "Bees dance.",
        "usefulness": "Useful",
        "annotation_time": 4321,
        "annotator_id": "b",
    }
    metadata = {"question_type": "One type| Another type", "field": "Biology", "specific_field": "Bees"}
    return {"question": "Do bees dance?", "annotator_id": "a", "answers": {"gpt4": answer}, "metadata": metadata}


def question() -> dict[str, Any]:
    return annotated() | {"answers": {}}


def lfqa(number: int = 0) -> dict[str, Any]:
    return {"example_id": number, "context": "", "question": "Do bees dance?", "answer": "Bees dance."}


def row_of(config: str) -> dict[str, Any]:
    if config.startswith("lfqa"):
        return lfqa()
    return question() if config == "questions" else annotated()


def parse_row(row: Any, parser: Any = parse.parse_annotated) -> Any:
    return parser(Row.of(row, "here.jsonl, line 1"))


def claim_of(row: dict[str, Any]) -> dict[str, Any]:
    claim: dict[str, Any] = row["answers"][0]["claims"][0]
    return claim


class Upstream:
    """A mirror of synthetic files, and their source table."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.files = {file.path: file for file in TABLE}
        monkeypatch.setattr(loading_scripts, "source_table", lambda name: SourceTable(name, tuple(self.files.values())))
        monkeypatch.setenv("QABENCH_OFFLINE", "1")
        monkeypatch.setenv("QABENCH_CACHE", str(folder / "cache"))
        monkeypatch.setenv("QABENCH_MIRROR", os.pathsep.join([str(folder), os.environ.get("QABENCH_MIRROR", "")]))

    def write(self, path: str, content: bytes) -> Path:
        target = self.folder / REPO / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        self.files[path] = SourceFile("expertqa", REPO, "0" * 40, path, "MIT", sha256=digest)
        return target


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    return Upstream(tmp_path / "mirror", monkeypatch)


def jsonl(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


# 1. The real files


def test_questions_equal_the_source(tmp_path: Path) -> None:
    raw = lines(real("data/r1_data_anon.jsonl"))
    rows = list(qabench.load_dataset("expertqa", "questions", split="train", cache_dir=str(tmp_path)))
    assert len(rows) == 2507
    assert list(map(source_of, rows)) == raw


def test_lfqa_random_equals_the_source(tmp_path: Path) -> None:
    files = {"train": "rand_lfqa_train", "validation": "rand_lfqa_val", "test": "rand_lfqa_test"}
    raw = {split: lines(real(f"data/lfqa/{name}.json")) for split, name in files.items()}
    loaded = qabench.load_dataset("expertqa", "lfqa_random", cache_dir=str(tmp_path))
    assert {split: list(rows) for split, rows in loaded.items()} == raw
    assert {split: len(rows) for split, rows in raw.items()} == {"train": 1734, "validation": 216, "test": 219}


def test_random_equals_the_source(tmp_path: Path, upstream: Upstream) -> None:
    raw = {s: lines(real(f"data/lfqa/rand_{name}.jsonl")) for s, name in {"validation": "val", "test": "test"}.items()}
    raw["train"] = [annotated()]  # the real one is too large for the mirror
    upstream.write("data/lfqa/rand_train.jsonl", jsonl(*raw["train"]))
    loaded = qabench.load_dataset("expertqa", "random", cache_dir=str(tmp_path))
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": 1, "validation": 217, "test": 219}
    assert {split: list(map(source_of, rows)) for split, rows in loaded.items()} == raw
    assert all(len(row["answers"]) == 1 for rows in loaded.values() for row in rows)


# 2. The sample


def test_the_sample_equals_its_file(tmp_path: Path) -> None:
    rows = qabench.load_dataset("expertqa", "sample", split="train", cache_dir=str(tmp_path))
    assert list(map(source_of, rows)) == lines(SAMPLE)
    part = qabench.load_dataset("expertqa", "sample", split="train[2:4]", cache_dir=str(tmp_path))
    assert [row["answers"][0]["system"] for row in part] == ["rr_gs_gpt4", "rr_sphere_gpt4"]


def test_configs_and_features() -> None:
    assert set(CONFIGS) == {
        *(*ANSWERED, "lfqa_random", "lfqa_domain", "questions", "sample"),
        *("answers_bing_chat", "answers_gpt4", "answers_post_hoc_gs_gpt4", "answers_post_hoc_sphere_gpt4"),
        *("answers_rr_gs_gpt4", "answers_rr_sphere_gpt4_bm25"),
    }
    data = {
        file.path for file in TABLE if not file.path.startswith(("modeling/", "prompts/"))
    }  # the others are prompts
    assert {file for config in CONFIGS.values() for file in config.files} == data
    assert builder("expertqa").config.name == "main"
    for name in CONFIGS:
        parsed = list(map(builder("expertqa", name)._schema[1], [Row(row_of(name), "here")]))
        assert set(builder("expertqa", name).info.features) == set(parsed[0])
    with pytest.raises(InputError, match="no split 'test'; allowed: train"):
        qabench.load_dataset("expertqa", "sample", split="test")


# 3. The statistics


def cells(table: Any) -> dict[tuple[str, str], Any]:
    return {(row[0], column): row[i] for row in table.rows for i, column in enumerate(table.columns) if i}


def by_title(config: str, splits: Any) -> dict[str, Any]:
    return {table.title: table for table in stats.tables(config, splits)}


def test_stats_of_questions() -> None:
    raw = lines(real("data/r1_data_anon.jsonl"))
    made = by_title("questions", {"train": [parse_row(row, parse.parse_question) for row in raw]})
    assert cells(made["Rows"]) == {("train", "here"): 2507, ("train", "published"): 2507}
    fields = Counter(row["metadata"]["field"] for row in raw)
    assert cells(made["Questions by field"]) == {(name, "train"): count for name, count in fields.items()}
    assert len(fields) == 34
    assert "32 fields" in made["Questions by field"].notes[0]
    types = Counter(part.strip() for row in raw for part in row["metadata"]["question_type"].split("|"))
    assert cells(made["Questions by type"]) == {(name, "train"): count for name, count in types.items()}
    assert len(types) == 7


def test_stats_of_answers() -> None:
    files = {"validation": "val", "test": "test"}
    paths = {split: real(f"data/lfqa/rand_{name}.jsonl") for split, name in files.items()}
    made = by_title("random", {s: map(parse.parse_annotated, read_json_lines(path)) for s, path in paths.items()})
    answers = cells(made["Answers and claims by system, all splits"])
    assert [answers[name, "all"] for name in ("answers", "claims", "claims without evidence")] == [436, 2529, 443]
    labels = cells(made["Labels of claims"])
    assert [labels[f"support: {name}", "all"] for name in ("Complete", "N/A", "null")] == [1448, 111, 3]


# 4. The oddities


@pytest.mark.parametrize(
    ("value", "expected", "is_text"),
    [("a", ["a"], True), ("", [""], True), ([], [], False), (["a"], ["a"], False), (["a", "b"], ["a", "b"], False)],
)
def test_revised_evidence(value: Any, expected: list[str], is_text: bool) -> None:
    claim = claim_of(parse_row(annotated(revised_evidence=value)))
    assert (claim["revised_evidence"], claim["revised_evidence_is_text"]) == (expected, is_text)


def test_nulls_stay_null(upstream: Upstream, tmp_path: Path) -> None:
    fields = set(annotated()["answers"]["gpt4"]["claims"][0]) - {"claim_string", "evidence"}
    row = annotated(**dict.fromkeys(fields))
    row["answers"]["gpt4"] |= {"usefulness": None, "annotation_time": None}
    upstream.write(CONFIGS["main"].files[0], jsonl(row))
    (loaded,) = qabench.load_dataset("expertqa", "main", split="train", cache_dir=str(tmp_path / "hf"))
    assert source_of(loaded) == row
    assert claim_of(loaded)["revised_evidence"] is None and claim_of(loaded)["revised_evidence_is_text"] is None


def test_optional_fields_of_a_claim() -> None:
    assert claim_of(parse_row(annotated()))["optional_fields"] == []
    claim = claim_of(parse_row(annotated(source_reliability=None, fact_score=None)))  # null is not absent
    assert claim["optional_fields"] == ["fact_score", "source_reliability"]
    more = {"atomic_claims": ["Bees dance."], "atomic_evidences": [""], "fact_score": 1, "autoais_label": "Y"}
    claim = claim_of(parse_row(annotated(**more)))
    assert {key: claim[key] for key in more} == more
    assert claim["optional_fields"] == list(more)


def test_question_type_is_split() -> None:
    for text in ("One type| Another type", "One type|Another type", " One type  |  Another type "):
        row = annotated()
        row["metadata"]["question_type"] = text
        metadata = parse_row(row)["metadata"]
        assert metadata["question_type"] == ["One type", "Another type"] and metadata["question_type_text"] == text


@pytest.mark.parametrize("key", stats.CLAIM_LABELS)
def test_unknown_label(key: str) -> None:
    with pytest.raises(DataError, match=rf"here.jsonl, line 1, .*field '{key}': unknown label 'Maybe'; all") as caught:
        parse_row(annotated(**{key: "Maybe"}))
    assert all(label in str(caught.value) for label in parse.LABELS[key])


def test_unknown_usefulness_and_system() -> None:
    row = annotated()
    row["answers"]["gpt4"]["usefulness"] = "Great"
    with pytest.raises(DataError, match=r"line 1, field 'answers'\['gpt4'\], field 'usefulness': unknown label 'Gr"):
        parse_row(row)
    row["answers"] = {"gpt5": row["answers"]["gpt4"]}
    with pytest.raises(DataError, match=r"line 1, field 'answers': unknown system 'gpt5'; known: gpt4, "):
        parse_row(row)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, 2**60, "5", True])
def test_annotation_time_is_a_number(value: Any) -> None:
    row = annotated()
    row["answers"]["gpt4"]["annotation_time"] = value
    with pytest.raises(DataError, match="field 'annotation_time': expected"):
        parse_row(row)


def test_answers_before_annotation() -> None:
    row = annotated()
    claim = {"claim_string": "Bees dance.", "source_reliability": None}
    row["answers"] = {"any_system": {"answer_string": "Bees dance.", "claims": [claim]}, "other": {"answer_string": ""}}
    first, second = parse_row(row, parse.parse_collected)["answers"]
    assert first["system"] == "any_system" and second["claims"] is None
    assert first["claims"][0]["support"] is first["claims"][0]["evidence"] is first["attribution"] is None
    assert first["claims"][0]["optional_fields"] == ["source_reliability"]
    with pytest.raises(DataError, match="field 'claims' is missing"):
        parse_row(row | {"answers": {"gpt4": {"answer_string": ""}}})
    del claim["claim_string"]
    with pytest.raises(DataError, match="field 'claim_string' is missing"):
        parse_row(row, parse.parse_collected)


def test_a_question_has_no_answers() -> None:
    with pytest.raises(DataError, match="field 'answers': expected an empty object"):
        parse_row(annotated(), parse.parse_question)


# 5. Broken rows

KEYS = ["claim_string", "field", "\ud800", "x"]
JUNK: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, True, 0, -1, 2**70, 10**400, 1.5, float("nan"), float("inf")]),
    st.sampled_from(["", "\ud800", "x" * 100_000, "N/A", "Partial", "é\x00"]),
    st.lists(st.sampled_from([None, 3, "a", "\udfff", [], {}]), max_size=3),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from([None, "a", []]), max_size=2),
)


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of all values in a JSON value."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from spots(item)


@settings(
    max_examples=4 * settings.default.max_examples,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_broken_rows_load_or_are_named(data: st.DataObject, tmp_path: Path) -> None:
    config = data.draw(st.sampled_from(["main", "answers_gpt4", "questions", "lfqa_domain"]))
    row = copy.deepcopy(row_of(config))
    if config == "main":
        claims = row["answers"]["gpt4"]["claims"]
        claims[0] |= {"atomic_claims": ["a"], "atomic_evidences": [""], "fact_score": 0.5, "autoais_label": "N"}
    for _ in range(data.draw(st.integers(0, 2))):
        container, key = data.draw(st.sampled_from(list(spots(row))))
        action = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "replace" and (isinstance(container, dict) or key < len(container)):
            container[key] = data.draw(JUNK)
        elif action == "remove" and (isinstance(container, dict) or key < len(container)):
            del container[key]
        elif isinstance(container, dict):
            container["surplus"] = data.draw(JUNK)
    path = tmp_path / "broken.jsonl"
    path.write_bytes(b"\n" + jsonl(row_of(config)) + jsonl(row))
    made = builder("expertqa", config)
    try:
        rows = list(made._rows(path, "train"))
    except DataError as error:
        message = str(error)
        assert message.startswith(f"{path}, line ")
        assert len(message) < len(str(path)) + 1500
        assert "field '" in message or "lone surrogate" in message
        message.encode("utf-8")
    else:
        datasets.Dataset.from_list(rows, features=made.info.features)


def test_a_broken_file_is_named_by_load_dataset(upstream: Upstream, tmp_path: Path) -> None:
    path = upstream.write(CONFIGS["main"].files[0], jsonl(annotated(), annotated(support=7)))
    with pytest.raises(DataError, match="line 2") as caught:
        qabench.load_dataset("expertqa", "main", cache_dir=str(tmp_path / "hf"))
    assert str(caught.value) == (
        f"{path}, line 2, field 'answers'['gpt4'], field 'claims'[0], field 'support': "
        "expected string or null, got integer 7"
    )


# 6. Missing files


@pytest.mark.parametrize("config", [name for name in CONFIGS if name != "sample"])
def test_offline_without_the_file(config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_OFFLINE", "1")
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(SourceUnavailable) as caught:
        qabench.load_dataset("expertqa", config, cache_dir=str(tmp_path / "hf"))
    source = TABLE[CONFIGS[config].files[0]]
    assert source.path in str(caught.value) and source.url in str(caught.value)


@pytest.mark.parametrize("config", [name for name in CONFIGS if name not in ("sample", *IN_THE_MIRROR)])
def test_a_file_of_the_schema_loads(config: str, upstream: Upstream, tmp_path: Path) -> None:
    rows = {split: [row_of(config)] * (i + 1) for i, split in enumerate(CONFIGS[config].splits)}
    for split, (file,) in CONFIGS[config].splits.items():
        upstream.write(file, jsonl(*rows[split]))
    loaded = qabench.load_dataset("expertqa", config, cache_dir=str(tmp_path / "hf"))
    again = (lambda row: row) if config.startswith("lfqa") else source_of
    assert {split: [again(row) for row in found] for split, found in loaded.items()} == rows
