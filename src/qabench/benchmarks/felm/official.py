"""The official value of every field of FELM's signatures (see ``qabench.evaluation.signature``).

Source: ``eval/eval.py`` of hkust-nlp/felm, which prompts the models and computes the published
scores.
"""

from __future__ import annotations

from collections.abc import Mapping

from qabench.benchmarks import benchmark
from qabench.benchmarks.felm.scores import REPLY_FORMATS
from qabench.benchmarks.published import published
from qabench.benchmarks.reproduction import Reproduction, data_checks
from qabench.evaluation.signature import IRRELEVANT, Declaration, Field, signature

SCORE = "felm_factuality"
LABELS = {  # the digest of the labels of each config in the dataset's order, as in the metric
    "all": "122139e80f37",
    "wk": "4abadae8e0df",
    "science": "63b7fd3b75a8",
    "math": "61a89266cc7e",
    "reasoning": "118e5464b484",
    "writing_rec": "23167290d6e3",
}
DATA = "0dec248e1960"  # eval/all.jsonl
# See FelmPrompts.label. Of raw, cot and cot-cons, link, content.
PROMPTS = (
    "official-df8b848cb829",
    "official-be83ad69b42c",
    "official-c89a1b0a8d68",
    "official-e9ee9b75fa2b",
    # Link and content with references shown.
    "official-2adb9bb5d092",
    "official-c60367569484",
    # For Vicuna.
    "official-eeb8ece632d1",
    "official-de3a464df032",
    "official-a93e6c52ac51",
    "official-dcc0860a834a",
    # By claims.
    "official-441901c67ebd",
    "official-d5f6245e0b48",
    "official-2beacdd5f6c9",
    "official-b5c9211b4dfc",
    # Link and content with references shown.
    "official-61260d0d90f3",
    "official-5dda9bc74fe4",
    # By claims, for Vicuna.
    "official-ac01c4ce44f5",
    "official-f59d9177f58a",
    "official-320d2d5dbabb",
    "official-ef9d6910530d",
)
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


def misread(reply_format: str, evaluator: str | None, sampled: bool = False) -> str | None:
    """Return the field ``system``: an evaluator whose replies the authors' script reads in another format, or None.

    The script reads ids anywhere in a reply, and ALL_CORRECT with a backslash, only for Vicuna.
    ``sampled`` replies (cot-cons) are read after "Answer: " for every model.
    """
    if sampled or reply_format not in REPLY_FORMATS:
        return None
    is_vicuna = "vicuna" in (evaluator or "").lower()
    return None if is_vicuna == (reply_format == "vicuna") else evaluator or NOT_NAMED


def _misread_sentence(value: str) -> str:
    if "vicuna" in value.lower():
        return f'the replies of {value} are read after "Answer: "; the authors read ids anywhere in Vicuna\'s replies'
    if value == NOT_NAMED:
        return "the replies are read as Vicuna's, but the evaluator is not named (evaluator=vicuna-33b names it)"
    return f"the replies of {value} are read as Vicuna's"


def _never(says: str) -> Field:
    """Return a field that official scores do not have."""
    return Field((), says, absent=True)


# Fields of the generation may be absent, because it is unknown for replies and verdicts from a
# file.
DECLARATIONS: Mapping[str, Declaration] = {
    SCORE: {
        "unparsed": Field(
            ("all_correct",),
            "responses without a readable reply are left out (officially, all their segments count as correct)",
        ),
        "replies": Field((*REPLY_FORMATS, "verdicts")),
        # The data.
        "benchmark": Field(("felm",), absent=True),
        "config": Field(tuple(LABELS), "config: {value} is not data of the authors", absent=True),
        "data": Field((DATA,), "data: {value} is not the authors' file", absent=True),
        "references": Field(
            tuple(LABELS.values()),
            "references: not the labels of a whole config in the dataset's order",
            absent=True,
        ),
        "domains": IRRELEVANT,  # only for scores by domain
        # How the model was prompted.
        "evaluator": IRRELEVANT,
        "system": Field((), _misread_sentence, absent=True),
        "method": Field(("raw", "cot", "cot-cons", "link", "content"), absent=True),
        "by": Field(("segments",), "{value} are judged instead of segments", absent=True),
        # The authors do not say how many samples they took.
        "samples": Field(
            lambda value: value != "1",
            "samples: {value}; the method takes the majority of several",
            absent=True,
        ),
        # At temperature 0 it has no effect.
        "seed": Field(
            (),
            "the seed {value} was sent with all samples; the authors send none",
            absent=True,
            unless="temperature",
        ),
        "sampled_domains": Field(
            ("science",),
            "cot-cons in {value}: the authors' script has a prompt for it only in science",
            absent=True,
        ),
        "prompt": Field(PROMPTS, "prompt: {value} instead of the authors'", absent=True),
        "shown": _never("{value} are shown; the authors' script never shows any"),
        "suffix": _never("the prompt lacks the authors' last lines for Vicuna"),
        "interface": Field(
            ("completion",), "Vicuna was prompted in a chat, not by plain completion", absent=True
        ),
        "temperature": Field(("0", "0.0"), "temperature: {value} instead of 0", absent=True),
        "sampling_temperature": Field(("0.9",), absent=True),
        "max_tokens": Field(("100",), absent=True),
        "system_message": _never("a system message was added"),
    }
}


def reproduce() -> Reproduction:
    """Compare the statistics of the data.

    The scores of evaluators need their replies, which are not public.
    """
    reproduction = data_checks(benchmark("felm"))
    systems = ", ".join(dict.fromkeys(score.system for score in published("felm")))
    reproduction.notes.append(
        f"The scores of {systems} are not computed: the authors did not publish the replies. `qabench run felm` runs a "
        "model with the authors' prompts."
    )
    return reproduction
