"""The official value of every field of FELM's signatures; see ``qabench.official``.

Source: ``eval/eval.py`` of hkust-nlp/felm, which asks the models and computes the published scores.
"""

from __future__ import annotations

from collections.abc import Mapping

from qabench.official import IRRELEVANT, Declaration, Field
from qabench.signature import signature

SCORE = "felm_factuality"
CONFIGS = ("all", "wk", "science", "math", "reasoning", "writing_rec")
ALL_ROWS = "0dec248e1960"  # eval/all.jsonl


def signatures(fields: Mapping[str, object]) -> dict[str, str]:
    """The signatures of an evaluation, by family: of the official scores, and of those of readable replies alone.

    Args:
        fields: everything else that the scores depend on.
    """
    families = {"felm": "all_correct", "felm_readable": "left_out"}
    return {
        family: signature(SCORE, benchmark="felm", unparsed=unparsed, **fields) for family, unparsed in families.items()
    }


DECLARATIONS: Mapping[str, Declaration] = {
    SCORE: {
        "benchmark": Field(("felm",)),
        "config": Field(CONFIGS),
        "data": Field((ALL_ROWS,), "responses: another file than the authors' ({value})"),
        "unparsed": Field(
            ("all_correct",),
            "responses without a readable reply are left out; officially all their segments count as correct",
        ),
        "replies": IRRELEVANT,
        "without_prediction": Field((), "{value} responses have no usable prediction", absent=True),
    }
}
