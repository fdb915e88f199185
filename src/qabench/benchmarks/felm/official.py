"""The official value of every field of FELM's signatures (see ``qabench.evaluation.signature``).

Source: ``eval/eval.py`` of hkust-nlp/felm, which prompts the models and computes the published
scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qabench.benchmarks.felm.scores import REPLY_FORMATS
from qabench.benchmarks.reproduction import Reproduction
from qabench.evaluation.signature import Declaration, read_declarations, signature
from qabench.loading_scripts.published import shipped_scores

SCORE = "felm_factuality"
NOT_NAMED = "not named"


def signatures(fields: Mapping[str, object]) -> dict[str, str]:
    """Return the signatures of an evaluation by group: of the official scores, and of the scores of
    readable replies.
    """
    unparsed = {"felm": "all_correct", "felm_readable": "left_out"}
    return {
        group: signature(SCORE, **{"benchmark": "felm", "unparsed": counted, **fields})
        for group, counted in unparsed.items()
    }


def names_vicuna(model: str) -> bool:
    """Return whether a model's name, without its organization and provider, begins with "vicuna"."""
    return model.lower().rpartition("/")[2].startswith("vicuna")


def misread(reply_format: str, evaluator: str | None, sampled: bool = False) -> str | None:
    """Return the field ``system``: an evaluator whose replies the authors' script reads in another format, or None.

    The script reads ids anywhere in a reply, and ALL_CORRECT with a backslash, only for Vicuna.
    ``sampled`` replies (cot-cons) are read after "Answer: " for every model.
    """
    if sampled or reply_format not in REPLY_FORMATS:
        return None
    is_vicuna = names_vicuna(evaluator or "")
    return None if is_vicuna == (reply_format == "vicuna") else evaluator or NOT_NAMED


def _misread_sentence(value: str) -> str:
    if names_vicuna(value):
        return f'the replies of {value} are read after "Answer: "; the authors read ids anywhere in Vicuna\'s replies'
    if value == NOT_NAMED:
        return "the replies are read as Vicuna's, but the evaluator is not named (evaluator=vicuna-33b names it)"
    return f"the replies of {value} are read as Vicuna's"


# The official prompts (see FelmPrompts.label) are of raw, cot and cot-cons, link, and content, of link
# and content with references shown, and all but the last two for Vicuna. Then the same by claims.
# Fields of the generation may be absent, because it is unknown for replies and verdicts from a file.
# The authors do not say how many samples they took.
_FIELDS = read_declarations(
    Path(__file__).with_name("official.json"), {"samples": lambda value: value != "1"}
)[SCORE]
DECLARATIONS: Mapping[str, Declaration] = {
    SCORE: {**_FIELDS, "system": replace(_FIELDS["system"], says=_misread_sentence)}
}


def reproduce(reproduction: Reproduction) -> Reproduction:
    """Add to the statistics of the data that the scores of evaluators need their replies, which are not public."""
    systems = ", ".join(dict.fromkeys(score.system for score in shipped_scores("felm")))
    reproduction.notes.append(
        f"The scores of {systems} are not computed: the authors did not publish the replies. `qabench run felm` runs a "
        "model with the authors' prompts."
    )
    return reproduction
