import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench import answers
from qabench.benchmarks.fanoutqa.accuracy import strings_of
from qabench.errors import InputError

TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too
PRIMITIVES = TEXT | st.integers() | st.floats() | st.booleans() | st.sampled_from(["1998", "true", "null", '"', "[1]"])
ANSWERS = st.recursive(PRIMITIVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


@given(ANSWERS)
def test_json_text_round_trips_types_and_digits(answer: object) -> None:
    text = answers.dumps(answer)
    text.encode("utf-8")  # fits into Arrow
    assert repr(answers.loads(text)) == repr(answer)  # types, digits and order


def test_numpy_scalars_and_odd_keys_are_converted() -> None:
    given_answer = {True: np.float64(1.14), 3: np.int64(7), 1.5: np.bool_(False), None: np.str_("x")}
    assert answers.loads(answers.dumps(given_answer)) == {"yes": 1.14, "3": 7, "1.5": False, "None": "x"}


@pytest.mark.parametrize("bad", [(1, 2), {1, 2}, object(), b"x", {"a": [{"b": 1j}]}, {(1,): 2}])
def test_other_types_are_rejected_by_name(bad: object) -> None:
    with pytest.raises(InputError, match=r"answer.* type|answer.* is a .*; allowed: dict, list, str, int, float, bool"):
        answers.dumps(bad)


def test_text_of_and_strings_of() -> None:
    answer = {"France": ["Paris", True], "Peru": {"Lima": 1.5}}
    assert answers.text_of(answer) == "France - Paris\nyes\nPeru - Lima - 1.5"
    assert list(strings_of(answer)) == ["France", "Peru", "Paris", "yes", "Lima", "1.5"]
    assert [answers.text_of(a) for a in (None, answers.UNANSWERED, False, 7)] == ["", "", "no", "7"]
