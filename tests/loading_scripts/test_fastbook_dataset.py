"""fastbook-benchmark as a dataset: equal to its source files; tables, oddities and invalid files."""

from __future__ import annotations

import copy
import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qabench.data.rows import Row
from qabench.errors import DataError
from qabench.loading import builder, load_dataset
from qabench.loading_scripts import FOLDER, dataset_table
from qabench.loading_scripts.fastbook.parse import chapter_text, parse_chapter, parse_qrels, parse_question
from qabench.loading_scripts.fastbook.stats import tables

Load = Callable[[str], list[dict[str, Any]]]
CHAPTERS = (1, 2, 4, 8, 9, 10, 13)
SAMPLE = FOLDER / "fastbook" / "sample"
SAMPLE_CONFIGS = ("sample", "sample_corpus", "sample_keywords", "sample_qrels")


@pytest.fixture(scope="module")
def source() -> Path:
    """The folder of the source files."""
    for mirror in filter(None, os.environ.get("QABENCH_MIRROR", "").split(os.pathsep)):
        folder = Path(mirror) / "vishalbakshi" / "fastbook-benchmark"
        if (folder / "fastbook-benchmark.json").is_file():
            return folder
    pytest.skip("QABENCH_MIRROR names no folder that has vishalbakshi/fastbook-benchmark")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """The function that returns the rows of a config."""
    cache = str(tmp_path_factory.mktemp("hf"))

    def rows(config: str) -> list[dict[str, Any]]:
        (split,) = load_dataset("fastbook", config, cache_dir=cache).values()
        return list(split)

    return rows


@pytest.fixture(scope="module")
def real(source: Path, sample: Load) -> Load:
    """The same, for tests of the real data."""
    return sample


def raw_questions(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_bytes())["questions"]  # type: ignore[no-any-return]


def raw_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def back(row: dict[str, Any]) -> dict[str, Any]:
    """A row of ``questions`` in the format of the source, which shows that the conversion is lossless."""
    made = copy.deepcopy({key: value for key, value in row.items() if key != "id"})
    for component in made["answer_context"]:
        texts = component["answer_component"]
        component["answer_component"] = texts[0] if len(texts) == 1 else texts
        for flag in ("explicit_context", "extraneous_answer"):
            component[flag] = "true" if component[flag] is True else "false"
    return made


# --- equal to the source, row by row


def check_questions(rows: list[dict[str, Any]], raw: list[dict[str, Any]]) -> None:
    assert [back(row) for row in rows] == raw
    assert [row["id"] for row in rows] == [f"{row['chapter']}-{row['question_number']}" for row in raw]
    assert len({row["id"] for row in rows}) == len(rows)


def check_qrels(rows: list[dict[str, Any]], raw: list[dict[str, Any]]) -> None:
    at = iter(rows)
    for question in raw:
        for i, component in enumerate(question["answer_context"]):
            for j, context in enumerate(component["context"]):
                assert next(at) == {
                    "query_id": f"{question['chapter']}-{question['question_number']}",
                    "chapter": question["chapter"],
                    "question_number": question["question_number"],
                    "component_index": i,
                    "context_index": j,
                    "context": context,
                    "explicit_context": component["explicit_context"] == "true",
                    "extraneous_answer": component["extraneous_answer"] == "true",
                }
    assert next(at, None) is None


def check_keywords(rows: list[dict[str, Any]], raw: list[dict[str, str]]) -> None:
    assert [{key: str(value) for key, value in row.items() if key != "id"} for row in rows] == raw
    assert [row["id"] for row in rows] == [f"{row['chapter']}-{row['question_number']}" for row in raw]


def check_corpus(rows: list[dict[str, Any]], folder: Path, texts: Path) -> None:
    for row in rows:
        cells = json.loads((folder / row["file"]).read_bytes())["cells"]
        assert [(cell["cell_type"], cell["source"]) for cell in row["cells"]] == [
            (cell["cell_type"], "".join(cell["source"])) for cell in cells
        ]
        assert [cell["position"] for cell in row["cells"]] == list(range(len(cells)))
        assert row["text"].encode() == (texts / f"chapter_{row['chapter']}.txt").read_bytes()


def test_questions_equal_the_source(source: Path, real: Load) -> None:
    check_questions(real("questions"), raw_questions(source / "fastbook-benchmark.json"))


def test_qrels_equal_the_source(source: Path, real: Load) -> None:
    check_qrels(real("qrels"), raw_questions(source / "fastbook-benchmark.json"))


