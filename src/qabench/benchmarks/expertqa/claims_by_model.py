"""Sentences of answers split into claims by a model, with the authors' prompt.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and ``split_ans_to_claims.py`` below
``modeling/response_collection`` of its repository. The released claims are sentences: the script has this way too, but
it stops with an error there (a name is not defined), so that the citations of a sentence are given to its claims here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qabench.benchmarks.expertqa import official_prompts as official
from qabench.benchmarks.expertqa.claims import answer_sentences, cited
from qabench.benchmarks.expertqa.items import Item, answers_of
from qabench.data.predictions import Predictions
from qabench.llm.cache import ReplyCache
from qabench.llm.client import Caller, Plan, Progress, answered, caller_for, run_sync
from qabench.llm.exchange import ChatRequest
from qabench.tasks.prompts import Prompt

PARAMETERS: Mapping[str, Any] = {"max_tokens": 200}  # and the API's default temperature


@dataclass(frozen=True)
class ClaimSplitter:
    """A model that splits sentences; ``name`` is for signatures."""

    caller: Caller
    prompt: Prompt

    @property
    def name(self) -> str:
        """The model and the prompt."""
        return f"{self.caller.model}/{self.prompt.label}"

    def request(self, sentence: str) -> ChatRequest:
        """The request for the claims of a sentence; the authors sent the same text as a plain completion."""
        return ChatRequest(self.caller.model, self.prompt.messages(sentence=sentence), PARAMETERS)


def claim_splitter(model: str, base_url: str | None = None, **limits: Any) -> ClaimSplitter:
    """The splitter of a model at an endpoint; see ``qabench.llm.client.caller_for`` for arguments and errors.

    Raises:
        SourceError: the authors' prompt is not available.
    """
    return ClaimSplitter(caller_for(model, base_url, **limits), official.claims())


def read_claims(reply: str) -> list[str]:
    """The claims of a reply as upstream reads them: what is between "- ", without blank ones."""
    return [part.strip() for part in reply.split("- ") if part.strip()]


def plan_claims(
    predictions: Predictions, splitter: ClaimSplitter, *, bing: bool = False, cache: ReplyCache | None = None
) -> Plan:
    """The calls that ``split_by_model`` would make, and their cost."""
    requests = [splitter.request(sentence) for *_, sentences in _answers(predictions, bing) for sentence in sentences]
    return splitter.caller.client(cache).plan(requests)


def split_by_model(
    predictions: Predictions,
    splitter: ClaimSplitter,
    *,
    bing: bool = False,
    cache: ReplyCache | None = None,
    progress: Progress | None = None,
) -> tuple[list[Item], list[str]]:
    """The lines of a file of answers with claims by a model, and the problems in sentences.

    All sentences are split; unlike claims by sentence, none is left out. An answer is left out if a call for one of its
    sentences failed. Replies are cached: the same call continues an interrupted one.

    Args:
        predictions: see ``qabench.benchmarks.expertqa.items.split_predictions``.
        splitter: see ``claim_splitter``.
        bing: apply the authors' special rules for Bing Chat.
        cache: the cache of replies; default: the user's.
        progress: called with the number of replies received and the total.

    Raises:
        InputError: a field has another type; names the line.
    """
    answers = list(_answers(predictions, bing))
    requests = [splitter.request(sentence) for *_, sentences in answers for sentence in sentences]
    replies = iter(run_sync(splitter.caller.client(cache).complete(requests, progress)) if requests else [])
    items: list[Item] = []
    problems: list[str] = []
    for id_, text, sources, sentences in answers:
        found = [answered(next(replies)) for _ in sentences]
        if reason := next((one.reason for one in found if one.text is None), None):
            problems.append(f"{id_} is left out: {reason}")
            continue
        claims = [
            {"claim": claim, "evidence": cited(sentence, sources)}
            for sentence, one in zip(sentences, found, strict=True)
            for claim in read_claims(one.text or "")
        ]
        items.append({"id": id_, "answer": text, "claims": claims, "claims_by": splitter.name})
    return items, problems


def _answers(predictions: Predictions, bing: bool) -> Iterator[tuple[str, str | None, list[str], list[str]]]:
    """(id, answer, sources, sentences) of each line."""
    for id_, answer, sources, by_bing in answers_of(predictions):
        text, sentences = answer_sentences(answer or "", bing=bing or by_bing)
        yield id_, answer and text, sources, [sentence for sentence in sentences if sentence.strip()]
