"""fastbook-benchmark's setting: a model answers from passages of the question's chapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from qabench.benchmarks import benchmark
from qabench.benchmarks.fastbook.answer_components import longest_passage
from qabench.benchmarks.fastbook.prompt import PROMPT, messages
from qabench.benchmarks.fastbook.retrieval import Retrieval, retrieve
from qabench.benchmarks.plan import Names, TaskPlan, select
from qabench.data.rows import Row
from qabench.evaluation.scoring import Messages

FASTBOOK = benchmark("fastbook")

# Reference answers have a few sentences, so this limit does not truncate a concise answer.
ANSWER_TOKENS = 500


def fastbook_rag(
    config: str = "questions",
    method: Literal["bm25", "fts", "dense", "colbert"] = "bm25",
    query: Literal["question", "keywords"] | None = None,
    k: int = 10,
    retriever_model: str | None = None,
    chapters: Names = None,
    ids: Names = None,
) -> TaskPlan:
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
        retriever_model: the encoder of "dense" or "colbert": NAME, NAME@REVISION or a folder.
        chapters: only the questions of these chapters.
        ids: only these questions.

    Raises:
        InputError: an unknown option, chapter or id.
        MissingExtra: a package of the method is not installed.
        SourceError: the data is not available.
    """
    questions = FASTBOOK.load(config)
    selected = select(questions, ids, chapters)
    retrieval = retrieve(selected, config, method, query, k, retriever_model)
    return TaskPlan(
        questions,
        selected,
        AskWithPassages(retrieval, k),
        f"rag {method}",
        groups=list(FASTBOOK.groups),
        predicted=retrieval.predicted,
    )


@dataclass(frozen=True)
class AskWithPassages:
    """Asks once, with the passages that a method retrieved for the question."""

    retrieval: Retrieval
    k: int
    parameters: ClassVar[Mapping[str, Any]] = {"temperature": 0, "max_tokens": ANSWER_TOKENS}

    @property
    def scoring(self) -> dict[str, Any]:
        """Return the options of the scorer."""
        texts: set[str] = set()
        for fields in self.retrieval.predicted.values():
            texts.update(fields["passages"])
        return {"k": self.k, "longest": longest_passage(texts)}

    def messages(self, row: Row) -> Messages:
        """Return the prompt with the passages, numbered from 1."""
        passages = self.retrieval.predicted[row["id"]]["passages"]
        return messages(passages, row["question_text"])

    def fields(self) -> dict[str, object]:
        """Return the fields of signatures for the retrieval and the prompt."""
        return {**self.retrieval.about, "passages": self.k, "prompt": PROMPT.label}
