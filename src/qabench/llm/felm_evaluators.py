"""FELM's evaluators of factuality, with any model: raw, cot, cot-cons, link and content, by segments or by claims.

Source: Chen et al., FELM, NeurIPS 2023 Datasets and Benchmarks (https://arxiv.org/abs/2310.00741); ``eval/eval.py`` of
hkust-nlp/felm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.llm.budget import Plan
from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Answered, Caller, answered, caller_for, merged, models_of, usage_of
from qabench.llm.client import ChatClient, Progress
from qabench.llm.exchange import ChatRequest, Outcome
from qabench.llm.felm_claims import FelmClaim, as_reply, numbered, read_claims, segment_verdicts, verdicts_of
from qabench.llm.felm_prompts import CLAIM_DOMAINS, DOMAINS, FelmPrompts, felm_prompts, kind_of
from qabench.llm.felm_results import FelmResponse, FelmRun
from qabench.llm.running import run_sync
from qabench.scoring.felm_replies import REPLY_FORMATS

PARAMETERS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 100}
CONS_TEMPERATURE = 0.9
NUM_CONS = 5
EXTRACTION: Mapping[str, Any] = {"temperature": 0, "max_tokens": 2000}
NO_REFERENCES = "(none)"  # what a user's template shows where there are none
FIELDS = ("index", "domain", "prompt", "segmented_response", "labels", "ref", "ref_contents")


@dataclass(frozen=True)
class FelmEvaluator:
    """A model that finds the segments with errors, and how it is asked; see ``felm_evaluator``."""

    caller: Caller
    method: str
    prompts: FelmPrompts
    parameters: Mapping[str, Any]
    claims: bool = False
    samples: int = 1
    official_quirks: bool = False
    reply_format: str = "answer"

    def signature(self) -> dict[str, object]:
        """What the verdicts depend on besides the data, for ``qabench.signature.signature``."""
        return {
            "evaluator": self.caller.model,
            "endpoint": self.caller.endpoint.base_url,
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

    def extraction(self, row: Mapping[str, Any]) -> ChatRequest:
        """The request for a response's claims."""
        texts = {"question": row["prompt"], "segments": numbered(row["segmented_response"])}
        messages = self.prompts.extraction[row["domain"]].messages(**texts)
        return ChatRequest(self.caller.model, messages, EXTRACTION)

    def requests(self, row: Mapping[str, Any], claims: Sequence[FelmClaim] | None) -> list[ChatRequest]:
        """The requests for verdicts on a response: one, or of cot-cons one a sample."""
        references = row["ref_contents"] if self.method == "content" else row["ref"]
        # Upstream takes the prompt that speaks of references whether there are any or not.
        kind = kind_of(self.method, row["domain"], self.official_quirks or bool(references))
        prompts = self.prompts.verdicts if claims is None else self.prompts.claim_verdicts
        shown = [] if self.official_quirks else references
        messages = prompts[row["domain"], kind].messages(
            question=row["prompt"],
            segments=numbered(row["segmented_response"] if claims is None else [claim.text for claim in claims]),
            references="\n".join(shown) or NO_REFERENCES,
        )
        request = ChatRequest(self.caller.model, messages, self.parameters)
        return [replace(request, sample=sample) for sample in range(self.samples)]


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
    if num_cons < 1:
        raise InputError(f"num_cons is {num_cons}; it must be 1 or more")
    if reply_format not in REPLY_FORMATS:
        raise InputError(f"unknown reply_format {reply_format!r}; allowed: {', '.join(REPLY_FORMATS)}")
    sampled = method == "cot-cons"
    return FelmEvaluator(
        caller=caller_for(model, base_url, api_key, **limits),
        method=method,
        prompts=felm_prompts(method, claims, prompt, official_text, shows_references=not official_quirks),
        parameters=merged({**PARAMETERS, **({"temperature": CONS_TEMPERATURE} if sampled else {})}, parameters),
        claims=claims,
        samples=num_cons if sampled else 1,
        official_quirks=official_quirks,
        reply_format=reply_format,
    )


