"""fastbook-benchmark as an Inspect AI task: answers from passages retrieved from the question's chapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from inspect_ai import Task, task

from qabench.adapters.inspect import Names, benchmark_task, inspect_scorer, select
from qabench.benchmarks import benchmark
from qabench.benchmarks.fastbook.retrieval import COLBERT_MODEL, DENSE_MODEL, parse_method
from qabench.benchmarks.fastbook.study import Retrieval, load_study, run
from qabench.data.rows import Row
from qabench.evaluation.scoring import Messages
from qabench.tasks.prompts import DATA_NOT_INSTRUCTIONS, Prompt

FASTBOOK = benchmark("fastbook")
fastbook_scorer = inspect_scorer(FASTBOOK)

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
    method: Literal["bm25", "fts", "dense", "colbert"] = "bm25",
    query: Literal["question", "keywords"] | None = None,
    k: int = 10,
    chunk_size: int = 500,
    overlap: int | None = None,
    chunker: Literal["sentences", "llama-index"] = "sentences",
    chapters: Names = None,
    ids: Names = None,
    dense_model: str = DENSE_MODEL,
    colbert_model: str = COLBERT_MODEL,
) -> Task:
    """fastbook: answer a question from the k best passages of its chapter.

    Retrieval is scored as in ``qabench fastbook retrieve``, by Answer Component MRR@k and Recall@k.
    The benchmark does not score answers: ROUGE against its reference answers is an addition of this
    project.

    Args:
        config: "questions" or "sample".
        method: "bm25", "fts", "dense" or "colbert". Passages are retrieved when the task is
            created.
        query: "question" or "keywords". By default keywords for fts and the question for the other
            methods.
        k: the number of passages in the prompt.
        chunk_size: the maximum number of tokens of a passage.
        overlap: the maximum number of tokens that passages share. None for the source's choice.
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
    study = load_study(config, chunk_size, overlap, chunker)
    questions = FASTBOOK.load(config)
    selected = select(questions, ids, chapters)
    part = replace(study, questions=[question.row for question in selected])
    asking = AskWithPassages(run(part, parse_method(method, query, dense_model, colbert_model), k))
    return benchmark_task(
        FASTBOOK,
        questions,
        selected,
        asking,
        f"rag {asking.retrieval.method.name}",
        scores=tuple(FASTBOOK.groups),
        predicted=asking.retrieval.predicted,
    )


@dataclass(frozen=True)
class AskWithPassages:
    """Asks once, with the passages that a method retrieved for the question."""

    retrieval: Retrieval
    parameters: ClassVar[Mapping[str, Any]] = {"temperature": 0, "max_tokens": ANSWER_TOKENS}

    @property
    def scoring(self) -> dict[str, Any]:
        """Return the options of the scorer."""
        return {"k": self.retrieval.k, "longest": self.retrieval.scores.longest}

    def messages(self, row: Row) -> Messages:
        """Return the prompt with the passages, numbered from 1."""
        passages = self.retrieval.predicted[row["id"]]["passages"]
        shown = "\n\n".join(f"[{rank}]\n{text}" for rank, text in enumerate(passages, start=1))
        return PROMPT.messages(passages=shown or "(none)", question=row["question_text"])

    def fields(self) -> dict[str, object]:
        """Return the fields of signatures for the retrieval and the prompt."""
        method = self.retrieval.method
        return {
            **self.retrieval.study.about,
            "method": method.name,
            "query": method.query,
            "retriever_model": method.model,
            "passages": self.retrieval.k,
            "prompt": PROMPT.label,
        }
