"""FELM as an Inspect AI task: the model looks for the segments of responses that contain errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, Model, ModelOutput, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect

from qabench.benchmarks.felm.claims import FelmClaim, as_reply
from qabench.benchmarks.felm.method import (
    EXTRACTION,
    FIELDS,
    NUM_CONS,
    FelmMethod,
    claims_in,
    felm_method,
    felm_response,
)
from qabench.benchmarks.felm.scorer import STORE, felm_official, felm_scorer
from qabench.llm.caller import Answered
from qabench.loading_scripts import dataset_table, file_digest, open_path
from qabench.loading_scripts.felm.parse import read_rows
from qabench.tasks.common import chosen, note_problem, sample, task_metadata
from qabench.tasks.replies import answered, ask_model, asked_with, chat

REFERENCES = {"link": "ref", "content": "ref_contents"}  # what a method shows of them
KEPT = (*FIELDS, "type", "comment")


@task
def felm(
    config: str = "all",
    method: str = "raw",
    claims: bool = False,
    prompt: str = "own",
    domains: Sequence[str] | str | None = None,
    ids: Sequence[str] | str | None = None,
    num_cons: int = NUM_CONS,
    reply_format: str = "answer",
    official_quirks: bool = False,
) -> Task:
    """FELM: which segments of a response contain errors? Scored by F1 of errors and balanced accuracy.

    Temperature 0 (of cot-cons 0.9) and at most 100 tokens a reply are the benchmark's; the options of generation
    change them.

    Args:
        config: "all", a domain, or "sample", which is shipped.
        method: "raw", "cot", "cot-cons", "link" or "content"; claims, prompt, num_cons, reply_format, official_quirks:
            see ``qabench.benchmarks.felm.evaluators.felm_evaluator``.
        domains, ids: only these domains, only the responses with these indexes.

    Raises:
        InputError: an option, a domain or an index that there is not.
        SourceError: the data cannot be had.
    """
    options: dict[str, Any] = {
        "method": method,
        "claims": claims,
        "prompt": prompt,
        "num_cons": num_cons,
        "reply_format": reply_format,
        "official_quirks": official_quirks,
    }
    parameters = _method(options).parameters
    table = dataset_table("felm").config(config)
    ((file,),) = table.splits.values()
    rows = read_rows(open_path("felm", file), table.name)
    data = {"config": table.name, "data": file_digest("felm", file)}
    reading: dict[str, Any] = {"reply_format": reply_format, "official_quirks": official_quirks}
    return Task(
        dataset=MemoryDataset(
            chosen((_sample(row, REFERENCES.get(method)) for row in rows), ids, domains),
            name=f"qabench/felm/{table.name}",
        ),
        solver=find_errors(**options),
        scorer=[felm_scorer(signed=data, **reading), felm_official(signed=data, **reading)],
        config=GenerateConfig(**parameters),
        metadata=task_metadata("felm", table.name, f"{method} by claims" if claims else method, data["data"]),
        fail_on_error=False,
        score_on_error=True,
    )


@solver
def find_errors(**options: Any) -> Solver:
    """Asks for the wrong segments, or first for the claims and then for the wrong ones.

    Args:
        **options: method, claims, prompt, num_cons, reply_format and official_quirks; see ``felm``.
    """
    asking = _method(options)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        row, model = state.metadata["row"], get_model()
        # What a call was really asked with is known once it was made.
        unasked = asking.fields() | dict.fromkeys(asking.parameters)
        found: dict[str, Any] = {"asking": unasked, "claims": None, "replies": []}
        state.store.set(STORE, found)
        state.messages = []
        listed: tuple[FelmClaim, ...] | None = None
        if asking.by_claims(row):
            listed, reason = await _claims(state, asking, model)
            found["claims"] = [asdict(claim) for claim in listed]
            if reason is not None:
                found["replies"] = [asdict(Answered(reason=reason))]
                state.store.set(STORE, found)
                note_problem(state, reason)
                return state
        outputs = await _outputs(state, asking, model, listed)
        replies = [answered(output) for output in outputs]
        found["replies"] = [asdict(reply) for reply in replies]
        found["asking"] |= asked_with(asking.parameters)
        state.store.set(STORE, found)
        for reason in felm_response(row, listed, replies, asking.reply_format, asking.official_quirks).reasons:
            note_problem(state, reason)
        # The log shows one as the sample's output: the first that says something.
        said = (output for output, reply in zip(outputs, replies, strict=True) if reply.text is not None)
        state.output = next(said, outputs[0])
        state.messages += [choice.message for choice in state.output.choices[:1]]
        return state

    return solve


async def _claims(state: TaskState, asking: FelmMethod, model: Model) -> tuple[tuple[FelmClaim, ...], str | None]:
    state.messages += chat(asking.extraction_messages(state.metadata["row"]))
    state.output = await ask_model(model, state.messages, **EXTRACTION)
    state.messages += [choice.message for choice in state.output.choices[:1]]
    return claims_in(state.metadata["row"], answered(state.output))


async def _outputs(
    state: TaskState, asking: FelmMethod, model: Model, claims: Sequence[FelmClaim] | None
) -> list[ModelOutput]:
    messages = chat(asking.messages(state.metadata["row"], claims))
    state.messages += messages
    if asking.samples == 1:
        return [await ask_model(model, messages)]
    # A seed of its own: without one, Inspect's cache would give the same reply for each.
    first = (state.epoch - 1) * asking.samples + 1
    seeds = range(first, first + asking.samples)
    return await collect(*(ask_model(model, messages, seed=seed) for seed in seeds))


def _sample(row: Mapping[str, Any], shown: str | None) -> Sample:
    """A response, with those of its references that the method shows."""
    kept = {name: row[name] if name == shown or name not in REFERENCES.values() else [] for name in KEPT}
    groups = {"domain": [row["domain"]], "error type": sorted({kind for kind in row["type"] if kind})}
    return sample(row["index"], row["prompt"], row["prompt"], as_reply(row["labels"]), groups, row=kept)


def _method(options: Mapping[str, Any]) -> FelmMethod:
    return felm_method(**options, official_text=_official_text)


def _official_text(path: str) -> str:
    return open_path("felm", f"eval/prompt/{path}").read_text(encoding="utf-8")
