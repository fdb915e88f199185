"""FELM's evaluators of factuality, with any model: raw, cot, cot-cons, link and content, by segments or by claims.

Source: Chen et al., FELM, NeurIPS 2023 Datasets and Benchmarks (https://arxiv.org/abs/2310.00741); ``eval/eval.py`` of
hkust-nlp/felm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.benchmarks.felm.claims import FelmClaim
from qabench.benchmarks.felm.method import (
    EXTRACTION,
    NUM_CONS,
    FelmMethod,
    check_rows,
    claims_in,
    felm_method,
    felm_response,
)
from qabench.benchmarks.felm.results import FelmRun
from qabench.llm.budget import Plan
from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Answered, Caller, answered, caller_for, models_of, usage_of
from qabench.llm.client import ChatClient, Progress
from qabench.llm.exchange import ChatRequest, Outcome
from qabench.llm.running import run_sync


@dataclass(frozen=True, kw_only=True)
class FelmEvaluator(FelmMethod):
    """A model that finds the segments with errors, and how it is asked; see ``felm_evaluator``."""

    caller: Caller

    def signature(self) -> dict[str, object]:
        """What the verdicts depend on besides the data, for ``qabench.signature.signature``."""
        return {"evaluator": self.caller.model, "endpoint": self.caller.endpoint.base_url} | self.fields()

    def extraction(self, row: Mapping[str, Any]) -> ChatRequest:
        """The request for a response's claims."""
        return ChatRequest(self.caller.model, self.extraction_messages(row), EXTRACTION)

    def requests(self, row: Mapping[str, Any], claims: Sequence[FelmClaim] | None) -> list[ChatRequest]:
        """The requests for verdicts on a response: one, or of cot-cons one a sample."""
        messages = self.messages(row, claims)
        return [ChatRequest(self.caller.model, messages, self.parameters, sample) for sample in range(self.samples)]


def felm_evaluator(
    method: str,
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    claims: bool = False,
    prompt: str | Path = "own",
    official_text: Callable[[str], str] | None = None,
    num_cons: int = NUM_CONS,
    official_quirks: bool = False,
    reply_format: str = "answer",
    parameters: Mapping[str, Any] | None = None,
    **limits: Any,
) -> FelmEvaluator:
    """The evaluator that arguments describe.

    Args:
        method: "raw"; "cot", thoughts first; "cot-cons", cot sampled ``num_cons`` times at temperature 0.9, each
            segment's verdict the most frequent one, the earliest among equals; "link" and "content", raw with the
            links or the texts of the references. Where there are no references, as in math and reasoning, the last
            two are raw.
        model, base_url, api_key, **limits: see ``caller_for``.
        claims: by claims, which the model is first asked for, in the domains wk, science and writing_rec (which has
            wk's prompts); math and reasoning have no such prompts and are judged by segments. A segment is wrong when
            one of its claims is.
        prompt, official_text: see ``felm_prompts``.
        num_cons: see cot-cons.
        official_quirks: as upstream: references are never shown (its link and content compare the method with names
            that it does not have), and an id 0 marks the last segment.
        reply_format: "answer" or "vicuna", see ``parse_reply``.
        parameters: added to temperature (0, of cot-cons 0.9) and max_tokens 100; None as a value takes one out.

    Raises:
        InputError: an option that is unknown or out of range, or a prompt that cannot be used.
    """
    made = felm_method(
        method,
        claims=claims,
        prompt=prompt,
        official_text=official_text,
        num_cons=num_cons,
        official_quirks=official_quirks,
        reply_format=reply_format,
        parameters=parameters,
    )
    return FelmEvaluator(caller=caller_for(model, base_url, api_key, **limits), **vars(made))


def plan_felm(rows: Sequence[Mapping[str, Any]], evaluator: FelmEvaluator, cache: ReplyCache | None = None) -> Plan:
    """What ``evaluate_felm`` would do and cost, without a call and without a key.

    Of claims that are not known yet, the verdicts are estimated with the segments in their place.
    """
    check_rows(rows)
    client = evaluator.caller.client(cache)
    requests = [evaluator.extraction(row) for row in rows if evaluator.by_claims(row)]
    known = client.cache.find(request.key(client.endpoint.base_url) for request in requests)
    for row in rows:
        claims: tuple[FelmClaim, ...] | None = None
        if evaluator.by_claims(row):
            reply = known.get(evaluator.extraction(row).key(client.endpoint.base_url))
            stand_in = tuple(FelmClaim(i, text) for i, text in enumerate(row["segmented_response"], start=1))
            claims = claims_in(row, answered(Outcome(reply)))[0] if reply else stand_in
            if not claims:
                continue
        requests += evaluator.requests(row, claims)
    return client.plan(requests, evaluator.caller.prices)


def evaluate_felm(
    rows: Sequence[Mapping[str, Any]],
    evaluator: FelmEvaluator,
    cache: ReplyCache | None = None,
    progress: Progress | None = None,
) -> FelmRun:
    """Lets a model find the wrong segments of responses, and scores it against the labels of people.

    Replies that are in the cache cost nothing, and need no key; so a run that was stopped or killed goes on from where
    it was. Works within a running event loop too (notebooks).

    Args:
        rows: of the dataset. evaluator: see ``felm_evaluator``. cache: by default the user's.
        progress: is told of the replies there and of all, for claims first and then for verdicts.

    Raises:
        InputError: no rows, or one that is not as the dataset has it.
        MissingExtra: calls are needed and the openai package is not installed.
    """
    check_rows(rows)
    client = evaluator.caller.client(cache)
    asked = [i for i, row in enumerate(rows) if evaluator.by_claims(row)]
    outcomes = _complete(client, [evaluator.extraction(rows[i]) for i in asked], progress)
    claims = {i: claims_in(rows[i], answered(one)) for i, one in zip(asked, outcomes, strict=True)}
    requests = [
        [] if i in claims and not claims[i][0] else evaluator.requests(row, claims[i][0] if i in claims else None)
        for i, row in enumerate(rows)
    ]
    verdicts = _complete(client, [request for some in requests for request in some], progress)
    remaining = iter(verdicts)
    responses = []
    for i, (row, some) in enumerate(zip(rows, requests, strict=True)):
        found, reason = claims.get(i, (None, None))
        replies = [answered(next(remaining)) for _ in some] or [Answered(reason=reason)]
        responses.append(felm_response(row, found, replies, evaluator.reply_format, evaluator.official_quirks))
    outcomes += verdicts
    usage, models = usage_of(evaluator.caller, client, outcomes), models_of(outcomes)
    return FelmRun(tuple(responses), evaluator.signature(), usage, models)


def _complete(client: ChatClient, requests: list[ChatRequest], progress: Progress | None) -> list[Outcome]:
    return run_sync(client.complete(requests, progress)) if requests else []
