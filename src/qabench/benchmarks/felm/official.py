"""The official value of every field of FELM's signatures (see ``qabench.evaluation.signature``).

Source: ``eval/eval.py`` of hkust-nlp/felm, which prompts the models and computes the published
scores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qabench.benchmarks.felm.scores import REPLY_FORMATS
from qabench.evaluation.signature import Declaration, read_declarations, signature

SCORE = "felm_factuality"
NOT_NAMED = "not named"


def signatures(fields: Mapping[str, object]) -> dict[str, str]:
    """Return the signatures of the official scores, and of the scores of readable replies."""
    signatures = {}
    # The groups felm and felm_readable only differ in how replies without a verdict count.
    for group, unparsed in (("felm", "all_correct"), ("felm_readable", "left_out")):
        values = {"benchmark": "felm", "unparsed": unparsed, **fields}
        signatures[group] = signature(SCORE, **values)
    return signatures


def names_vicuna(model: str) -> bool:
    """Tell whether a model's name, without its organization and provider, begins with "vicuna"."""
    return model.lower().rpartition("/")[2].startswith("vicuna")


def misread(reply_format: str, evaluator: str | None, sampled: bool = False) -> str | None:
    """Return the evaluator if the authors' script reads its replies in another format, else None.

    The result is the field ``system`` of signatures. Only in Vicuna's replies does the script read
    ids anywhere, and ALL_CORRECT with a backslash. If replies are ``sampled`` (cot-cons), it reads
    ids after "Answer: " for every model.
    """
    if sampled or reply_format not in REPLY_FORMATS:
        return None
    is_vicuna = names_vicuna(evaluator or "")
    if is_vicuna == (reply_format == "vicuna"):
        return None
    return evaluator or NOT_NAMED


def _misread_sentence(value: str) -> str:
    if names_vicuna(value):
        return f'the replies of {value} are read after "Answer: "; the authors read ids anywhere in Vicuna\'s replies'
    if value == NOT_NAMED:
        return "the replies are read as Vicuna's, but the evaluator is not named (evaluator=vicuna-33b names it)"
    return f"the replies of {value} are read as Vicuna's"


PROMPTS: Mapping[str, str] = json.loads(
    Path(__file__).with_name("official_prompts.json").read_text(encoding="utf-8")
)
"""The labels of the official prompts (``FelmPrompts.label``) by variant.

A variant names what is judged, the evaluator if it is Vicuna, and the method. cot-cons uses the
prompts of cot. Prompts with "references shown" are those that the authors' script would send if it
did not compare the method with wrong names (see ``FelmMethod.official_quirks``).
"""

# ``official.json`` lets fields of the generation be absent, because it is unknown for a file of
# replies or verdicts. Any number of samples above 1 is official, because the authors do not say how
# many they took.
_FIELDS = read_declarations(
    Path(__file__).with_name("official.json"),
    {"samples": lambda value: value != "1", "prompt": tuple(PROMPTS.values())},
)[SCORE]
DECLARATIONS: Mapping[str, Declaration] = {
    SCORE: {**_FIELDS, "system": replace(_FIELDS["system"], says=_misread_sentence)}
}
