"""``qabench.judge``: asks judges about what people labeled, and compares them with the labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.benchmarks.judging import Judging
from qabench.data.rows import Json, without_none
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.judge_quality import (
    JudgePair,
    Quality,
    group_tables,
    judge_pairs,
    pair_tables,
    quality,
    quality_table,
)
from qabench.evaluation.records import distinct
from qabench.evaluation.scoring import Progress, Question
from qabench.io.files import write_text
from qabench.io.tables import Displayed, Table
from qabench.llm.caller import Caller
from qabench.llm.client import Plan, usage_text
from qabench.llm.exchange import answered
from qabench.llm.routing import client_for
from qabench.loading_scripts.published import PublishedScore
from qabench.prompts.prompt import AUTO
from qabench.runs.predictions import evaluate_predictions

SEED = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a judge was asked, and what it cost."""

    evaluation: Evaluation
    usage: Plan
    failed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, repr=False)
class JudgeReport(Displayed):
    """How good judges are: their verdicts against human labels.

    Attributes:
        benchmark: the title of the benchmark.
        config: its config.
        labeled: what people labeled.
        qualities: one per judge and score.
        pairs: paired comparisons of the judges.
        usage: judge -> calls, tokens and cost, of judges that were asked here.
        published: published scores of other judges on the same labels.
        evaluations: judge -> its evaluation.
        notes: sentences about failed calls and questions that were left out.
        by: groupings that tables show. () shows all short ones.
    """

    benchmark: str
    config: str
    labeled: str
    qualities: Sequence[Quality]
    pairs: Sequence[JudgePair] = ()
    usage: Mapping[str, Plan] = field(default_factory=dict)
    published: Sequence[PublishedScore] = ()
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    notes: Sequence[str] = ()
    by: Sequence[str] = ()

    def tables(self) -> list[Table]:
        """Return the tables that ``print`` and notebooks show."""
        title = f"{self.benchmark} {self.config}: {self.labeled}"
        main = replace(quality_table(self.qualities), title=title)
        main.rows.extend(_published_rows(self.published))
        if self.published:
            main.notes.append(
                "published: scores of the authors' evaluators on all questions, without intervals"
            )
        tables = [main, *pair_tables(self.pairs), *group_tables(self.qualities, self.by)]
        if self.usage:
            tables.append(cost_table("Cost", self.usage))
        tables[0].notes.extend(self.notes)
        return tables

    def as_dict(self) -> Json:
        """Return the report as JSON data."""
        published: list[Json] = []
        for score in self.published:
            published.append({"judge": score.system, "measure": score.metric, "value": score.value})
        return {
            "benchmark": self.benchmark,
            "config": self.config,
            "labeled": self.labeled,
            "judges": [quality_of_judge.as_dict() for quality_of_judge in self.qualities],
            "pairs": [pair.as_dict() for pair in self.pairs],
            "usage": {judge: usage.as_dict() for judge, usage in self.usage.items()},
            "published": published,
            "notes": list(self.notes),
        }


def cost_table(title: str, usages: Mapping[str, Plan], notes: Sequence[str] = ()) -> Table:
    """Return the calls, tokens and cost of judges as a table. Without prices, a cost is unknown."""
    rows: list[list[Any]] = []
    for judge, usage in usages.items():
        cost = "unknown" if usage.cost is None else f"{usage.cost:.4f}"
        tokens = [usage.prompt_tokens, usage.completion_tokens]
        rows.append([judge, usage.calls, usage.cached, *tokens, cost])
    columns = ["judge", "calls", "from the cache", "prompt tokens", "reply tokens", "cost"]
    return Table(title, columns, rows, list(notes))


def _published_rows(published: Sequence[PublishedScore]) -> list[list[Any]]:
    """Return published scores as rows of the table of qualities, in which intervals stay empty."""
    rows: list[list[Any]] = []
    for score in published:
        rows.append(["published", score.metric, score.system, f"{score.value:.4f}", "", ""])
    return rows


def asked(
    benchmark: Benchmark,
    questions: Sequence[Question],
    caller: Caller,
    config: str | None,
    *,
    method: str | None = None,
    prompt: str = AUTO,
    progress: Progress | None = None,
    save: Path | None = None,
    **options: Any,
) -> Asked:
    """Ask a judge about questions whose answers people labeled, and score its replies.

    Replies are in the cache that all processes share, so a second call, or one after an interrupt
    or a limit of calls, only asks for the missing replies.

    Args:
        benchmark: the benchmark.
        questions: the questions to ask about.
        caller: the judge.
        config: a config of the benchmark.
        method: how the judge is asked. None for the default.
        prompt: "official", "auto", or another prompt that the method allows.
        progress: called with the number of replies so far, and the number of all calls.
        save: where the replies are written as predictions.
        **options: options for loading the questions, such as the split.

    Raises:
        InputError: people labeled nothing, or the judge gave no reply at all.
    """
    # Send the calls.
    judging = benchmark.judging()
    calls = judging.calls(questions, caller, method, prompt)
    client = client_for(caller)
    if caller.endpoint.why_unusable and client.plan([call.request for call in calls]).calls:
        raise InputError(f"{caller.model} cannot be asked: {caller.endpoint.why_unusable}")
    # In random order, so that the replies before an interrupt or a limit are about a random part.
    order = np.random.default_rng(SEED).permutation(len(calls)).tolist()
    requests = [calls[position].request for position in order]
    outcomes = client.complete(requests, progress, first_alone=True)
    outcome_of = dict(zip(order, outcomes, strict=True))

    # Read the replies, back in the order of the calls.
    replies = [answered(outcome_of[position]) for position in range(len(calls))]
    failed: dict[str, int] = {}
    for reply in replies:
        if reply.text is None:
            reason = reply.reason or "no reply"
            failed[reason] = failed.get(reason, 0) + 1
    if sum(failed.values()) == len(replies):
        raise InputError(f"{caller.model} gave no reply: {next(iter(failed), 'nothing to ask')}")

    # Score them as predictions of the judge.
    rows = judging.predictions(questions, calls, replies)
    if save:
        write_text(save, "".join(json.dumps(row) + "\n" for row in rows))
    evaluation = evaluate_predictions(
        benchmark.name, config, rows, **judging.options(caller.model), **options
    )
    ids = {question.id for question in questions}
    evaluation = replace(only_asked(evaluation, ids), model=caller.model)
    return Asked(evaluation, client.usage(outcomes), failed)


