"""FELM as an Inspect AI task: the model looks for the segments of responses that contain errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from inspect_ai import Task, task
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect

from qabench.adapters.inspect import Names, benchmark_task, inspect_scorer, note_prediction, select
from qabench.benchmarks import benchmark
from qabench.benchmarks.felm.method import (
    CLAIMS_PARAMETERS,
    NUM_CONS,
    FelmMethod,
    claims_in,
    without_verdict,
)
from qabench.data.rows import Json
from qabench.evaluation.scoring import Messages, Question
from qabench.llm.client import Answered
from qabench.loading_scripts.felm.parse import DOMAINS
from qabench.tasks.common import answered, ask_model, asked_with, chat, note_problem
from qabench.tasks.prompts import AUTO, Origin

REFERENCES = {"link": "ref", "content": "ref_contents"}  # the column that a method shows
NOT_LOGGED = ("source", "response")
NO_REPLY = "no reply: a call failed"

FELM = benchmark("felm")
felm_scorer = inspect_scorer(FELM)


@task
def felm(
    config: str = "all",
    method: str = "raw",
    claims: bool = False,
    prompt: Origin | str = AUTO,
    domains: Names = None,
    ids: Names = None,
    num_cons: int = NUM_CONS,
    reply_format: Literal["answer", "vicuna"] = "answer",
    official_quirks: bool = False,
) -> Task:
    """FELM: which segments of a response contain errors? Scored by F1 of errors and balanced accuracy.

    The official parameters are temperature 0 (0.9 for cot-cons, except for Vicuna) and at most 100
    tokens per reply. Generation options override them.

    Args:
        config: "all", a domain, or "sample".
        method: "raw". "cot", thoughts first. "cot-cons", cot sampled ``num_cons`` times at
            temperature 0.9, where each segment's verdict is the most frequent one (the first of
            equally frequent ones). "link" and "content", raw with the links or the texts of the
            references. Without references, as in math and reasoning, the last two are the same as
            raw.
        claims: judge claims, which the model is first asked for, in the domains wk, science and
            writing_rec. A segment is wrong if one of its claims is. The other domains have no such
            prompts and are judged by segments.
        prompt: "official", "qabench", "auto" (official if available) or a file. See ``FelmMethod``.
        domains: only these domains.
        ids: only the responses with these indexes.
        num_cons: the number of samples of cot-cons.
        reply_format: "answer", or "vicuna" for ids anywhere in a reply (not for cot-cons).
        official_quirks: reproduce quirks of the authors' script: references are never shown, and
            Vicuna's prompt (with ``reply_format="vicuna"``) is plain text with two more lines at
            its end.

    Raises:
        InputError: an unknown option, domain or index.
        SourceError: the data is not available.
    """
    questions = FELM.load(config)
    selected = [
        _without_references(question, REFERENCES.get(method))
        for question in select(questions, ids, domains)
    ]
    asked_domains = {question.row["domain"] for question in selected}
    options: dict[str, Any] = {
        "method": method,
        "claims": claims,
        "prompt": prompt,
        "domains": [domain for domain in DOMAINS if domain in asked_domains],
        "num_cons": num_cons,
        "reply_format": reply_format,
        "official_quirks": official_quirks,
    }
    setting = f"{method} by claims" if claims else method
    asking = FelmMethod(**options)
    return benchmark_task(FELM, questions, selected, asking, setting, find_errors(**options))


def _without_references(question: Question, shown: str | None) -> Question:
    """Return a response for the log, with only the references that the method shows.

    All of them are large.
    """
    hidden: dict[str, list[str]] = {column: [] for column in REFERENCES.values() if column != shown}
    row = {column: value for column, value in question.row.items() if column not in NOT_LOGGED}
    return replace(question, row=row | hidden)


@solver
def find_errors(**options: Any) -> Solver:
    """Ask for the segments with errors, or first for the claims and then for the wrong ones (see ``FelmMethod``)."""
    asking = FelmMethod(**options)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        row, model = state.metadata["row"], get_model()
        signed = asking.fields()
        # the authors use a plain completion, without a chat template
        if asking.reply_format == "vicuna":
            signed["interface"] = "completion" if "completions/" in str(model) else "chat"
        note_prediction(state, {"reply": None, "reasons": [NO_REPLY]}, signed)
        state.messages = []

        async def ask(pairs: Messages, samples: int = 1, **generation: Any) -> list[Answered]:
            messages = chat(pairs)
            state.messages += messages
            if samples == 1:
                outputs: list[ModelOutput] = [await ask_model(model, messages, state, **generation)]
            else:
                outputs = await collect(
                    *(ask_model(model, messages, state, sample=n) for n in range(samples))
                )
            replies = [answered(output) for output in outputs]
            # The log shows one as the sample's output: the first with a text.
            with_text = (
                output for output, reply in zip(outputs, replies, strict=True) if reply.text is not None
            )
            state.output = next(with_text, outputs[0])
            state.messages += [choice.message for choice in state.output.choices[:1]]
            return replies

        claims: list[Json] | None = None
        by_claims: Json = {}
        if asking.by_claims(row):
            (listed,) = await ask(asking.extraction_messages(row), **CLAIMS_PARAMETERS)
            claims, reason = claims_in(row, listed)
            by_claims = {"claims": claims}
            note_prediction(state, {"reply": None, "reasons": [reason or NO_REPLY], **by_claims}, signed)
            if reason is not None:
                note_problem(state, reason)
                return state
        replies = await ask(asking.messages(row, claims), asking.samples)
        # The parameters of a call are known only after the call: a user's options override the
        # task's.
        signed |= asking.generated_with(asked_with())
        n = len(row["labels"] if claims is None else claims)
        reasons = without_verdict(replies, n, asking.read_as)
        reply = [reply.text for reply in replies] if asking.method == "cot-cons" else replies[0].text
        note_prediction(state, {"reply": reply, "reasons": reasons, **by_claims}, signed)
        if asking.samples > 1 or replies[0].text is not None:  # else the sample's status says it
            for reason in reasons:
                note_problem(state, reason)
        return state

    return solve
