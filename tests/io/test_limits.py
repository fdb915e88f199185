"""Answers as JSON text; deep, long and self-referring documents are an error, never a
RecursionError.
"""

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench.benchmarks.fanoutqa.accuracy import strings_of
from qabench.data import answers
from qabench.data.answers import dumps, loads
from qabench.data.predictions import read_predictions
from qabench.data.rows import read_json_list
from qabench.errors import InputError
from qabench.io.limits import MAX_DEPTH, TooLarge, check_depth, json_of, toml_of, yaml_of
from qabench.llm.exchange import UnreadableReply, read_reply
from qabench.prompts.prompt import read_prompt

DEEP = ['{"a":' * 5000 + "1" + "}" * 5000, "[" * 100_000, "[" * 600 + "]" * 600, '{"a":' * 101 + "1" + "}" * 101]
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
TOO_DEEP = "nested deeper than 100 levels"
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists)
UNEQUAL = [
    ({1}, "the answer cannot be written as JSON: .1. is a set"),
    ({"a": [{1: "x", "1": "y"}]}, "two keys are equal in JSON, such as 1 and"),
    ({"a": np.array([{"b": 1}, {1: "x", "1": "y"}])}, "two keys are equal in JSON, such as 1 and"),
    (["a", ({"b": {True: 1, "true": 2}},)], "two keys are equal in JSON, such as 1 and"),
    (10**5000, "the answer cannot be written as JSON: Exceeds the limit"),
    ("\ud83d\ude00", "encoded as two surrogates"),
]
TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too
PRIMITIVES = TEXT | st.integers() | st.floats() | st.booleans() | st.sampled_from(["1998", "true", "null", '"', "[1]"])
ANSWERS = st.recursive(PRIMITIVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


@pytest.mark.parametrize("text", DEEP)
def test_deep_json_is_one_error(text: str, tmp_path: Path) -> None:
    # What other tests left is collected now, and not where Python's stack is full: a finalizer would fail there.
    gc.collect()
    for data in (text, text.encode()):
        with pytest.raises(ValueError, match=TOO_DEEP):
            json_of(data)
    with pytest.raises(InputError, match=f"not the JSON text of an answer: .*{TOO_DEEP}"):
        loads(text)
    with pytest.raises(UnreadableReply, match=f"the reply is too large: {TOO_DEEP}"):
        read_reply(text)
    path = tmp_path / "rows.json"
    path.write_text(f"[{text}]")
    with pytest.raises(InputError, match=f"rows.json: not JSON .{TOO_DEEP}"):
        list(read_json_list(path))


def test_a_deep_answer_is_a_bad_line(tmp_path: Path) -> None:
    good = {"id": "a", "answer": [[1]]}
    lines = [json.dumps(good), f'{{"id": "b", "answer": {DEEP[2]}}}', f'{{"id": "c", "answer": {DEEP[0]}']
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(lines))
    found = read_predictions(path)
    assert [row.id for row in found.rows] == ["a"] and [line.line for line in found.bad_lines] == [2, 3]


def test_the_limit_is_exact() -> None:
    assert json_of("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(TooLarge, match="nested deeper than 100 levels"):
        json_of("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    with pytest.raises(TooLarge, match="11 characters, more than 10"):
        json_of('"123456789"', 10)
    assert json_of('"' + "[" * 5000 + '"') == "[" * 5000
    with pytest.raises(json.JSONDecodeError, match="Unterminated string"):
        json_of('["' + "[" * 5000)


@given(JSON)
def test_other_json_is_unchanged(value: Any) -> None:
    assert json_of(json.dumps(value)) == value


@pytest.mark.parametrize("text", ["[" * 5000, "- " * 5000 + "x", BOMB, "&a [*a]", "{" * 1000])
def test_deep_yaml_and_bombs(text: str) -> None:
    with pytest.raises(ValueError, match="more than 1,000,000 values" if text == BOMB else TOO_DEEP):
        yaml_of(text)


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000, "a = " + "[" * 200 + "]" * 200, "a." * 100_000 + "a = 1"])
def test_deep_toml(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=TOO_DEEP):
        toml_of(text)
    path = tmp_path / "prompt.toml"
    path.write_text(text)
    with pytest.raises(InputError, match="must be UTF-8 text, or TOML"):
        read_prompt(path)


def cyclic() -> Any:
    value: list[Any] = []
    value.append({"a": value})
    return value


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("make", [cyclic, lambda: nested(101), lambda: nested(50_000)])
def test_cycles_and_deep_answers_are_refused(make: Callable[[], Any]) -> None:
    value = make()
    with pytest.raises(InputError, match=TOO_DEEP):
        dumps(value)
    with pytest.raises(TooLarge, match=TOO_DEEP):
        check_depth(value)
    # else freeing it recurses, too
    while isinstance(value, list) and value and isinstance(value[0], list):
        value = value.pop()


@pytest.mark.parametrize(("answer", "message"), UNEQUAL, ids=["type", "keys", "array", "tuple", "digits", "pair"])
def test_values_that_json_would_change_are_rejected(answer: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        dumps(answer)


def test_yaml_merge_keys_are_refused() -> None:
    lines = ["a0: &a0 {k: 1}\n", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 40)}]}}\n" for n in range(1, 9))]
    with pytest.raises(ValueError, match=r"merge keys \(<<\) are not allowed"):
        yaml_of("".join(lines))
    for tagged in ("!!merge x", "!<tag:yaml.org,2002:me%72ge> x"):
        with pytest.raises(ValueError, match="merge keys"):
            yaml_of(f"a: {{{tagged}: {{k: 1}}}}")
    assert yaml_of("a: &x [1]\nb: *x\nc: a << b\n=: 1") == {"a": [1], "b": [1], "c": "a << b", "=": 1}


@given(ANSWERS)
def test_json_text_round_trips_types_and_digits(answer: object) -> None:
    text = answers.dumps(answer)
    text.encode("utf-8")  # fits into Arrow
    assert repr(answers.loads(text)) == repr(answer)  # types, digits and order


def test_numpy_scalars_and_odd_keys_are_converted() -> None:
    given_answer = {"a": np.float64(1.14), 3: np.int64(7), 1.5: np.bool_(False), "b": np.str_("x")}
    assert answers.loads(answers.dumps(given_answer)) == {"a": 1.14, "3": 7, "1.5": False, "b": "x"}


@pytest.mark.parametrize("bad", [{1, 2}, object(), b"x", {"a": [{"b": 1j}]}, {(1,): 2}])
def test_other_types_are_rejected_by_name(bad: object) -> None:
    with pytest.raises(InputError, match=r"the answer cannot be written as JSON: .*; allowed: dict, list, str, int"):
        answers.dumps(bad)


def test_text_of_and_strings_of() -> None:
    answer = {"France": ["Paris", True], "Peru": {"Lima": 1.5}}
    assert answers.text_of(answer) == "France - Paris\nyes\nPeru - Lima - 1.5"
    assert list(strings_of(answer)) == ["France", "Peru", "Paris", "yes", "Lima", "1.5"]
    assert [answers.text_of(a) for a in (None, answers.UNANSWERED, False, 7)] == ["", "", "no", "7"]
