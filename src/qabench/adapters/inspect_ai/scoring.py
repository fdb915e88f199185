"""A benchmark's scorer as an Inspect AI scorer, and its scores as an Inspect AI metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan, nan
from typing import Any

import anyio
from inspect_ai.scorer import Metric, SampleScore, Score, Target, Value, metric, scorer
from inspect_ai.scorer import Scorer as InspectScorer
from inspect_ai.solver import TaskState
from inspect_ai.util import concurrency

from qabench.adapters.inspect_ai.conversation import PREDICTED, STORE
from qabench.adapters.inspect_ai.replies import answer_of, asked_with
from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.benchmarks.base import DEFAULT_LIMIT
from qabench.benchmarks.plan import Names, split_texts
from qabench.data.rows import Json
from qabench.evaluation import ANSWERED, Record
from qabench.evaluation.records import values_of
from qabench.evaluation.score_spec import CUTOFF, ScoreSpec
from qabench.evaluation.scoring import Item, Outcome, outcomes_of


def inspect_scorer(benchmark: Benchmark) -> Callable[..., InspectScorer]:
    """Return a benchmark's scorer as an Inspect scorer that has the benchmark's name.

    Its arguments are ``signed`` (the signature fields that the task knows), ``groups`` (the groups
    of scores, as a list or a string with commas), and the options of ``Benchmark.scorer``.
    """

    @scorer(name=benchmark.name, metrics=[benchmark_scores(benchmark.name)])
    def score_answers(
        signed: Mapping[str, Any] | None = None, groups: Names = None, **options: Any
    ) -> InspectScorer:
        scorer = benchmark.scorer(split_texts(groups) or benchmark.default_groups, **options)
        # If the benchmark sets no token limit, the provider's own limit is a property of the
        # system.
        default_limit = "max_tokens" if benchmark.limits_tokens() else DEFAULT_LIMIT

        async def score(state: TaskState, target: Target) -> Score:
            answer = answer_of(state)
            noted = state.store.get(STORE) or _noted_without_protocol(benchmark, state)
            fields = dict(noted["prediction"])
            generation: Json = {}
            if noted["add_answer"]:
                generation = asked_with(default_limit)
                if answer is not None:
                    fields["answer"] = answer
            items = [Item(state.metadata["row"], fields or None)]
            async with concurrency("qabench scoring", scorer.concurrency):
                (outcome,) = await anyio.to_thread.run_sync(
                    outcomes_of, scorer, items, benchmark.name, [str(state.sample_id)]
                )
            about = {
                "benchmark": benchmark.name,
                **(signed or {}),
                **noted.get("signed", {}),
                "model": str(state.model),
                **generation,
            }
            signatures = scorer.signatures(items, about)
            detail = {**outcome.detail, **noted.get("detail", {})}
            return _score_of_inspect(benchmark, outcome, answer, detail, signatures)

        return score

    return score_answers


def _noted_without_protocol(benchmark: Benchmark, state: TaskState) -> Json:
    """Return what ``note_prediction`` would have recorded, for a solver that did not call it."""
    fields_of_task = state.metadata.get(PREDICTED, {})
    fields_of_solver = benchmark.logs().fields_of_solver(state.metadata)
    return {"prediction": {**fields_of_task, **fields_of_solver}, "add_answer": True}


def _score_of_inspect(
    benchmark: Benchmark,
    outcome: Outcome,
    answer: str | None,
    detail: Mapping[str, Any],
    signatures: Mapping[str, str],
) -> Score:
    metadata: Json = {"detail": detail, "signatures": signatures}
    if outcome.statuses:
        metadata["statuses"] = dict(outcome.statuses)
    if outcome.usage:
        metadata["usage"] = dict(outcome.usage)
    fields: Json = {
        "answer": answer if outcome.answer is None else outcome.answer,
        "explanation": outcome.explanation,
        "metadata": metadata,
    }
    if not outcome.scores and outcome.explanation:
        return Score.unscored(reason="grader_failed", **fields)
    # Inspect requires the same names in each sample's value. NaN values are left out when logs are
    # read.
    values: dict[str, float] = {}
    for spec in benchmark.scores:
        if spec.group in signatures and not spec.name.endswith(CUTOFF):
            values.update(dict.fromkeys(spec.needs, nan))
    values.update(outcome.scores)
    return Score(value=dict(values), **fields)


@metric(scores="unreduced")
def benchmark_scores(name: str) -> Metric:
    """Return a metric with the benchmark's scores over all epochs, as in ``qabench score``."""

    def value(scores: list[SampleScore]) -> Value:
        return dict(metric_values(scores, benchmark_of(name).scores))

    return value


def metric_values(scores: Sequence[SampleScore], specs: Sequence[ScoreSpec]) -> dict[str, float]:
    """Return a benchmark's scores by name, computed over all answers and epochs."""
    # Inspect passes one epoch after the other, and the last digit of a mean depends on the order.
    # So the scores are put in the order of a log's records, where the epochs of a question are together.
    by_question: dict[str | int | None, list[SampleScore]] = {}
    for score in scores:
        by_question.setdefault(score.sample_id, []).append(score)
    records: list[Record] = []
    for epochs in by_question.values():
        for score in epochs:
            columns = _columns(score.score.value)
            id = str(score.sample_id)
            records.append(Record(id, len(records), "", "", (), None, ANSWERED, scores=columns))
    values = values_of(specs, records)
    if not any((score.score.answer or "").strip() for score in scores):
        # If there are no answers, nothing was measured, and 0 would look like a score.
        return dict.fromkeys(values, nan)
    return values


def _columns(value: Value) -> dict[str, float]:
    """Return the numbers of a sample's value by name, without undefined ones."""
    columns: dict[str, float] = {}
    if isinstance(value, dict):
        for name, number in value.items():
            if number is not None and not isnan(float(number)):
                columns[name] = float(number)
    return columns
