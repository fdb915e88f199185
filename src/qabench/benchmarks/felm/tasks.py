"""FELM's task: the model looks for the segments of responses that contain errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from qabench.benchmarks import benchmark
from qabench.benchmarks.conversation import CarryOut, Conversation
from qabench.benchmarks.felm.method import (
    CLAIMS_PARAMETERS,
    NUM_CONS,
    FelmMethod,
    claims_in,
    without_verdict,
)
from qabench.benchmarks.plan import Names, ProtocolStep, TaskPlan, select
from qabench.data.rows import Json
from qabench.evaluation.scoring import Question
from qabench.loading_scripts.felm.parse import DOMAINS
from qabench.prompts.prompt import AUTO, Origin

# The column of the dataset that a method shows to the model.
REFERENCES = {"link": "ref", "content": "ref_contents"}
NOT_LOGGED = ("source", "response")
NO_REPLY = "no reply: a call failed"

FELM = benchmark("felm")


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
) -> TaskPlan:
    """FELM: which segments of a response contain errors?

    The scores are F1 of errors and balanced accuracy. The official parameters are temperature 0
    (0.9 for cot-cons, except for Vicuna) and at most 100 tokens per reply. Generation options
    override them.

    Args:
        config: "all", a domain, or "sample".
        method: "raw": the answer alone. "cot": thoughts, then the answer. "cot-cons": cot sampled
            ``num_cons`` times at temperature 0.9, where each segment's verdict is the most frequent
            one (the first of equally frequent ones). "link" and "content": raw with the links or
            the texts of the references. Without references, as in math and reasoning, they are the
            same as raw.
        claims: in the domains wk, science and writing_rec, first ask the model for the claims of a
            response, and then for verdicts on them. A segment is wrong if one of its claims is. The
            other domains have no such prompts and are judged by segments.
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
    shown = REFERENCES.get(method)
    selected = []
    for question in select(questions, ids, domains):
        selected.append(_without_references(question, shown))
    asked_domains = {question.row["domain"] for question in selected}
    # Signatures name the domains, so their order must not depend on the questions.
    domains_in_order = [domain for domain in DOMAINS if domain in asked_domains]
    options: dict[str, Any] = {
        "method": method,
        "claims": claims,
        "prompt": prompt,
        "domains": domains_in_order,
        "num_cons": num_cons,
        "reply_format": reply_format,
        "official_quirks": official_quirks,
    }
    setting = f"{method} by claims" if claims else method
    asking = FelmMethod(**options)
    steps = [ProtocolStep(find_errors, options)]
    return TaskPlan(questions, selected, asking, setting, steps, prompted=False)


def _without_references(question: Question, shown: str | None) -> Question:
    """Return a response for the log, with only the references that the method shows."""
    row = {}
    for column, value in question.row.items():
        if column in NOT_LOGGED:
            continue
        # References that the method does not show would only make the log large.
        is_hidden = column in REFERENCES.values() and column != shown
        row[column] = [] if is_hidden else value
    return replace(question, row=row)


def find_errors(**options: Any) -> CarryOut:
    """Ask for the segments with errors, or for the claims and then for the claims with errors."""
    asking = FelmMethod(**options)

    async def judge(conversation: Conversation) -> None:
        row = conversation.row
        signed = asking.fields()
        # The authors use a plain completion, without a chat template.
        if asking.reply_format == "vicuna":
            # Inspect's providers of plain completions have names such as vllm-completions.
            is_completion = "completions/" in conversation.model.name
            signed["interface"] = "completion" if is_completion else "chat"
        # Record the signature now, so that the log has it even if the first call fails.
        conversation.note_prediction({"reply": None, "reasons": [NO_REPLY]}, signed)
        # The conversation begins with the question. Remove it, so that the log shows what is sent.
        conversation.messages = []
        claims: list[Json] | None = None
        by_claims: Json = {}
        if asking.by_claims(row):
            extraction = asking.extraction_messages(row)
            (listed,) = await conversation.ask_separately(extraction, **CLAIMS_PARAMETERS)
            claims, reason = claims_in(row, listed)
            by_claims = {"claims": claims}
            fields = {"reply": None, "reasons": [reason or NO_REPLY], **by_claims}
            conversation.note_prediction(fields, signed)
            if reason is not None:
                conversation.note_problem(reason)
                return
        messages = asking.messages(row, claims)
        replies = await conversation.ask_separately(messages, asking.samples)
        # The parameters of a call are known only after the call: a user's options override the
        # task's.
        signed |= asking.generated_with(conversation.generation())
        n = len(row["labels"]) if claims is None else len(claims)
        reasons = without_verdict(replies, n, asking.read_as)
        texts = [reply.text for reply in replies]
        reply = texts if asking.method == "cot-cons" else texts[0]
        fields = {"reply": reply, "reasons": reasons, **by_claims}
        conversation.note_prediction(fields, signed)
        # If the only call has no reply, the question's status already says so, and needs no
        # problem.
        if asking.samples > 1 or texts[0] is not None:
            for reason in reasons:
                conversation.note_problem(reason)

    return judge
