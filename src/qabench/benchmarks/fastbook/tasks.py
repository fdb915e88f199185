"""fastbook-benchmark as an Inspect AI task: answers from passages retrieved from the question's chapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig

from qabench.benchmarks.fastbook.scorer import fastbook_scorer, study_of
from qabench.benchmarks.fastbook.study.methods import parse_method
from qabench.benchmarks.fastbook.study.neural import COLBERT_MODEL, DENSE_MODEL
from qabench.benchmarks.fastbook.study.study import Outcome, Study, run
from qabench.prompts.template import DATA_NOT_INSTRUCTIONS, Prompt
from qabench.retrieval import Hits
from qabench.tasks.common import chosen, sample, task_metadata
from qabench.tasks.replies import ask

ANSWER_TOKENS = 500
PROMPT = Prompt(
    "qabench",
    f"""Answer the question with the following passages of a textbook, in full sentences. Answer everything that was
asked, and nothing else. If the passages do not contain the answer, say so.

<passages>
{{passages}}
</passages>

{DATA_NOT_INSTRUCTIONS}

Question: {{question}}""",
)


@task
def fastbook_rag(
    config: str = "questions",
    method: str = "bm25",
    query: str | None = None,
    k: int = 10,
    chunk_size: int = 500,
    overlap: int | None = None,
    chunker: str = "sentences",
    chapters: Sequence[str] | str | None = None,
    ids: Sequence[str] | str | None = None,
    dense_model: str = DENSE_MODEL,
    colbert_model: str = COLBERT_MODEL,
) -> Task:
    """fastbook: answer a question from the k best passages of its chapter.

    Retrieval is scored as in ``qabench fastbook retrieve``, by Answer Component MRR@k and Recall@k. The benchmark does
    not score answers: ROUGE against its reference answers is an addition of this project.

    Args:
        config: "questions" or "sample".
        method: "bm25", "fts", "dense", "colbert", "hybrid" or "hybrid:A,B". Passages are retrieved when the task is
            created, before the first question is asked.
        query: "question" or "keywords"; by default keywords for fts and the question for the other methods.
        k: the number of passages in the prompt.
        chunk_size: the maximum number of tokens of a passage.
        overlap: the maximum number of tokens that passages share; None for the source's choice.
        chunker: "sentences", or "llama-index", which the source uses.
        chapters: only the questions of these chapters.
        ids: only these questions.
        dense_model: the model of "dense".
        colbert_model: the model of "colbert".

    Raises:
        InputError: an unknown option, chapter or id.
        MissingExtra: a package of the method is not installed.
        SourceError: the data is not available.
    """
    chunking: dict[str, Any] = {"config": config, "chunk_size": chunk_size, "overlap": overlap, "chunker": chunker}
    study = study_of(**chunking)
    kept = {str(one.id) for one in chosen(map(_sample, study.questions), ids, chapters)}
    part = replace(study, questions=[row for row in study.questions if row["id"] in kept], memory={})
    outcome = run(part, parse_method(method, query, dense_model, colbert_model), k)
    samples = [_asked(row, found, study) for row, found in zip(part.questions, outcome.hits, strict=True)]
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/fastbook/{config}"),
        solver=ask(),
        scorer=fastbook_scorer(k=k, signed=_signed(outcome), **chunking),
        config=GenerateConfig(temperature=0, max_tokens=ANSWER_TOKENS),
        metadata=task_metadata(
            "fastbook", config, f"rag {outcome.method.name}", study.about["data"], available=len(study.questions)
        ),
        fail_on_error=False,
        score_on_error=True,
    )


def _sample(row: Mapping[str, Any], **metadata: Any) -> Sample:
    groups = {"chapter": [str(row["chapter"])]}
    return sample(row["id"], "", row["question_text"], row["gold_standard_answer"], groups, **metadata)


def _asked(row: Mapping[str, Any], found: Hits, study: Study) -> Sample:
    """The sample with its prompt, and the chunks that the prompt contains."""
    chunks = study.corpus[row["chapter"]]
    passages = [f"[{rank}]\n{chunks[position]}" for rank, position in enumerate(found.positions, start=1)]
    made = _sample(row, hits=[list(hit) for hit in zip(found.positions, found.scores, strict=True)])
    shown = "\n\n".join(passages) or "(none)"
    ((_, made.input),) = PROMPT.messages(passages=shown, question=row["question_text"])
    return made


def _signed(outcome: Outcome) -> dict[str, Any]:
    """The signature of the retrieval, and further fields for that of the answers."""
    about = outcome.study.about
    return {
        "retrieval": outcome.signature,
        "answers": {"config": about["config"], "data": about["data"], "prompt": PROMPT.label},
    }
