"""Inspect AI tasks: a benchmark's questions as samples, a solver, and the benchmark's scorer.

A solver whose prediction is not simply the model's answer, or whose call has a signature of its
own, says so with ``note_prediction``. See ``qabench.tasks.common`` for what logs contain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Target, Value, metric, scorer
from inspect_ai.scorer import Scorer as InspectScorer
from inspect_ai.solver import Solver, TaskState
from inspect_ai.util import concurrency

from qabench.benchmarks import Benchmark, Setting, benchmark
from qabench.benchmarks.base import DEFAULT_LIMIT
from qabench.data.rows import Json
from qabench.errors import InputError, unknown_name
from qabench.evaluation.score_spec import CUTOFF
from qabench.evaluation.scoring import Asking, Item, Messages, Question, Questions, outcomes_of
from qabench.evaluation.signature import field_value
from qabench.tasks.common import answer_of, ask, asked_with, chat, metric_values, texts
from qabench.tasks.facts import ASKED_WITH

STORE = "qabench"
PREDICTED = "prediction"  # in the metadata of a sample
Names = Sequence[str] | str | None
"""Several names: a list, or a string with commas."""


def benchmark_task(
    scored: Benchmark,
    questions: Questions,
    selected: Sequence[Question],
    asking: Asking,
    setting: str,
    solver: Solver | list[Solver] | None = None,
    scores: Names = None,
    predicted: Mapping[str, Mapping[str, Any]] | None = None,
    prompted: bool = False,
    conditions: Mapping[str, object] | None = None,
) -> Task:
    """Return the task of one setting of a benchmark.

    Args:
        scored: the benchmark.
        questions: all questions of the config.
        selected: those that are asked. See ``select``.
        asking: how the model is asked.
        setting: the name of the setting in the log.
        solver: by default, the model is asked once with the messages of ``asking``.
        scores: names of scores or groups. By default, the benchmark's default groups.
        predicted: question id -> fields of its prediction that the model does not change, such as
            retrieved passages.
        prompted: whether samples begin with the messages of ``asking``, whose fields are then
            signed with any solver. Always true without a solver.
        conditions: fields that the solver adds to signatures, as far as they are known before the
            first question, such as the version of a retriever.
    """
    scorer_of_task = inspect_scorer(scored)
    prompted = prompted or solver is None
    samples = []
    for question in selected:
        groups = {grouping: list(names) for grouping, names in question.groups.items()}
        shown = {"question": question.text, "reference": question.reference, "groups": groups}
        fields = {PREDICTED: dict(predicted[question.id])} if predicted else {}
        samples.append(
            Sample(
                id=question.id,
                input=_input(asking.messages(question.row)) if prompted else question.text,
                target=question.reference,
                metadata=shown | {"row": dict(question.row)} | fields,
            )
        )
    available = len({question.id for question in questions.rows})
    # A resumed run must ask in the same way, also where each sample signs how it was asked.
    asked_with = {**questions.fields, **asking.fields(), **dict(conditions or {})}
    signed = questions.fields | (dict(asking.fields()) if prompted else {})
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/{scored.name}-{questions.config}"),
        solver=solver or ask(),
        scorer=scorer_of_task(
            signed=signed, groups=scored.selected_groups(scores or None), **asking.scoring
        ),
        config=GenerateConfig(**asking.parameters),
        metadata={
            "benchmark": scored.name,
            "config": questions.config,
            "setting": setting,
            "data": questions.data,
            "available": available,
            ASKED_WITH: {
                name: field_value(value) for name, value in asked_with.items() if value is not None
            },
        },
        # A failed question is unanswered: the others continue, and a retry asks it again.
        fail_on_error=False,
        score_on_error=True,
    )


def _input(messages: Messages) -> str | list[ChatMessage]:
    converted = chat(messages)
    return converted[0].text if len(converted) == 1 else converted


def simple_tasks(scored: Benchmark) -> dict[str, Callable[..., Task]]:
    """Return the tasks of a benchmark whose settings ask each question once, by name."""
    return {setting.task: _simple_task(scored, setting) for setting in scored.settings}


def _simple_task(scored: Benchmark, setting: Setting) -> Callable[..., Task]:
    def ask_once(
        config: str | None = None,
        questions: str | None = None,
        ids: Names = None,
        groups: Names = None,
        scores: Names = None,
    ) -> Task:
        """Ask each question once.

        Args:
            config: the config. By default the dataset's.
            questions: a file of questions in the dataset's format, instead of a config.
            ids: only these questions.
            groups: only the questions in these groups.
            scores: the scores, or groups of scores, to compute.
        """
        loaded = scored.load(config, Path(questions) if questions else None)
        prompt = {"prompt": setting.prompt} if setting.prompt else {}
        asking = scored.asking(**setting.arguments, **prompt)
        return benchmark_task(
            scored, loaded, select(loaded, ids, groups), asking, setting.name, scores=scores
        )

    registered: Callable[..., Task] = task(name=setting.task)(ask_once)
    return registered


def select(questions: Questions, ids: Names = None, groups: Names = None) -> list[Question]:
    """Return the questions with these ids and in these groups, such as categories.

    None and "" select all.

    Raises InputError that names an id or group that no question has.
    """
    by_id = {question.id: question for question in questions.rows}
    groups_of = {id: set[str]().union(*each.groups.values()) for id, each in by_id.items()}
    all_groups = set[str]().union(*groups_of.values())
    wanted_ids, wanted_groups = dict.fromkeys(texts(ids)) or by_id, set(texts(groups))
    if unknown := [id for id in wanted_ids if id not in by_id]:
        raise InputError(
            f"no question has the id {unknown[0]!r}; an example of an id is {next(iter(by_id), '')!r}"
        )
    if unknown := sorted(wanted_groups - all_groups):
        raise unknown_name("no question is in", unknown[0], sorted(all_groups))
    return [
        question
        for id, question in by_id.items()
        if id in wanted_ids and (not wanted_groups or wanted_groups & groups_of[id])
    ]


def note_prediction(
    state: TaskState,
    fields: Mapping[str, Any],
    signed: Mapping[str, object],
    detail: Mapping[str, Any] | None = None,
    add_answer: bool = False,
) -> None:
    """Record a sample's prediction for the scorer: its fields as in a file, and how the model was asked.

    A solver calls it before the first call of the model, too, so that a failed call has its
    signature. ``detail`` is added to the details of the scoring, such as the passages that the
    model was given. See ``Record.detail``. With ``add_answer``, the model's answer becomes the
    field ``answer``, and the generation options of its last call are signed.
    """
    noted = {"prediction": fields, "signed": signed, "detail": detail or {}}
    values: Json = {name: dict(value) for name, value in noted.items()}
    state.store.set(STORE, values | {"add_answer": add_answer})


def inspect_scorer(scored: Benchmark) -> Callable[..., InspectScorer]:
    """Return a benchmark's scorer as one of Inspect, which has the benchmark's name.

    Its arguments are ``signed``, the fields of signatures that the task knows, ``groups`` of scores
    (a list, or a string with commas), and the options of ``Benchmark.scorer``.
    """

    @scorer(name=scored.name, metrics=[benchmark_scores(scored.name)])
    def score_answers(
        signed: Mapping[str, Any] | None = None, groups: Names = None, **options: Any
    ) -> InspectScorer:
        names = texts(groups) or scored.default_groups
        answers = scored.scorer(names, **options)
        # Without an official limit, the provider's own is a property of the system.
        default_limit = "max_tokens" if scored.limits_tokens() else DEFAULT_LIMIT

        async def score(state: TaskState, target: Target) -> Score:
            answer = answer_of(state)
            default = {"prediction": state.metadata.get(PREDICTED, {}), "add_answer": True}
            noted = state.store.get(STORE) or default
            fields, generation = noted["prediction"], {}
            if noted["add_answer"]:
                fields = fields if answer is None else {**fields, "answer": answer}
                generation = asked_with(default_limit)
            items = [Item(state.metadata["row"], fields or None)]
            async with concurrency("qabench scoring", answers.concurrency):
                ids = [str(state.sample_id)]
                (outcome,) = await anyio.to_thread.run_sync(
                    outcomes_of, answers, items, scored.name, ids
                )
            about = {
                "benchmark": scored.name,
                **(signed or {}),
                **noted.get("signed", {}),
                "model": str(state.model),
                **generation,
            }
            signatures = answers.signatures(items, about)
            # Inspect requires the same names in each sample's value. NaN values are left out when
            # logs are read.
            absent = {
                column: nan
                for each in scored.scores
                if each.group in signatures and not each.name.endswith(CUTOFF)
                for column in each.needs
            }
            usage = {"usage": dict(outcome.usage)} if outcome.usage else {}
            about_score: Json = {
                "answer": answer if outcome.answer is None else outcome.answer,
                "explanation": outcome.explanation,
                "metadata": {
                    "detail": {**outcome.detail, **noted.get("detail", {})},
                    "signatures": signatures,
                    **({"statuses": dict(outcome.statuses)} if outcome.statuses else {}),
                    **usage,
                },
            }
            if not outcome.scores and outcome.explanation:
                return Score.unscored(reason="grader_failed", **about_score)
            return Score(value=absent | dict(outcome.scores), **about_score)

        return score

    return score_answers


@metric(scores="unreduced")
def benchmark_scores(name: str) -> Metric:
    """Return the benchmark's scores over all answers and epochs, equal to the scores of ``qabench score``.

    Scores that are undefined, such as recall without errors, are left out.
    """

    def value(scores: list[SampleScore]) -> Value:
        return dict(metric_values(scores, benchmark(name).scores))

    return value
