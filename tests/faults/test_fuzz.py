"""Every reader and parser on random inputs, on hypothesis's, and on all that once broke one."""

from __future__ import annotations

import warnings

import pytest
from fuzz import fuzz
from fuzz_targets import TARGETS, cases, check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

INPUTS = 100_000


@pytest.fixture(autouse=True)
def _no_warnings() -> None:
    warnings.simplefilter("ignore")


@pytest.mark.parametrize(("name", "data"), cases())
def test_what_once_broke_a_target(name: str, data: bytes) -> None:
    check(TARGETS[name], data)


def test_random_inputs() -> None:
    counts, found = fuzz(list(TARGETS), INPUTS, minutes=5, seed=1, keep=False)
    assert found == []
    print(f"{counts.total():,} inputs")
    assert len(counts) == len(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_of_hypothesis(name: str) -> None:
    seeds = list(TARGETS[name].seeds)
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60).map(str.encode)
    near = st.tuples(st.sampled_from(seeds), st.integers(0, 60), text, st.integers(0, 9)).map(
        lambda of: of[0][: of[1]] + of[2] + of[0][of[1] + of[3] :]
    )

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=80) | text | near)
    def run(data: bytes) -> None:
        check(TARGETS[name], data)

    run()