def only_asked(evaluation: Evaluation, ids: set[str]) -> Evaluation:
    """Return an evaluation without questions that the judge was not asked."""
    records = [record for record in evaluation.records if record.id in ids]
    return replace(evaluation, records=records, expected=len(records))


def chosen(questions: Sequence[Question], limit: int | None, seed: int = SEED) -> list[Question]:
    """Return a random subset of the questions, in their original order."""
    if limit is None or limit >= len(questions):
        return list(questions)
    positions = np.random.default_rng(seed).permutation(len(questions))[:limit]
    return [questions[position] for position in sorted(positions.tolist())]


def judge(
    name: str,
    judges: Sequence[Caller] | Sequence[Evaluation] | Sequence[Caller | Evaluation],
    config: str | None = None,
    *,
    limit: int | None = None,
    method: str | None = None,
    prompt: str = AUTO,
    published: bool = False,
    by: Sequence[str] = (),
    save: Path | None = None,
    progress: Callable[[str], Progress] | None = None,
    **options: Any,
) -> JudgeReport:
    """Compare the verdicts of judges with human labels.

    Args:
        name: the benchmark.
        judges: models to ask (``qabench.llm.caller.caller_for``), or evaluations with existing
            verdicts, such as the evaluation of a log.
        config: a config of the benchmark.
        limit: ask about a random subset of this many questions.
        method: how a judge is asked, such as FELM's "cot". None for the default.
        prompt: see ``asked``.
        published: add the published scores of judges on the same labels.
        by: groupings to show.
        save: where the replies of a single judge are written as predictions.
        progress: maps the name of a judge to the function that is called with the numbers of
            replies.
        **options: options for loading the questions, such as the split.

    Raises:
        InputError: see ``asked``, or no judge has a verdict on what people labeled.
    """
    benchmark = benchmark_of(name)
    judging = benchmark.judging()
    if not judging.labeled:
        raise InputError(
            f"{benchmark.title} has no labels of people to compare a judge with; `qabench sample` writes a table "
            "for labels of your own answers, and `qabench score --human` uses it"
        )

    # Every model is asked about the same questions. Judges whose verdicts exist are not asked.
    questions: list[Question] = []
    if any(isinstance(judge, Caller) for judge in judges):
        loaded = benchmark.load(config, None, **without_none(options)).rows
        questions = chosen(loaded, limit)
    evaluations: list[Evaluation] = []
    usages: list[Plan | None] = []
    notes: list[str] = []
    failures: list[InputError] = []
    for judge in judges:
        if isinstance(judge, Evaluation):
            evaluations.append(judge)
            usages.append(None)
            continue
        report = progress(judge.model) if progress else None
        try:
            result = asked(
                benchmark,
                questions,
                judge,
                config,
                method=method,
                prompt=prompt,
                progress=report,
                save=save,
                **without_none(options),
            )
        except InputError as error:
            # The other judges can still be compared.
            failures.append(error)
            notes.append(f"left out: {error}")
            continue
        evaluations.append(result.evaluation)
        usages.append(result.usage)
        notes.append(f"{judge.model}: {usage_text(result.usage)}")
        for reason, count in result.failed.items():
            notes.append(f"{judge.model}: {count} calls without a reply: {reason}")
    if not evaluations:
        raise failures[0]

    # Compare the verdicts with the labels.
    labels = distinct([evaluation.model for evaluation in evaluations])
    qualities = _qualities(judging, labels, evaluations)
    usage_of_asked = {}
    for label, usage in zip(labels, usages, strict=True):
        if usage is not None:
            usage_of_asked[label] = usage
    published_scores = []
    if published:
        for score in benchmark.numbers().published():
            # A published score that names no config is valid for every config.
            if score.config in ("", evaluations[0].config):
                published_scores.append(score)
    return JudgeReport(
        benchmark=benchmark.title,
        config=evaluations[0].config,
        labeled=judging.labeled,
        qualities=qualities,
        pairs=judge_pairs(qualities),
        usage=usage_of_asked,
        published=published_scores,
        evaluations=dict(zip(labels, evaluations, strict=True)),
        notes=notes,
        by=by,
    )


def _qualities(
    judging: Judging, labels: Sequence[str], evaluations: Sequence[Evaluation]
) -> list[Quality]:
    """Return how good judges are, for each score on which they have verdicts."""
    qualities = []
    reasons = []
    for label, evaluation in zip(labels, evaluations, strict=True):
        for score in judging.scores(evaluation):
            try:
                qualities.append(quality(label, score))
            except InputError as error:
                # A judge may have no verdict for one of several scores.
                reasons.append(str(error))
    if not qualities:
        raise InputError("; ".join(dict.fromkeys(reasons)) or "no judge has a verdict")
    return qualities
