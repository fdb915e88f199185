"""Rivers as an Inspect AI task."""

from __future__ import annotations

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from qabench.benchmarks.rivers import match
from qabench.evaluation.signature import signature
from qabench.loading_scripts import dataset_table, file_digest, open_path
from qabench.loading_scripts.rivers.parse import read_rows
from qabench.tasks.common import answer_of, chosen, means, sample, task_metadata
from qabench.tasks.replies import ask

PROMPT = "Answer with the name of the river.\n\n"


@scorer(name="rivers", metrics=[means()])
def rivers_scorer(data: str) -> Scorer:
    """Score whether the answer names the river."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = answer_of(state)
        line = signature("river_match", data=data, case="ignored", prompt="qabench", model=state.model)
        return Score(
            value={"match": match(target.text, answer)},
            answer=answer,
            metadata={"detail": {}, "signatures": {"match": line}},
        )

    return score


@task
def rivers(config: str = "sample", ids: str | None = None, continent: str | None = None) -> Task:
    """Ask for the rivers; of all questions, of those with these ids, or of those about a continent."""
    ((file,),) = dataset_table("rivers").config(config).splits.values()
    digest = file_digest("rivers", file)
    rows = list(read_rows(open_path("rivers", file)))
    samples = [
        sample(row["id"], PROMPT + row["question"], row["question"], row["answer"], {"continent": [row["continent"]]})
        for row in rows
    ]
    return Task(
        dataset=MemoryDataset(chosen(samples, ids, continent), name=f"qabench/rivers/{config}"),
        solver=ask(),
        scorer=rivers_scorer(digest),
        metadata=task_metadata("rivers", config, "closed-book", digest, len(rows)),
        fail_on_error=False,
        score_on_error=True,
    )