def plan_felm(rows: Sequence[Mapping[str, Any]], evaluator: FelmEvaluator, cache: ReplyCache | None = None) -> Plan:
    """What ``evaluate_felm`` would do and cost, without a call and without a key.

    Of claims that are not known yet, the verdicts are estimated with the segments in their place.
    """
    _check_rows(rows)
    client = evaluator.caller.client(cache)
    requests = [evaluator.extraction(row) for row in rows if evaluator.by_claims(row)]
    known = client.cache.find(request.key(client.endpoint.base_url) for request in requests)
    for row in rows:
        claims: tuple[FelmClaim, ...] | None = None
        if evaluator.by_claims(row):
            reply = known.get(evaluator.extraction(row).key(client.endpoint.base_url))
            stand_in = tuple(FelmClaim(i, text) for i, text in enumerate(row["segmented_response"], start=1))
            claims = _claims(row, answered(Outcome(reply)))[0] if reply else stand_in
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
    _check_rows(rows)
    client = evaluator.caller.client(cache)
    asked = [i for i, row in enumerate(rows) if evaluator.by_claims(row)]
    outcomes = _complete(client, [evaluator.extraction(rows[i]) for i in asked], progress)
    claims = {i: _claims(rows[i], answered(one)) for i, one in zip(asked, outcomes, strict=True)}
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
        responses.append(_response(row, evaluator, found, replies))
    outcomes += verdicts
    usage, models = usage_of(evaluator.caller, client, outcomes), models_of(outcomes)
    return FelmRun(tuple(responses), evaluator.signature(), usage, models)


def _complete(client: ChatClient, requests: list[ChatRequest], progress: Progress | None) -> list[Outcome]:
    return run_sync(client.complete(requests, progress)) if requests else []


def _claims(row: Mapping[str, Any], reply: Answered) -> tuple[tuple[FelmClaim, ...], str | None]:
    """The claims, or none and why."""
    if reply.text is None:
        return (), f"its claims: {reply.reason}"
    if reply.cut_off:  # the claims of the last segments would be missing
        return (), "its claims: the reply was cut off"
    claims = read_claims(reply.text, len(row["segmented_response"]))
    return claims, None if claims else f"its claims: none in the reply {reply.text!r:.80}"


def _response(
    row: Mapping[str, Any],
    evaluator: FelmEvaluator,
    claims: tuple[FelmClaim, ...] | None,
    replies: Sequence[Answered],
) -> FelmResponse:
    segments = len(row["segmented_response"])
    items = segments if claims is None else len(claims)
    readable: list[str | None] = []
    reasons = []
    for reply in replies:
        verdicts = None
        if reply.text is not None:
            verdicts = verdicts_of(reply.text, items, evaluator.reply_format, evaluator.official_quirks)
        if verdicts is None:
            cut = " (it was cut off)" * reply.cut_off
            reasons.append(reply.reason or f"no verdict in the reply{cut} {reply.text!r:.80}")
        elif claims is not None:
            verdicts = segment_verdicts(verdicts, claims, segments)
        readable.append(None if reply.text is None else as_reply(verdicts))
    texts = tuple(reply.text for reply in replies)
    return FelmResponse(
        row["index"], row["domain"], tuple(row["labels"]), texts, tuple(readable), tuple(reasons), claims
    )


def _check_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        raise InputError("there are no responses to evaluate")
    for i, row in enumerate(rows):
        missing = [name for name in FIELDS if name not in row]
        if missing or row["domain"] not in DOMAINS or len(row["labels"]) != len(row["segmented_response"]):
            what = f"has no {', '.join(missing)}" if missing else "has an unknown domain, or labels that do not fit"
            raise InputError(f"rows[{i}] {what}; give rows as the dataset felm has them")
