"""Batches of inputs of similar length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench.errors import InputError
from qabench.models.loader import buckets


@given(st.lists(st.integers(0, 50)), st.integers(1, 9))
def test_buckets_hold_each_input_once_with_its_like(lengths: list[int], size: int) -> None:
    batches = buckets(lengths, size)
    order = [i for batch in batches for i in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)
    assert all(len(batch) == size for batch in batches[:-1])
    assert all(0 < len(batch) <= size for batch in batches)


@given(st.lists(st.integers(1, 50)), st.integers(1, 9))
def test_batches_of_short_inputs_are_larger(lengths: list[int], size: int) -> None:
    batches = buckets(lengths, size, longest=50)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) * max(lengths[i] for i in batch) <= size * 50
    assert all(len(batch) >= size for batch in batches[:-1])


def test_ties_stay_in_order_and_a_batch_holds_something() -> None:
    assert buckets([1, 2, 1, 2], 3) == [[1, 3, 0], [2]]
    with pytest.raises(InputError, match="batch_size is 0; allowed: 1 or more"):
        buckets([], 0)
