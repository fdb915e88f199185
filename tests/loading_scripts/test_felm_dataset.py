"""FELM as a dataset: equal to its source, restored byte for byte; strict rows; statistics."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import qabench.loading_scripts as scripts
from qabench.data.rows import Row
from qabench.data.sources import find_local
from qabench.errors import DataError
from qabench.loading import load_dataset
from qabench.loading_scripts.felm.parse import DOMAINS, ERROR_TYPES, FIELDS, parse_row, read_rows, to_source
from qabench.loading_scripts.felm.stats import tables

FOLDER = Path(scripts.FOLDER / "felm")
SAMPLE = FOLDER / "sample" / "all.jsonl"
PATH = "eval/all.jsonl"
ROWS = {"all": 847, "wk": 184, "science": 125, "math": 194, "reasoning": 208, "writing_rec": 136}
REAL = pytest.mark.skipif(
    not os.environ.get("QABENCH_MIRROR") or find_local(scripts.source_table("felm")[PATH]) is None,
    reason=f"needs QABENCH_MIRROR, with FELM's {PATH}",
)
Write = Callable[[list[dict[str, Any]]], Path]


def raw_lines(path: Path) -> list[dict[str, Any]]:
    # Not splitlines, which would split at the U+0085 in a text of the real file.
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def expected(raw: dict[str, Any]) -> dict[str, Any]:
    """A raw row with the dataset's types, independent of the parser."""
    lists = {key: [] if raw[key] == "" else raw[key] for key in ("type", "ref", "ref_contents")}
    return {**raw, **lists, "response": None if isinstance(raw["response"], float) else raw["response"]}


def raw_row(**changes: Any) -> dict[str, Any]:
    """A valid row of the source's schema, with changes."""
    row = {
        "index": "7",
        "domain": "wk",
        "source": "qabench",
        "prompt": "Where is Lumenoë?",
        "response": "In the west. Or east.",
        "segmented_response": ["In the west.", "Or east."],
        "labels": [True, False],
        "comment": ["", "In the west."],
        "type": [None, "knowledge_error"],
        "ref": ["https://example.org/lumenoe"],
        "ref_contents": ["Lumenoë lies in the west."],
    }
    return row | changes


def reasoning_row(**changes: Any) -> dict[str, Any]:
    return raw_row(domain="reasoning", type="", ref="", ref_contents="") | changes


def parse(raw: dict[str, Any]) -> dict[str, Any]:
    return parse_row(Row.of(raw, "felm.jsonl, line 3"))


def same(a: Any, b: Any) -> bool:
    """Equal by value, type and order of keys, with NaN equal to itself."""
    return json.dumps(a) == json.dumps(b)


@pytest.fixture
def hf_cache(tmp_path: Path) -> str:
    return str(tmp_path / "datasets")


@pytest.fixture(scope="module")
def path() -> Path:
    return scripts.open_path("felm", PATH)


@pytest.fixture(scope="module")
def rows(path: Path) -> list[dict[str, Any]]:
    return list(read_rows(path, "all"))


@REAL
class TestRealData:
    @pytest.mark.parametrize("config", ROWS)
    def test_equals_the_source_row_by_row(self, config: str, path: Path, hf_cache: str) -> None:
        dataset = load_dataset("felm", config, cache_dir=hf_cache)
        assert list(dataset) == ["test"]
        wanted = [expected(raw) for raw in raw_lines(path) if config in ("all", raw["domain"])]
        assert len(wanted) == ROWS[config]
        got = list(dataset["test"])
        assert len(got) == len(wanted)
        for row, want in zip(got, wanted, strict=True):
            assert same(row, want), row["index"]

    def test_round_trips_byte_for_byte(self, path: Path, hf_cache: str) -> None:
        rows = load_dataset("felm", "all", split="test", cache_dir=hf_cache)
        written = "".join(json.dumps(to_source(row), ensure_ascii=False) + "\n" for row in rows).encode()
        assert hashlib.sha256(written).hexdigest() == scripts.source_table("felm")[PATH].sha256
        assert written == path.read_bytes()

    def test_stats_hold_the_facts(self, rows: list[dict[str, Any]]) -> None:
        segments, responses, types = tables("all", {"test": iter(rows)})
        assert [row[:1] + row[1::2] for row in segments.rows] == [
            ["wk", 184, 532, 385, 147],
            ["science", 125, 684, 582, 102],
            ["math", 194, 599, 474, 125],
            ["reasoning", 208, 1025, 879, 146],
            ["writing_rec", 136, 1586, 1319, 267],
            ["all", 847, 4426, 3639, 787],
        ]
        assert segments.rows[-1][2::2] == [847, 4427, 3642, 785]
        assert "for science, math, reasoning, writing_rec, all." in segments.notes[0]
        assert responses.rows[1:] == [
            ["all segments true", 99, 86, 130, 161, 89, 565],
            ["with an error", 85, 39, 64, 47, 47, 282],
        ]
        assert types.rows[-1] == ["(no list of types), error", 0, 0, 113, 146, 0, 259]
        assert sum(row[-1] for row in types.rows) == 4426

    def test_missing_values_are_written_as_the_facts_say(self, path: Path) -> None:
        raws = raw_lines(path)
        assert sum(isinstance(raw["response"], float) for raw in raws) == 2
        assert sum(raw["type"] == "" and raw["ref"] == "" for raw in raws) == 208
        assert sum(not raw["type"] for raw in raws) == 397
        assert sum(raw["ref_contents"] == "" for raw in raws) == 517


