"""FELM as an Inspect AI task: the model looks for the segments of responses that contain errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite, nan
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, Model, ModelOutput, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect

from qabench.benchmarks.felm.counts import COUNTS
from qabench.benchmarks.felm.evaluate import detail, groups, load_responses, reference, scored_reply
from qabench.benchmarks.felm.method import EXTRACTION, NUM_CONS, FelmMethod, Judged, claims_in, felm_method, judged
from qabench.benchmarks.felm.metrics import READABLE, RESPONSES, columns
from qabench.benchmarks.felm.official import DECLARATIONS, SCORE, signatures
from qabench.benchmarks.felm.prompts import AUTO, DOMAINS
from qabench.benchmarks.felm.replies import FelmClaim
from qabench.benchmarks.felm.scores import Confusion
from qabench.evaluation.official import deviations
from qabench.llm.client import Answered
from qabench.tasks.common import chosen, note_problem, sample, task_metadata
from qabench.tasks.replies import answered, ask_model, asked_with, chat

REFERENCES = {"link": "ref", "content": "ref_contents"}  # the column that a method shows
KEPT = ("index", "domain", "prompt", "segmented_response", "labels", "ref", "ref_contents", "type", "comment")


@task
def felm(
    config: str = "all",
    method: str = "raw",
    claims: bool = False,
    prompt: str = AUTO,
    domains: Sequence[str] | str | None = None,
    ids: Sequence[str] | str | None = None,
    num_cons: int = NUM_CONS,
    reply_format: str = "answer",
    official_quirks: bool = False,
) -> Task:
    """FELM: which segments of a response contain errors? Scored by F1 of errors and balanced accuracy.

    The official parameters are temperature 0 (0.9 for cot-cons, except for Vicuna) and at most 100 tokens per reply;
    generation options override them.

    Args:
        config: "all", a domain, or "sample".
        method: "raw", "cot", "cot-cons", "link" or "content"; see ``qabench.benchmarks.felm.method.felm_method``.
        claims: judge claims instead of segments; see ``felm_method``.
        prompt: "official", "qabench", "auto" (official if available) or a file; see ``felm_prompts``.
        domains: only these domains.
        ids: only the responses with these indexes.
        num_cons: the number of samples of cot-cons.
        reply_format: "answer", or "vicuna" for ids anywhere in a reply (not for cot-cons).
        official_quirks: reproduce quirks of the authors' script; see ``felm_method``.

    Raises:
        InputError: an unknown option, domain or index.
        SourceError: the data is not available.
    """
    responses = load_responses(config)
    samples = chosen((_sample(row, REFERENCES.get(method)) for row in responses.rows), ids, domains)
    present = {(item.metadata or {})["row"]["domain"] for item in samples}
    options: dict[str, Any] = {
        "method": method,
        "claims": claims,
        "prompt": prompt,
        "domains": [domain for domain in DOMAINS if domain in present],
        "num_cons": num_cons,
        "reply_format": reply_format,
        "official_quirks": official_quirks,
    }
    asking = felm_method(**options)
    data = {"config": responses.config, "data": responses.digest}
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/felm/{responses.config}"),
        solver=find_errors(**options),
        scorer=felm_scorer(signed=data, reply_format=asking.read_as),
        config=GenerateConfig(**asking.parameters),
        metadata=task_metadata(
            "felm",
            responses.config,
            f"{method} by claims" if claims else method,
            responses.digest,
            available=len(responses.rows),
        ),
        fail_on_error=False,
        score_on_error=True,
    )


@solver
def find_errors(**options: Any) -> Solver:
    """Ask for the segments with errors, or first for the claims and then for the wrong ones.

    Args:
        **options: the options of ``qabench.benchmarks.felm.method.felm_method``.
    """
    asking = felm_method(**options)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        row, model = state.metadata["row"], get_model()
        # The parameters of a call are known only after the call: a user's options override the task's.
        stored: dict[str, Any] = {"asking": asking.fields() | _interface(asking, model), "claims": None, "replies": []}
        state.store.set(STORE, stored)
        state.messages = []
        listed: tuple[FelmClaim, ...] | None = None
        if asking.by_claims(row):
            listed, reason = await _claims(state, asking, model)
            stored["claims"] = [asdict(claim) for claim in listed]
            if reason is not None:
                stored["replies"] = [asdict(Answered(reason=reason))]
                state.store.set(STORE, stored)
                note_problem(state, reason)
                return state
        outputs = await _outputs(state, asking, model, listed)
        replies = [answered(output) for output in outputs]
        stored["replies"] = [asdict(reply) for reply in replies]
        stored["asking"] |= asking.generated_with(asked_with(with_seed=asking.samples > 1))
        state.store.set(STORE, stored)
        if asking.samples > 1 or replies[0].text is not None:  # else the sample's status says it
            for reason in judged(row, replies, asking.read_as, listed).reasons:
                note_problem(state, reason)
        # The log shows one as the sample's output: the first with a text.
        outputs_with_text = (output for output, reply in zip(outputs, replies, strict=True) if reply.text is not None)
        state.output = next(outputs_with_text, outputs[0])
        state.messages += [choice.message for choice in state.output.choices[:1]]
        return state

    return solve


async def _claims(state: TaskState, asking: FelmMethod, model: Model) -> tuple[tuple[FelmClaim, ...], str | None]:
    state.messages += chat(asking.extraction_messages(state.metadata["row"]))
    state.output = await ask_model(model, state.messages, state, **EXTRACTION)
    state.messages += [choice.message for choice in state.output.choices[:1]]
    return claims_in(state.metadata["row"], answered(state.output))


async def _outputs(
    state: TaskState, asking: FelmMethod, model: Model, claims: Sequence[FelmClaim] | None
) -> list[ModelOutput]:
    messages = chat(asking.messages(state.metadata["row"], claims))
    state.messages += messages
    if asking.samples == 1:
        return [await ask_model(model, messages, state)]
    return await collect(*(ask_model(model, messages, state, sample=number) for number in range(asking.samples)))


def _interface(asking: FelmMethod, model: Model) -> dict[str, str]:
    """Return how Vicuna's prompt is sent: the authors use a plain completion, without a chat template."""
    if asking.reply_format != "vicuna":
        return {}
    return {"interface": "completion" if "completions/" in str(model) else "chat"}