def test_keywords_equal_the_source(source: Path, real: Load) -> None:
    check_keywords(real("keywords"), raw_csv(source / "examples" / "fts_keywords.csv"))
    assert [row["id"] for row in real("keywords")] == [row["id"] for row in real("questions")]


def test_the_seven_texts_equal_the_source_byte_for_byte(source: Path, real: Load) -> None:
    rows = real("corpus")
    check_corpus(rows, source / "data", source / "data")
    assert [row["chapter"] for row in rows] == list(CHAPTERS)
    assert [row["title"] for row in rows][:3] == [
        "Your Deep Learning Journey",
        "From Model to Production",
        "Under the Hood: Training a Digit Classifier",
    ]
    assert sum(len(row["text"]) for row in rows) == 503_769


# --- the sample


def test_the_sample_equals_its_files(sample: Load) -> None:
    check_questions(sample("sample"), raw_questions(SAMPLE / "questions.json"))
    check_qrels(sample("sample_qrels"), raw_questions(SAMPLE / "questions.json"))
    check_keywords(sample("sample_keywords"), raw_csv(SAMPLE / "fts_keywords.csv"))
    check_corpus(sample("sample_corpus"), SAMPLE, SAMPLE)
    assert [row["title"] for row in sample("sample_corpus")] == [
        "The Shape of a Sheet",
        "Why the Sea Rises Twice a Day",
    ]


def test_the_sample_has_the_oddities_that_its_card_names(sample: Load) -> None:
    from ftfy import fix_text

    rows, texts = sample("sample"), {row["chapter"]: row["text"] for row in sample("sample_corpus")}
    components = [component for row in rows for component in row["answer_context"]]
    kinds = {(bool(c["context"]), c["explicit_context"], c["extraneous_answer"]) for c in components}
    assert kinds == {(1, 1, 0), (1, 0, 0), (1, 0, 1), (0, 0, 0), (0, 0, 1)}
    assert [len(c["answer_component"]) for c in components].count(2) == 1
    answers = {row["id"]: [str(c["answer_component"]) for c in row["answer_context"]] for row in rows}
    assert [key for key, texts in answers.items() if len(set(texts)) < len(texts)] == ["3-6"]
    passages = [(row["chapter"], context) for row in rows for c in row["answer_context"] for context in c["context"]]
    assert sum(context not in texts[chapter] for chapter, context in passages) == 2
    assert sum(fix_text(context) not in fix_text(texts[chapter]) for chapter, context in passages) == 1
    assert {len(row["question_context"]) for row in rows} == {0, 1, 2}
    assert not str(rows).isascii()


# --- the tables


PUBLISHED: dict[str, list[float]] = {
    "Questions by chapter": [30, 26, 31, 23, 27, 20, 34, 191],
    "Answer components by chapter": [78, 58, 73, 31, 48, 27, 42, 357],
    "Answer components per question, mean by chapter": [2.6, 2.2, 2.4, 1.3, 1.8, 1.4, 1.2, 1.9],
    "Answer components without context by chapter": [8, 5, 8, 1, 1, 1, 1, 25],
    "Answer components with explicit_context false by chapter": [8, 5, 10, 3, 4, 4, 7, 41],
    "Answer components with extraneous_answer true by chapter": [7, 2, 8, 1, 0, 0, 1, 19],
}


def test_every_cell_of_the_published_tables_holds(real: Load) -> None:
    made = {table.title: table for table in tables("questions", {"test": real("questions")})}
    for title, published in PUBLISHED.items():
        keys: list[int | str] = [*CHAPTERS, "all"]
        assert made[title].rows == [[key, n, n] for key, n in zip(keys, published, strict=True)], title


def test_the_tables_of_the_other_configs(real: Load) -> None:
    (characters,) = tables("corpus", {"corpus": real("corpus")})
    assert characters.rows[-1] == ["all", 503_769, 503_769]
    (queries,) = tables("keywords", {"test": real("keywords")})
    assert [row[1] == row[2] for row in queries.rows] == [True] * 8
    passages, components = tables("qrels", {"test": real("qrels")})
    assert passages.rows[-1] == ["all", None, 389]
    assert [row[1] == row[2] for row in components.rows] == [True] * 8
    assert components.rows[-1] == ["all", 332, 332]


def test_the_sample_has_no_published_numbers(sample: Load) -> None:
    for config in SAMPLE_CONFIGS:
        for table in tables(config, {"split": iter(sample(config))}):
            assert {row[1] for row in table.rows} == {None}


# --- oddities, by small rows


def component(**changes: Any) -> dict[str, Any]:
    return {
        "answer_component": "An answer.",
        "scoring_type": "simple",
        "context": ["a passage"],
        "explicit_context": "true",
        "extraneous_answer": "false",
    } | changes