def test_the_sample_goes_back_byte_for_byte() -> None:
    rows = list(read_rows(SAMPLE, "sample"))
    assert same(rows, [expected(raw) for raw in raw_lines(SAMPLE)])
    written = [json.dumps(to_source(row), ensure_ascii=False) for row in rows]
    assert "".join(line + "\n" for line in written).encode() == SAMPLE.read_bytes()


def test_the_sample_has_no_published_numbers() -> None:
    segments, *others = tables("sample", {"test": read_rows(SAMPLE, "sample")})
    assert segments.rows[-1] == ["all", 13, None, 30, None, 19, None, 11, None]
    assert not segments.notes
    assert all(len(row) == len(table.columns) for table in (segments, *others) for row in table.rows)


class TestOddities:
    @pytest.mark.parametrize(
        "changes",
        [
            {"domain": "reasoning", "type": "", "ref": "", "ref_contents": ""},
            {"domain": "reasoning", "type": "", "ref": "", "ref_contents": "", "response": math.nan},
            {"response": math.nan},
            {"response": ""},
            {"type": []},
            {"type": [None, None]},
            {"type": ["", "fooled"]},
            {"type": ["reasoning_error", None]},
            {"type": ["irrelevant_with_qst", "irrelevant_with_qst"]},
            {"ref": [], "ref_contents": ""},
            {"ref_contents": []},
            {"ref": ["a", "b"], "ref_contents": ["one for both"]},
            {"ref_contents": [""]},
            {"comment": ["a comment on a true segment", ""]},
            {"segmented_response": ["", "\\n1."]},
            {"segmented_response": [], "labels": [], "comment": [], "type": [], "response": "nothing\x00 to cut"},
        ],
    )
    def test_kept_and_recoverable(self, changes: dict[str, Any]) -> None:
        raw = raw_row(**changes)
        assert same(parse(raw), expected(raw))
        assert same(to_source(parse(raw)), raw)

    @pytest.mark.parametrize(
        ("raw", "field", "says"),
        [
            (raw_row(domain="history"), "domain", "wk, science, math, reasoning, writing_rec"),
            (raw_row(response=None), "response", "string or number, got null"),
            (raw_row(response=1.5), "response", "string or NaN"),
            (raw_row(response=math.inf), "response", "string or NaN"),
            (raw_row(prompt=math.nan), "prompt", "string"),
            (raw_row(index=7), "index", "string"),
            (raw_row(labels=[True, 0]), "labels", "[1]: expected true or false, got 0"),
            (raw_row(labels=[True]), "labels", "each of the 2 segments, got 1"),
            (raw_row(comment=["", "", ""]), "comment", "each of the 2 segments, got 3"),
            (raw_row(comment=["", None]), "comment", "[1]: expected string, got null"),
            (raw_row(comment=["", math.nan]), "comment", "[1]: expected string"),
            (raw_row(type=["fooled"]), "type", "each of the 2 segments, got 1"),
            (raw_row(type=[None, "typo"]), "type", "[1]: expected one of null, '', 'knowledge_error'"),
            (raw_row(type=[None, 0]), "type", "[1]: expected one of"),
            (raw_row(type=[[], None]), "type", "[0]: expected one of"),
            (raw_row(type=""), "type", "expected list, got string ''"),
            (raw_row(ref=""), "ref", "expected list, got string ''"),
            (raw_row(ref=[]), "ref_contents", "expected string"),
            (raw_row(ref=[], ref_contents=[]), "ref_contents", "expected string"),
            (
                raw_row(ref=[], ref_contents="text"),
                "ref_contents",
                "an empty string, because the row has no references",
            ),
            (raw_row(ref_contents=""), "ref_contents", "expected list, got string ''"),
            (reasoning_row(type=[]), "type", "expected string, got list []"),
            (reasoning_row(type="fooled"), "type", "an empty string, because the domain is 'reasoning', got 'fooled'"),
            (reasoning_row(ref=[]), "ref", "expected string, got list []"),
            (raw_row(prompt="\ud800"), "prompt", "lone surrogate"),
            (raw_row(comment=["", "\udfff"]), "comment", "lone surrogate"),
            (raw_row(extra=1), "extra", "unknown field"),
        ],
    )
    def test_lossy_rows_are_rejected(self, raw: dict[str, Any], field: str, says: str) -> None:
        with pytest.raises(DataError, match=r"^felm\.jsonl, line 3") as error:
            parse(raw)
        assert f"{field!r}" in str(error.value)
        assert says in str(error.value)

    @pytest.mark.parametrize("field", FIELDS)
    def test_missing_field(self, field: str) -> None:
        with pytest.raises(DataError, match=f"line 3: the field '{field}' is missing"):
            parse({key: value for key, value in raw_row().items() if key != field})


