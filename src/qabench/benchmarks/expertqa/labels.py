"""Attribution labels of claims, by a language model or by the entailment model of the benchmark's AutoAIS."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from threading import Lock

import anyio
from inspect_ai.model import get_model
from inspect_ai.util import collect

from qabench.benchmarks.expertqa.claims import without_marks
from qabench.benchmarks.expertqa.prompts import ENTAILS, verdict
from qabench.errors import InputError
from qabench.models.entailment import MODEL, clean, label_claims
from qabench.tasks.replies import answered, ask_model, chat

ATTRIBUTORS = ("none", "model", "nli")
GRADER = "grader"

Claim = tuple[str, Sequence[str]]
"""The text of a claim, and the pieces of its evidence."""
Labels = tuple[list[str | None], str]
"""The label of each claim, "Y", "N" or None, and the name of the labeler, for signatures."""
Attributor = Callable[[Sequence[Claim]], Awaitable[Labels]]

_lock = Lock()


def attributor(name: str, nli_model: str = MODEL) -> Attributor:
    """The function that labels claims; a claim without evidence is N.

    Args:
        name: "none": claims are not labeled. "model": the model with the role "grader" (by default the one that
            answered) labels them with this project's prompt; these labels are unofficial. "nli": an entailment model,
            see ``qabench.models.entailment``; it needs a lot of memory.
        nli_model: the model for "nli": a name on the Hub, or a folder.

    Raises:
        InputError: an unknown name.
    """
    if name not in ATTRIBUTORS:
        raise InputError(f"unknown attributor {name!r}; allowed: {', '.join(ATTRIBUTORS)}")

    async def nobody(claims: Sequence[Claim]) -> Labels:
        return [None] * len(claims), "none"

    async def nli(claims: Sequence[Claim]) -> Labels:
        return await anyio.to_thread.run_sync(_by_nli, nli_model, list(claims))

    return {"none": nobody, "model": _by_model, "nli": nli}[name]


async def _by_model(claims: Sequence[Claim]) -> Labels:
    grader = get_model(role=GRADER)

    async def label(claim: Claim) -> str | None:
        text, pieces = claim
        if not pieces:
            return "N"
        fields = {"evidence": " ".join(map(clean, pieces)), "claim": without_marks(text)}
        output = await ask_model(grader, chat(ENTAILS.messages(**fields)), temperature=0)
        return verdict(answered(output).text or "")

    return await collect(*map(label, claims)), f"{grader}:{ENTAILS.label}"


def _by_nli(name: str, claims: Sequence[Claim]) -> Labels:
    with _lock:  # samples are scored concurrently, and share one model
        from qabench.models.entailment import shared_entailment

        model = shared_entailment(name)
        return list(label_claims(claims, model)), model.name
