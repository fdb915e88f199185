"""Claims of a line in any known form, and the errors for others."""

import re
from typing import Any

import pytest

from qabench.benchmarks.expertqa.claim_format import read_claims, without_unreadable_labels
from qabench.errors import InputError

ICE = {"claim": "Ice floats."}


@pytest.mark.parametrize(
    ("fields", "evidence"),
    [
        ({}, []),
        ({"evidence": None}, []),
        ({"evidence": ["a"]}, ["a"]),
        ({"evidence": ["a"], "docs": ["b"]}, ["a"]),
        ({"evidence": [], "docs": ["b"]}, []),
        ({"evidence": None, "docs": ["b"]}, ["b"]),
        ({"evidence": [{"text": "a"}]}, ["a"]),
        ({"attribution": ["of the whole answer"]}, []),
        ({"attribution": ["of the whole answer"], "docs": ["b"]}, ["b"]),
    ],
)
def test_evidence_of_a_claim(fields: dict[str, Any], evidence: list[str]) -> None:
    (claim,) = read_claims([ICE | fields])
    assert claim == {**ICE, **fields, "evidence": evidence}


def test_claims_in_a_cell_are_json() -> None:
    assert read_claims('[{"claim": "Ice floats.", "label": true}]') == [{**ICE, "label": "Y", "evidence": []}]


@pytest.mark.parametrize(
    ("claims", "error"),
    [
        (["Ice floats."], "claims is ['Ice floats.']; allowed: a list of objects with claim, evidence, label"),
        ("no JSON", "claims is 'no JSON'; allowed: a list of objects"),
        ([ICE, {"claim": 3}], "claim 2: its claim is 3; allowed: a string"),
        ([ICE | {"evidence": "x"}], "claim 1: its evidence is 'x'; allowed: a list of strings or of objects"),
        ([ICE | {"evidence": [3]}], "claim 1: its evidence[0] is 3; allowed: a string, or an object"),
        ([ICE | {"label": "maybe"}], "claim 1: its label is 'maybe'; allowed: \"Y\" or \"N\""),
        ([ICE | {"fact_score": True}], "claim 1: its fact_score is True; allowed: a number from 0 to 1, or null"),
        # Evidence is read before the other fields are checked.
        ([{"claim": 3}, ICE | {"evidence": "x"}], "claim 2: its evidence is 'x'"),
    ],
)  # fmt: skip
def test_errors_name_the_claim(claims: Any, error: str) -> None:
    with pytest.raises(InputError, match="^" + re.escape(error)):
        read_claims(claims)


def test_unreadable_labels_count_as_none() -> None:
    claims, remark = without_unreadable_labels([ICE | {"label": "maybe"}, ICE | {"label": "no"}])
    assert [claim["label"] for claim in claims] == [None, "no"]
    assert remark is not None and remark.startswith("a claim has the label 'maybe', which counts as no label")
    assert without_unreadable_labels([3]) == ([3], None)
