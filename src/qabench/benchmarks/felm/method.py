"""FELM's methods of asking a model for the wrong segments of a response, and what its replies come to.

Nothing here calls a model: ``evaluators`` does with this project's client, ``tasks`` with Inspect AI.
Source: Chen et al., FELM, NeurIPS 2023 Datasets and Benchmarks (https://arxiv.org/abs/2310.00741); ``eval/eval.py`` of
hkust-nlp/felm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.benchmarks.felm.claims import FelmClaim, as_reply, numbered, read_claims, segment_verdicts, verdicts_of
from qabench.benchmarks.felm.prompts import CLAIM_DOMAINS, DOMAINS, FelmPrompts, felm_prompts, kind_of
from qabench.benchmarks.felm.results import FelmResponse
from qabench.errors import InputError
from qabench.llm.caller import Answered, merged
from qabench.scoring.felm_replies import REPLY_FORMATS

PARAMETERS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 100}
CONS_TEMPERATURE = 0.9
NUM_CONS = 5
EXTRACTION: Mapping[str, Any] = {"temperature": 0, "max_tokens": 2000}
NO_REFERENCES = "(none)"  # what a user's template shows where there are none
FIELDS = ("index", "domain", "prompt", "segmented_response", "labels", "ref", "ref_contents")

Messages = tuple[tuple[str, str], ...]
"""(role, text) in order."""


@dataclass(frozen=True, kw_only=True)
class FelmMethod:
    """How a model is asked, and how its replies are read; see ``felm_method``."""

    method: str
    prompts: FelmPrompts
    parameters: Mapping[str, Any]
    claims: bool = False
    samples: int = 1
    official_quirks: bool = False
    reply_format: str = "answer"

    def fields(self) -> dict[str, object]:
        """What the verdicts depend on besides the data and the model, for ``qabench.signature.signature``."""
        return {
            "method": self.method,
            "by": "claims" if self.claims else "segments",
            "samples": self.samples if self.method == "cot-cons" else None,
            "prompt": self.prompts.label,
            **self.parameters,
            "replies": self.reply_format,
            "official_quirks": self.official_quirks or None,
        }

    def by_claims(self, row: Mapping[str, Any]) -> bool:
        """Whether this response is judged by its claims."""
        return self.claims and row["domain"] in CLAIM_DOMAINS

    def extraction_messages(self, row: Mapping[str, Any]) -> Messages:
        """What asks for a response's claims."""
        texts = {"question": row["prompt"], "segments": numbered(row["segmented_response"])}
        return self.prompts.extraction[row["domain"]].messages(**texts)

    def messages(self, row: Mapping[str, Any], claims: Sequence[FelmClaim] | None) -> Messages:
        """What asks for verdicts on a response; of cot-cons, for each of its samples."""
        references = row["ref_contents"] if self.method == "content" else row["ref"]
        # Upstream takes the prompt that speaks of references whether there are any or not.
        kind = kind_of(self.method, row["domain"], self.official_quirks or bool(references))
        prompts = self.prompts.verdicts if claims is None else self.prompts.claim_verdicts
        shown = [] if self.official_quirks else references
        return prompts[row["domain"], kind].messages(
            question=row["prompt"],
            segments=numbered(row["segmented_response"] if claims is None else [claim.text for claim in claims]),
            references="\n".join(shown) or NO_REFERENCES,
        )


def felm_method(
    method: str,
    *,
    claims: bool = False,
    prompt: str | Path = "own",
    official_text: Callable[[str], str] | None = None,
    num_cons: int = NUM_CONS,
    official_quirks: bool = False,
    reply_format: str = "answer",
    parameters: Mapping[str, Any] | None = None,
) -> FelmMethod:
    """The method that arguments describe; ``felm_evaluator`` says what they are.

    Raises:
        InputError: an option that is unknown or out of range, or a prompt that cannot be used.
    """
    if num_cons < 1:
        raise InputError(f"num_cons is {num_cons}; it must be 1 or more")
    if reply_format not in REPLY_FORMATS:
        raise InputError(f"unknown reply_format {reply_format!r}; allowed: {', '.join(REPLY_FORMATS)}")
    sampled = method == "cot-cons"
    return FelmMethod(
        method=method,
        prompts=felm_prompts(method, claims, prompt, official_text, shows_references=not official_quirks),
        parameters=merged({**PARAMETERS, **({"temperature": CONS_TEMPERATURE} if sampled else {})}, parameters),
        claims=claims,
        samples=num_cons if sampled else 1,
        official_quirks=official_quirks,
        reply_format=reply_format,
    )


def claims_in(row: Mapping[str, Any], reply: Answered) -> tuple[tuple[FelmClaim, ...], str | None]:
    """The claims of a response that a reply lists, or none and why."""
    if reply.text is None:
        return (), f"its claims: {reply.reason}"
    if reply.cut_off:  # the claims of the last segments would be missing
        return (), "its claims: the reply was cut off"
    claims = read_claims(reply.text, len(row["segmented_response"]))
    return claims, None if claims else f"its claims: none in the reply {reply.text!r:.80}"


def felm_response(
    row: Mapping[str, Any],
    claims: Sequence[FelmClaim] | None,
    replies: Sequence[Answered],
    reply_format: str = "answer",
    official_quirks: bool = False,
) -> FelmResponse:
    """What replies, one a sample, say of a response's segments, or of the claims that were judged in their place."""
    segments = len(row["segmented_response"])
    items = segments if claims is None else len(claims)
    readable: list[str | None] = []
    reasons = []
    for reply in replies:
        verdicts = None
        if reply.text is not None:
            verdicts = verdicts_of(reply.text, items, reply_format, official_quirks)
        if verdicts is None:
            cut = " (it was cut off)" * reply.cut_off
            reasons.append(reply.reason or f"no verdict in the reply{cut} {reply.text!r:.80}")
        elif claims is not None:
            verdicts = segment_verdicts(verdicts, claims, segments)
        readable.append(None if reply.text is None else as_reply(verdicts))
    texts = tuple(reply.text for reply in replies)
    found = None if claims is None else tuple(claims)
    return FelmResponse(
        row["index"], row["domain"], tuple(row["labels"]), texts, tuple(readable), tuple(reasons), found
    )


def check_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Raises InputError where there are no rows, or one is not as the dataset has it."""
    if not rows:
        raise InputError("there are no responses to evaluate")
    for i, row in enumerate(rows):
        missing = [name for name in FIELDS if name not in row]
        if missing or row["domain"] not in DOMAINS or len(row["labels"]) != len(row["segmented_response"]):
            what = f"has no {', '.join(missing)}" if missing else "has an unknown domain, or labels that do not fit"
            raise InputError(f"rows[{i}] {what}; give rows as the dataset felm has them")
