"""A short version of every fault campaign, and every reader and parser on random inputs."""

from __future__ import annotations

import warnings

import pytest
from fault_harness import run
from fuzz import fuzz
from fuzz_targets import TARGETS
from run import campaigns

INPUTS = 100_000


@pytest.mark.parametrize("name", campaigns())
def test_campaign(name: str) -> None:
    campaign = campaigns()[name]
    if missing := campaign.needs():
        pytest.skip(missing)
    result = run(campaign, campaign.short)
    assert result.wrong == []
    assert result.tries == campaign.short


def test_random_inputs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts, problems = fuzz(list(TARGETS), INPUTS, minutes=5, seed=1)
    assert problems == []
    print(f"{counts.total():,} inputs")
    assert len(counts) == len(TARGETS)