def _sample(row: Mapping[str, Any], shown: str | None) -> Sample:
    """Return a response, with the references that the method shows."""
    columns = {name: row[name] if name == shown or name not in REFERENCES.values() else [] for name in KEPT}
    return sample(row["index"], row["prompt"], row["prompt"], reference(row), groups(row), row=columns)


STORE = "felm"


@metric(scores="unreduced")
def felm_scores() -> Metric:
    """Return the official scores over the segments of all responses and epochs.

    With the prefix ``responses_`` over whole responses, with the prefix ``readable_`` over the segments of responses
    with a readable reply. Scores that are undefined, such as recall without errors, are left out.
    """

    def value(scores: list[SampleScore]) -> Value:
        return {
            prefix + name: score
            for prefix in ("", RESPONSES, READABLE)
            for name, score in _total(scores, prefix).scores().items()
            if score is not None
        }

    return value


@metric(scores="unreduced")
def felm_domains() -> Metric:
    """Return the official F1 and balanced accuracy of segments by domain."""

    def value(scores: list[SampleScore]) -> Value:
        domains: dict[str, list[SampleScore]] = {}
        for score in scores:
            domains.setdefault((score.sample_metadata or {})["row"]["domain"], []).append(score)
        scores_by_domain = {domain: _total(members, "").scores() for domain, members in domains.items()}
        return {
            f"{domain}_{name}": number
            for domain, by_name in scores_by_domain.items()
            for name in ("f1", "balanced_accuracy")
            if (number := by_name[name]) is not None
        }

    return value


@scorer(name="felm", metrics=[felm_scores(), felm_domains()])
def felm_scorer(reply_format: str = "answer", signed: Mapping[str, Any] | None = None) -> Scorer:
    """Return the counts of a response; see ``qabench.benchmarks.felm.metrics.columns``.

    A reply that is missing, refused, empty or unreadable counts as "all segments are correct", as in the authors'
    script; the ``readable_`` counts are NaN if no reply is readable.

    Args:
        reply_format: "answer" or "vicuna"; see ``qabench.benchmarks.felm.replies.read_reply``.
        signed: the fields of the signature for the data. The task fills it.
    """

    async def score(state: TaskState, target: Target) -> Score:
        judgment = _judged(state, reply_format)
        absent = {READABLE + name: nan for name in COUNTS}
        asking = (state.store.get(STORE) or {}).get("asking", {})
        lines = signatures({**(signed or {}), "evaluator": str(state.model), **asking})
        by_claims = judgment.claims is not None
        texts = [reply for reply in judgment.replies if reply is not None]
        return Score(
            value=absent | columns(judgment.score),
            answer=scored_reply(judgment.score, texts, reply_format, by_claims) if texts else state.output.completion,
            metadata={
                "detail": detail(
                    state.metadata["row"], judgment.score, judgment.replies, judgment.reasons, judgment.claims
                ),
                "signatures": lines,
                "deviations": deviations(lines["felm"], DECLARATIONS[SCORE]),
            },
        )

    return score


def _judged(state: TaskState, reply_format: str) -> Judged:
    # Without the store, another solver has run, and its output is the only reply.
    stored = state.store.get(STORE) or {"claims": None, "replies": [asdict(answered(state.output))]}
    # If a call failed, there is no reply.
    replies = [Answered(**reply) for reply in stored["replies"]] or [Answered(reason="no reply: a call failed")]
    claims = None if stored["claims"] is None else [FelmClaim(**claim) for claim in stored["claims"]]
    return judged(state.metadata["row"], replies, reply_format, claims)


def _total(scores: Sequence[SampleScore], prefix: str) -> Confusion:
    rows = [[score.score.as_dict().get(prefix + name) for name in COUNTS] for score in scores]
    complete = [[n for n in row if isinstance(n, int | float) and isfinite(n)] for row in rows]
    return Confusion.total(Confusion(*map(int, row)) for row in complete if len(row) == len(COUNTS))
