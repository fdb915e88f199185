"""FELM as an Inspect AI task: the model looks for the segments of responses that contain errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite, nan
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, ModelOutput, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect

from qabench.benchmarks.felm.evaluate import detail, groups, load_responses, reference, scored_reply
from qabench.benchmarks.felm.formulas import COUNTS, READABLE, RESPONSES
from qabench.benchmarks.felm.method import CLAIMS_PARAMETERS, NUM_CONS, FelmMethod, Messages, claims_in, judged
from qabench.benchmarks.felm.official import misread, signatures
from qabench.benchmarks.felm.scores import Confusion, FelmClaim
from qabench.llm.client import Answered
from qabench.loading_scripts.felm.parse import DOMAINS
from qabench.tasks.common import chosen, measured, note_problem, sample, task_metadata
from qabench.tasks.prompts import AUTO
from qabench.tasks.replies import answered, ask_model, asked_with, chat

REFERENCES = {"link": "ref", "content": "ref_contents"}  # the column that a method shows
COLUMNS = ("index", "domain", "prompt", "segmented_response", "labels", "ref", "ref_contents", "type", "comment")
STORE = "felm"


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
        method: "raw"; "cot", thoughts first; "cot-cons", cot sampled ``num_cons`` times at temperature 0.9, where each
            segment's verdict is the most frequent one (the first of equally frequent ones); "link" and "content", raw
            with the links or the texts of the references. Without references, as in math and reasoning, the last two
            are the same as raw.
        claims: judge claims, which the model is first asked for, in the domains wk, science and writing_rec. A segment
            is wrong if one of its claims is. The other domains have no such prompts and are judged by segments.
        prompt: "official", "qabench", "auto" (official if available) or a file; see ``FelmMethod``.
        domains: only these domains.
        ids: only the responses with these indexes.
        num_cons: the number of samples of cot-cons.
        reply_format: "answer", or "vicuna" for ids anywhere in a reply (not for cot-cons).
        official_quirks: reproduce quirks of the authors' script: references are never shown, and Vicuna's prompt (with
            ``reply_format="vicuna"``) is plain text with two more lines at its end.

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
    asking = FelmMethod(**options)
    setting = f"{method} by claims" if claims else method
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/felm-{responses.config}"),
        solver=find_errors(**options),
        scorer=felm_scorer(asking.read_as, {"config": responses.config, "data": responses.digest}),
        config=GenerateConfig(**asking.parameters),
        metadata=task_metadata("felm", responses.config, setting, responses.digest, available=len(responses.rows)),
        fail_on_error=False,
        score_on_error=True,
    )


def _sample(row: Mapping[str, Any], shown: str | None) -> Sample:
    """Return a response, with the references that the method shows."""
    columns = {name: row[name] if name == shown or name not in REFERENCES.values() else [] for name in COLUMNS}
    return sample(row["index"], row["prompt"], row["prompt"], reference(row), groups(row), row=columns)


@solver
def find_errors(**options: Any) -> Solver:
    """Ask for the segments with errors, or first for the claims and then for the wrong ones; see ``FelmMethod``."""
    asking = FelmMethod(**options)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        row, model = state.metadata["row"], get_model()
        # The parameters of a call are known only after the call: a user's options override the task's.
        stored: dict[str, Any] = {"asking": asking.fields(), "claims": None, "replies": []}
        state.store.set(STORE, stored)
        if asking.reply_format == "vicuna":  # the authors use a plain completion, without a chat template
            stored["asking"]["interface"] = "completion" if "completions/" in str(model) else "chat"
        state.messages = []

        async def ask(pairs: Messages, samples: int = 1, **generation: Any) -> list[Answered]:
            messages = chat(pairs)
            state.messages += messages
            if samples == 1:
                outputs: list[ModelOutput] = [await ask_model(model, messages, state, **generation)]
            else:
                outputs = await collect(*(ask_model(model, messages, state, sample=n) for n in range(samples)))
            replies = [answered(output) for output in outputs]
            # The log shows one as the sample's output: the first with a text.
            with_text = (output for output, reply in zip(outputs, replies, strict=True) if reply.text is not None)
            state.output = next(with_text, outputs[0])
            state.messages += [choice.message for choice in state.output.choices[:1]]
            return replies

        claims: tuple[FelmClaim, ...] | None = None
        if asking.by_claims(row):
            (listed,) = await ask(asking.extraction_messages(row), **CLAIMS_PARAMETERS)
            claims, reason = claims_in(row, listed)
            stored["claims"] = [asdict(claim) for claim in claims]
            if reason is not None:
                stored["replies"] = [asdict(Answered(reason=reason))]
                note_problem(state, reason)
                return state
        replies = await ask(asking.messages(row, claims), asking.samples)
        stored["replies"] = [asdict(reply) for reply in replies]
        stored["asking"] |= asking.generated_with(asked_with())
        if asking.samples > 1 or replies[0].text is not None:  # else the sample's status says it
            for reason in judged(row, replies, asking.read_as, claims)[1]:
                note_problem(state, reason)
        return state

    return solve


@metric(scores="unreduced")
def felm_scores() -> Metric:
    """Return the official scores over the segments of all responses and epochs.

    With the prefix ``responses_`` over whole responses, with the prefix ``readable_`` over the segments of responses
    with a readable reply, and with a domain's name F1 and balanced accuracy of its segments. Scores that are undefined,
    such as recall without errors, are left out.
    """

    def value(scores: list[SampleScore]) -> Value:
        numbers = {
            prefix + name: n for prefix in ("", RESPONSES, READABLE) for name, n in _total(scores, prefix).items()
        }
        domains: dict[str, list[SampleScore]] = {}
        for score in scores:
            domains.setdefault((score.sample_metadata or {})["row"]["domain"], []).append(score)
        for domain, members in domains.items():
            total = _total(members, "")
            numbers |= {f"{domain}_{name}": total[name] for name in ("f1", "balanced_accuracy")}
        return measured(scores, {name: number for name, number in numbers.items() if number is not None})

    return value


def _total(scores: Sequence[SampleScore], prefix: str) -> dict[str, float | None]:
    rows = [[score.score.as_dict().get(prefix + name) for name in COUNTS] for score in scores]
    complete = [[n for n in row if isinstance(n, int | float) and isfinite(n)] for row in rows]
    return Confusion.total(Confusion(*map(int, row)) for row in complete if len(row) == len(COUNTS)).scores()


@scorer(name="felm", metrics=[felm_scores()])
def felm_scorer(reply_format: str = "answer", signed: Mapping[str, Any] | None = None) -> Scorer:
    """Return the counts of a response; see ``ResponseScore.columns``.

    A reply that is missing, refused, empty or unreadable counts as "all segments are correct", as in the authors'
    script; the ``readable_`` counts are NaN if no reply is readable.

    Args:
        reply_format: "answer" or "vicuna"; see ``qabench.benchmarks.felm.scores.read_reply``.
        signed: the fields of the signature for the data. The task fills it.
    """

    async def score(state: TaskState, target: Target) -> Score:
        # Without the store, another solver has run, and its output is the only reply.
        stored = state.store.get(STORE) or {"asking": {}, "claims": None, "replies": [asdict(answered(state.output))]}
        # If a call failed, there is no reply.
        replies = [Answered(**reply) for reply in stored["replies"]] or [Answered(reason="no reply: a call failed")]
        claims = None if stored["claims"] is None else [FelmClaim(**claim) for claim in stored["claims"]]
        row = state.metadata["row"]
        result, reasons = judged(row, replies, reply_format, claims)
        texts = [reply.text for reply in replies if reply.text is not None]
        evaluator = str(state.model)
        system = misread(reply_format, evaluator, sampled=bool(stored["asking"].get("samples")))
        answer = scored_reply(result, texts, reply_format, claims is not None) if texts else state.output.completion
        metadata = {
            "detail": detail(row, result, [reply.text for reply in replies], reasons, claims),
            "signatures": signatures({**(signed or {}), "evaluator": evaluator, "system": system, **stored["asking"]}),
        }
        absent = {READABLE + name: nan for name in COUNTS}
        return Score(value=absent | result.columns(), answer=answer, metadata=metadata)

    return score
