"""Fault campaigns, and random inputs for every reader and parser; ``README.md`` says how to run
longer ones.
"""

import os
import warnings

import fault_disks
import fault_files
import fault_kills
import fault_servers
import pytest
from fault_harness import Campaign, run
from fuzz import fuzz
from fuzz_targets import TARGETS

CASES = int(os.environ.get("CASES", "0"))  # of a campaign; 0: those of CI
SEED = int(os.environ.get("SEED", "0"))
INPUTS = int(os.environ.get("INPUTS", "100000"))
MODULES = (fault_disks, fault_files, fault_kills, fault_servers)
CAMPAIGNS = [campaign for module in MODULES for campaign in module.CAMPAIGNS]


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda campaign: campaign.name)
def test_campaign(campaign: Campaign) -> None:
    if missing := campaign.needs():
        pytest.skip(missing)
    observed, wrong = run(campaign, CASES or campaign.short, SEED)
    print(f"{campaign.name}: expected {campaign.expected}, observed {dict(observed)}")
    assert wrong == []


def test_random_inputs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts, problems = fuzz(INPUTS, minutes=5 + INPUTS / 1e6, seed=SEED + 1)
    print(f"{counts.total():,} inputs")
    assert problems == [] and len(counts) == len(TARGETS)
