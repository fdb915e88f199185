"""The requests to models for fact scores, and labels that identify how scores were computed."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabench.benchmarks.expertqa import prompts
from qabench.benchmarks.expertqa.claim_lines import ClaimsLine
from qabench.benchmarks.expertqa.entities import load_entities
from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Caller, Prices
from qabench.llm.client import ChatClient
from qabench.llm.exchange import ChatRequest
from qabench.llm.routing import client_for

# The authors retrieve five passages, but cut the evidence here, so that the prompt shows three.
EVIDENCE_ENDS_AT = "Passage ID 4"
UNSTATED = "unstated"
# The authors' parameters of both requests.
BREAK_DOWN: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 512}
VERDICT: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 2048}


@dataclass(frozen=True)
class FactScorer:
    """The models that split claims into atomic claims and judge these, with the authors' prompts.

    Attributes:
        caller: the model that judges. The authors used gpt-3.5-turbo.
        atomic_model: the model that breaks claims down, at the same endpoint. The authors'
            text-davinci-003 was withdrawn.
        sampling: generation parameters for all calls, which override the authors'.
        atomic_prices: the prices of ``atomic_model``. None means the prices of ``caller``.
        cached: whether replies are read from and written to the user's cache.
    """

    caller: Caller
    atomic_model: str
    sampling: Mapping[str, Any] = field(default_factory=dict)
    atomic_prices: Prices | None = None
    cached: bool = True

    def label(self, lines: Sequence[ClaimsLine]) -> str:
        """Return a label of everything that fact scores depend on, except the text of the lines.

        Atomic claims that a line already has do not come from ``atomic_model``, and the label says
        so.
        """
        label = f"{self.caller.model}/{prompts.verdict_label()}"
        for name, value in sorted(self.sampling.items()):
            label += f"/{name}:{value}"
        makers = set()
        all_have_atomic_claims = True
        n_claims = 0
        for line in lines:
            for claim in line["claims"]:
                n_claims += 1
                if has_atomic_claims(claim):
                    makers.add(str(line.get("atomic_claims_by") or UNSTATED))
                else:
                    all_have_atomic_claims = False
        if makers:
            label += f"/given:{'+'.join(sorted(makers))}"
        if not n_claims or not all_have_atomic_claims:
            label += f"/{self.atomic_label()}"
        return label

    def atomic_label(self) -> str:
        """Return a label of everything that new atomic claims depend on, except the sentence."""
        entities_model, _ = load_entities()
        return f"{self.atomic_model}:{prompts.atomic_parts().label}:punkt:{entities_model}"

    def client(self) -> ChatClient:
        """Return a client for all calls. Without the user's cache, it keeps replies temporarily."""
        if self.cached:
            return client_for(self.caller)
        # A temporary cache, so that equal requests of one command are sent and paid only once.
        folder = tempfile.TemporaryDirectory(prefix="qabench-replies-")
        client = client_for(self.caller, ReplyCache(Path(folder.name) / "replies.sqlite"))
        weakref.finalize(client, folder.cleanup)
        return client

    def break_down(self, sentence: str) -> ChatRequest:
        """Return the request for the atomic claims of a sentence."""
        message = ("user", prompts.atomic_prompt(sentence))
        return ChatRequest(self.atomic_model, (message,), {**BREAK_DOWN, **self.sampling})

    def judge(self, atomic_claim: str, evidence: str, field: str) -> ChatRequest:
        """Return the request for a verdict on an atomic claim."""
        # Five passages are retrieved, and the authors' script sends three of them.
        shown, _, _ = evidence.partition(EVIDENCE_ENDS_AT)
        message = ("user", prompts.verdict_prompt(atomic_claim, shown.strip(), field))
        return ChatRequest(self.caller.model, (message,), {**VERDICT, **self.sampling})


def has_atomic_claims(claim: Mapping[str, Any]) -> bool:
    """Tell whether a claim was split into atomic claims. The result may be an empty list."""
    return claim.get("atomic_claims") is not None