class TestFiles:
    LINE = json.dumps(raw_row(), ensure_ascii=False).encode()

    def read(self, folder: Path, content: bytes, config: str = "all") -> list[dict[str, Any]]:
        path = folder / "all.jsonl"
        path.write_bytes(content)
        return list(read_rows(path, config))

    @pytest.mark.parametrize(
        "content",
        [b"\xef\xbb\xbf" + LINE, LINE + b"\r\n" + b"\r\n", LINE + b"\n\n", b"\n" + LINE],
        ids=["byte order mark", "CRLF", "blank line at the end", "blank line first"],
    )
    def test_harmless(self, content: bytes, tmp_path: Path) -> None:
        assert same(self.read(tmp_path, content), [expected(raw_row())])

    @pytest.mark.parametrize(
        "second",
        [LINE[:-20], LINE.decode().encode("latin-1"), b"[1]", b"{}", b"null", b"[" * 100_000, b"\xef\xbb\xbf" + LINE],
        ids=["truncated", "Latin-1", "list", "empty object", "null", "too deep", "byte order mark"],
    )
    def test_broken_line_is_named(self, second: bytes, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=re.escape(f"{tmp_path / 'all.jsonl'}, line 2")):
            self.read(tmp_path, self.LINE + b"\n" + second)

    def test_a_broken_row_of_another_domain_counts(self, tmp_path: Path) -> None:
        broken = json.dumps(raw_row(domain="math", labels=[])).encode()
        with pytest.raises(DataError, match="line 2, field 'labels'"):
            self.read(tmp_path, self.LINE + b"\n" + broken, "wk")


# Values from a broken program or a careless edit; surrogates are valid in JSON's escapes.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=8) | st.just("x" * 200_000) | st.just("\ud800")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.sampled_from(ERROR_TYPES + DOMAINS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2), max_leaves=5
)
GOOD = [*raw_lines(SAMPLE), raw_row(), reasoning_row()]


@st.composite
def broken_rows(draw: st.DrawFn) -> dict[str, Any]:
    row: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(GOOD)))
    for key in draw(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3)):
        match draw(st.sampled_from(["drop", "replace", "item", "extra"])):
            case "drop":
                row.pop(key, None)
            case "replace":
                row[key] = draw(VALUES)
            case "item" if isinstance(row.get(key), list):
                row[key].insert(draw(st.integers(0, len(row[key]))), draw(SCALARS))
            case "extra":
                row[draw(TEXTS)] = draw(SCALARS)
    return row


@settings(
    max_examples=settings.default.max_examples * 5 // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(raw=broken_rows())
def test_fuzz_rows_load_or_name_line_and_field(raw: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text(json.dumps(raw_row()) + "\n" + json.dumps(raw) + "\n", encoding="utf-8")
    try:
        rows = list(read_rows(path, "all"))
    except DataError as error:
        assert str(error).startswith(f"{path}, line 2")
        assert "field" in str(error)
    else:
        assert same(to_source(rows[1]), {key: raw[key] for key in FIELDS})  # loading is lossless
