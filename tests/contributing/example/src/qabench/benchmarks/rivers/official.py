"""The official values of the fields of Rivers' signatures."""

from __future__ import annotations

from collections.abc import Mapping

from qabench.evaluation.official import IRRELEVANT, Declaration, Field

DECLARATIONS: Mapping[str, Declaration] = {
    "river_match": {
        "references": IRRELEVANT,
        "data": IRRELEVANT,
        "case": Field(("ignored",), "case: {value} instead of {official}"),
        "prompt": IRRELEVANT,
        "model": IRRELEVANT,
    },
}