def question(**changes: Any) -> dict[str, Any]:
    return {
        "chapter": 7,
        "question_number": 12,
        "question_text": '"Why?"',
        "gold_standard_answer": '"So."',
        "answer_context": [component()],
        "question_context": [],
    } | changes


def parsed(**changes: Any) -> dict[str, Any]:
    return parse_question(Row.of(question(**changes), "file.json, row 3"))


def test_a_component_is_a_string_or_a_list() -> None:
    row = parsed(answer_context=[component(), component(answer_component=["one", "two"])])
    assert [item["answer_component"] for item in row["answer_context"]] == [["An answer."], ["one", "two"]]
    for texts in ([], ["one"]):  # could not be distinguished from a string
        with pytest.raises(
            DataError, match=r"row 3, field 'answer_context'\[0\], field 'answer_component'.*two strings"
        ):
            parsed(answer_context=[component(answer_component=texts)])


def test_an_empty_context_is_kept_and_has_no_qrels() -> None:
    raw = question(answer_context=[component(context=[]), component(context=["x", "y"], explicit_context="false")])
    assert parsed(**raw)["answer_context"][0]["context"] == []
    rows = parse_qrels(Row.of(raw, "file"))
    assert [(row["query_id"], row["component_index"], row["context_index"], row["context"]) for row in rows] == [
        ("7-12", 1, 0, "x"),
        ("7-12", 1, 1, "y"),
    ]


def cell(kind: str, source: Any, **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "source": source, "metadata": {}} | more


def chapter(cells: list[Any], file: str = "07_seven.ipynb", **changes: Any) -> dict[str, Any]:
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | changes
    return parse_chapter(Row.of(notebook, f"/some/{file}"), file)


def test_the_text_ends_at_the_questionnaire() -> None:
    row = chapter(
        [
            cell("code", ["# no title\n", "## Questionnaire"], outputs=[{"x": float("nan")}], execution_count=None),
            cell("raw", "[[raw]]"),
            cell("markdown", "# Seven \n\nA list: ", id="a"),
            cell("markdown", ""),
            cell("raw", "## Questionnaire"),
            cell("markdown", ["> text\n", "### Questionn", "aire, at last\n"], attachments={}),
            cell("markdown", "after"),
        ]
    )
    assert row["title"] == "Seven"
    assert row["text"] == "# no title\n## Questionnaire\n# Seven \n\nA list: \n\n"
    assert (row["chapter"], row["file"]) == (7, "07_seven.ipynb")
    assert [item["position"] for item in row["cells"]] == list(range(7))
    assert row["cells"][-1]["source"] == "after"
    assert chapter_text(row["cells"]) == row["text"]


