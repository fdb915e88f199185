"""A short version of every fault campaign."""

from __future__ import annotations

import pytest
from fault_harness import run
from run import campaigns


@pytest.mark.parametrize("name", campaigns())
def test_campaign(name: str) -> None:
    campaign = campaigns()[name]
    if missing := campaign.needs():
        pytest.skip(missing)
    result = run(campaign, campaign.short)
    assert result.wrong == []
    assert result.tries == campaign.short
