"""FELM's methods: how a model is prompted for the segments with errors, and how its replies are scored.

Source: Chen et al., FELM, NeurIPS 2023 Datasets and Benchmarks (https://arxiv.org/abs/2310.00741); ``eval/eval.py`` of
hkust-nlp/felm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.benchmarks.felm.prompts import (
    AUTO,
    CLAIM_DOMAINS,
    DOMAINS,
    REFERENCES,
    FelmPrompts,
    felm_prompts,
    kind_of,
    numbered,
)
from qabench.benchmarks.felm.scores import (
    FelmClaim,
    ResponseScore,
    check_format,
    of_readings,
    read_claims,
    read_replies,
)
from qabench.errors import InputError
from qabench.llm.client import Answered

PARAMETERS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 100}
CONS_TEMPERATURE = 0.9
NUM_CONS = 5
EXTRACTION: Mapping[str, Any] = {"temperature": 0, "max_tokens": 2000}
NO_REFERENCES = "(none)"  # in a user's template, if there are no references

Messages = tuple[tuple[str, str], ...]
"""(role, text) in order."""


@dataclass(frozen=True, kw_only=True)
class FelmMethod:
    """How a model is prompted, and how its replies are read; see ``felm_method``."""

    method: str
    prompts: FelmPrompts
    parameters: Mapping[str, Any]
    domains: tuple[str, ...]
    claims: bool = False
    samples: int = 1
    official_quirks: bool = False
    reply_format: str = "answer"

    @property
    def read_as(self) -> str:
        """Return the format in which replies are read: the authors' script reads cot-cons after "Answer: " always."""
        return "answer" if self.method == "cot-cons" else self.reply_format

    def fields(self) -> dict[str, object]:
        """Return everything that verdicts depend on except data, model and parameters, for signatures."""
        shows = self.method in REFERENCES and not self.official_quirks
        sampled, vicuna = self.method == "cot-cons", self.reply_format == "vicuna"
        return {
            "method": self.method,
            "by": "claims" if self.claims else "segments",
            "samples": self.samples if sampled else None,
            "prompt": self.prompts.label,
            "shown": f"reference {REFERENCES[self.method]}" if shows else None,
            "suffix": "none" if vicuna and not self.official_quirks else None,
            "sampled_domains": self.domains if sampled else None,
            "replies": self.read_as,
        }

    def generated_with(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the generation options of a call as fields of a signature.

        The temperature of cot-cons has another name if its official value is different, which it is not for Vicuna.
        """
        names = {"temperature": "sampling_temperature"} if self.parameters["temperature"] else {}
        return {names.get(name, name): value for name, value in options.items()}

    def by_claims(self, row: Mapping[str, Any]) -> bool:
        """Return whether this response is judged by its claims."""
        return self.claims and row["domain"] in CLAIM_DOMAINS

    def extraction_messages(self, row: Mapping[str, Any]) -> Messages:
        """Return the messages that ask for a response's claims."""
        texts = {"question": row["prompt"], "segments": numbered(row["segmented_response"])}
        return self.prompts.extraction[row["domain"]].messages(**texts)

    def messages(self, row: Mapping[str, Any], claims: Sequence[FelmClaim] | None = None) -> Messages:
        """Return the messages that ask for verdicts on a response, or on its claims (cot-cons: in each sample)."""
        references = row["ref_contents"] if self.method == "content" else row["ref"]
        # The authors' script uses the prompt that mentions references whether or not there are any.
        kind = kind_of(self.method, row["domain"], self.official_quirks or bool(references))
        prompts = self.prompts.verdicts if claims is None else self.prompts.claim_verdicts
        return prompts[row["domain"], kind].messages(
            question=row["prompt"],
            segments=numbered(row["segmented_response"] if claims is None else [claim.text for claim in claims]),
            references="\n".join([] if self.official_quirks else references) or NO_REFERENCES,
        )


def felm_method(
    method: str,
    *,
    claims: bool = False,
    prompt: str | Path = AUTO,
    domains: Sequence[str] = DOMAINS,
    num_cons: int = NUM_CONS,
    official_quirks: bool = False,
    reply_format: str = "answer",
) -> FelmMethod:
    """Return the method that the arguments of the task ``felm`` describe. Raises InputError for a wrong one."""
    if num_cons < 1:
        raise InputError(f"num_cons is {num_cons}; it must be at least 1")
    check_format(reply_format)
    sampled, vicuna = method == "cot-cons", reply_format == "vicuna"
    return FelmMethod(
        method=method,
        prompts=felm_prompts(
            method, claims, prompt, shows_references=not official_quirks, for_vicuna=official_quirks and vicuna
        ),
        # The authors' script decodes Vicuna greedily in every method.
        parameters={**PARAMETERS, **({"temperature": CONS_TEMPERATURE} if sampled and not vicuna else {})},
        domains=tuple(domains),
        claims=claims,
        samples=num_cons if sampled else 1,
        official_quirks=official_quirks,
        reply_format=reply_format,
    )


def claims_in(row: Mapping[str, Any], reply: Answered) -> tuple[tuple[FelmClaim, ...], str | None]:
    """Return the claims of a response in a reply; or (), and the reason."""
    if reply.text is None:
        return (), f"its claims: {reply.reason}"
    if reply.cut_off:  # the claims of the last segments would be missing
        return (), "its claims: the reply was cut off"
    claims = read_claims(reply.text, len(row["segmented_response"]))
    return claims, None if claims else f"its claims: none in the reply {reply.text!r:.80}"


def judged(
    row: Mapping[str, Any],
    replies: Sequence[Answered],
    reply_format: str = "answer",
    claims: Sequence[FelmClaim] | None = None,
) -> tuple[ResponseScore, list[str]]:
    """Return the score of one response from its replies, one per sample, and why replies have no verdict.

    A reply without text counts as "all segments are correct". See ``read_replies`` for ``claims``.
    """
    readings = read_replies([reply.text for reply in replies], len(row["labels"]), reply_format, claims)
    reasons = [
        reply.reason or f"no verdict in the reply{' (it was cut off)' * reply.cut_off} {reply.text!r:.80}"
        for reply, reading in zip(replies, readings, strict=True)
        if reading.readable is None
    ]
    return of_readings(row["labels"], readings), reasons