@pytest.mark.parametrize(
    ("cells", "file", "message"),
    [
        ([cell("heading", "x")], "07_x.ipynb", r"07_x.ipynb, field 'cells'\[0\], field 'cell_type'.*'heading'"),
        (
            [cell("code", "# no title")],
            "07_x.ipynb",
            "field 'cells': expected a markdown cell with the chapter's title",
        ),
        ([cell("markdown", "# T")], "x.ipynb", "x.ipynb: expected a name with the chapter's number"),
        (
            [cell("markdown", None)],
            "07_x.ipynb",
            r"field 'cells'\[0\], field 'source': expected string or list, got null",
        ),
        (
            [cell("markdown", "# T"), cell("code", ["a", 1])],
            "07_x.ipynb",
            r"'cells'\[1\], field 'source'\[1\]: expected",
        ),
        ([cell("markdown", "# T", more=1)], "07_x.ipynb", r"field 'cells'\[0\]: unknown field 'more'"),
        (["# T"], "07_x.ipynb", r"field 'cells'\[0\]: expected an object"),
    ],
)
def test_a_notebook_of_another_form_is_an_error(cells: list[Any], file: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        chapter(cells, file)


# --- broken files: each loads or says file, row and field


PATHS: list[tuple[tuple[Any, ...], str]] = [
    *(((key,), key) for key in question()),
    *((("answer_context", 0, key), key) for key in component()),
    *((("question_context", 0, key), key) for key in ("question_component", "context")),
]
MISSING = object()
JUNK: list[Any] = [None, float("nan"), 1.5, -1, 2**63, 10**400, True, {}, {"a": 1}, [None], [[]], [{}], "\ud800"]
JUNK += ["maybe", "", [], ["x"], ["x", "\udfff"], "x" * 300_000, 0, "01", "9" * 30]


def rows_of(config: str, path: Path) -> list[dict[str, Any]]:
    """The rows of a file from the builder's code, written to Arrow with the config's features."""
    made = BUILDERS.setdefault(config, builder("fastbook", config))
    rows = list(made._rows(path, "test"))
    pa.Table.from_pylist([made.info.features.encode_example(row) for row in rows], made.info.features.arrow_schema)
    return rows


BUILDERS: dict[str, Any] = {}


def all_in(message: str | None, *parts: str) -> bool:
    return message is not None and all(part in message for part in parts)


def loads_or_says_why(config: str, path: Path) -> str | None:
    """None if the file loads, else the message of its DataError."""
    try:
        rows_of(config, path)
    except DataError as error:
        message = str(error)
    else:
        return None
    assert str(path) in message
    return message


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(JUNK),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
FUZZ = settings(
    max_examples=settings.default.max_examples * 3 // 2, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FUZZ
@given(st.data())
def test_fuzz_questions(tmp_path: Path, data: st.DataObject) -> None:
    path, field = data.draw(st.sampled_from(PATHS))
    value = data.draw(ANYTHING | st.just(MISSING))
    row: Any = question(question_context=[{"question_component": "Why", "context": ["because"]}])
    target = row
    for step in path[:-1]:
        target = target[step]
    if value is MISSING:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    file = tmp_path / "q.json"
    file.write_text(json.dumps({"questions": [question(), question(), row]}))
    message = loads_or_says_why("sample", file)
    assert (message is None and value is not MISSING) or all_in(message, "row 2", f"field {field!r}")
    assert len(message or "") < 1000


@FUZZ
@given(st.data())
def test_fuzz_notebooks(tmp_path: Path, data: st.DataObject) -> None:
    notebook = {"cells": [cell("markdown", "# T"), cell("code", ["a"])], "metadata": {}, "nbformat": 4}
    at: Any = data.draw(st.sampled_from([notebook, *notebook["cells"]]))  # type: ignore[misc]
    key = data.draw(st.sampled_from([*at, "more"]))
    at[key] = data.draw(ANYTHING)
    file = tmp_path / "07_seven.ipynb"
    file.write_text(json.dumps(notebook))
    message = loads_or_says_why("sample_corpus", file)
    assert message is None or "field" in message


@FUZZ
@given(
    st.lists(
        st.lists(
            st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(["1", "01", "-1", "9" * 5000, 'a"b']),
            max_size=6,
        ),
        max_size=4,
    )
)
def test_fuzz_keywords(tmp_path: Path, lines: list[list[str]]) -> None:
    text = "chapter,question_number,question_text,keywords\r\n" + "\r\n".join(map(",".join, lines))
    file = tmp_path / "k.csv"
    file.write_bytes(text.encode())
    message = loads_or_says_why("sample_keywords", file)
    assert message is None or ", line " in message


@pytest.mark.parametrize("config", SAMPLE_CONFIGS)
def test_a_byte_order_mark_and_other_line_ends_change_nothing(config: str, tmp_path: Path) -> None:
    original = sample_file(config)
    file, data = tmp_path / original.name, original.read_bytes()
    whole = rows_of(config, original)
    file.write_bytes(b"\xef\xbb\xbf" + data)
    assert rows_of(config, file) == whole
    lf = data.replace(b"\r\n", b"\n")
    for changed in (lf, lf.replace(b"\n", b"\r\n")):
        file.write_bytes(changed)
        assert rows_of(config, file) == whole


def sample_file(config: str) -> Path:
    (files,) = dataset_table("fastbook").configs[config].splits.values()
    return FOLDER / "fastbook" / files[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chapter,number\n", r"line 1: expected the columns chapter, question_number"),
        ("1,2,a\n", "line 2: expected one field for each of the columns"),
        ("1,2,a,b,c\n", "line 2: expected one field for each of the columns"),
        ('1,2,"a\nb",c\n1,x,a,b\n', r"line 4, field 'question_number': expected an integer.*'x'"),
        ("01,2,a,b\n", r"line 2, field 'chapter': expected an integer.*'01'"),
        ('1,2,a,b\n1,3,"a,b\n', r"line 3: not CSV"),
        ('1,2,"a"b,c\n', r"line 2: not CSV"),
        ("1,2,a," + "b" * 200_000, r"line 2: not CSV \(field larger"),
    ],
)
def test_a_broken_keyword_row_is_named(text: str, message: str, tmp_path: Path) -> None:
    header = "" if text.startswith("chapter") else "chapter,question_number,question_text,keywords\n"
    file = tmp_path / "k.csv"
    file.write_text(header + text)
    with pytest.raises(DataError, match=message):
        rows_of("sample_keywords", file)
