"""FanOutQA's three settings as Inspect AI tasks: closed-book, open-book, evidence-provided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Scorer
from inspect_ai.solver import Solver

from qabench.answers import loads, text_of, type_name
from qabench.benchmarks.fanoutqa import prompts
from qabench.benchmarks.fanoutqa.evidence import evidence_provided
from qabench.benchmarks.fanoutqa.judge_scorer import fanoutqa_judge
from qabench.benchmarks.fanoutqa.open_book import open_book
from qabench.benchmarks.fanoutqa.predictions import METRICS
from qabench.benchmarks.fanoutqa.scorer import fanoutqa_scorer
from qabench.errors import InputError
from qabench.loading_scripts import dataset_table, file_digest, open_path
from qabench.loading_scripts.fanoutqa.parse import read_rows
from qabench.signature import digest
from qabench.tasks.common import ask, chosen, sample, task_metadata, texts
from qabench.tasks.context_window import check_window

ANSWER_TOKENS = 520
"""The tokens that the official settings keep free for the answer."""
JUDGE = "judge"

Names = str | list[str] | None


@task
def fanoutqa_closed_book(
    config: str = "dev",
    ids: Names = None,
    category: Names = None,
    metrics: str = "acc,rouge",
    lemmatizer: str = "auto",
) -> Task:
    """FanOutQA from memory: the question alone.

    Args:
        config: dev, dev_nov23, test, test_nov23 or sample. The answers of test questions are not public: they are
            asked and not scored, for a submission to the leaderboard (``qabench export``).
        ids: ids of questions to ask; by default all. A list, or a text with commas.
        category: categories of questions to ask; likewise.
        metrics: of "acc", "rouge" and "judge", with commas. The judge is the one that FANOUTQA_OPENAI_API_KEY,
            FANOUTQA_OPENAI_API_BASE and FANOUTQA_JUDGE_MODEL name; see ``qabench.benchmarks.fanoutqa.judge``.
        lemmatizer: for "acc": "auto", "spacy" (official) or "simplemma".

    Raises:
        InputError: an unknown config, id, category or metric.
        SourceError: the questions cannot be had.
    """
    data = _Data(config, ids, category)
    return data.task("closed-book", ask(), metrics, lemmatizer, prompts.closed_book)


@task
def fanoutqa_open_book(
    config: str = "dev",
    ids: Names = None,
    category: Names = None,
    metrics: str = "acc,rouge",
    lemmatizer: str = "auto",
    protocol: str = "auto",
    turns: int = 20,
    context_length: int | None = None,
    tokenizer: str | None = None,
) -> Task:
    """FanOutQA with Wikipedia at hand: the model looks up what it needs, then answers.

    Which Wikipedia that is (live at the dataset's epoch with a cache, or a Kiwix server) is said by the environment:
    see ``qabench.retrieval.wiki.client``.

    Args:
        config, ids, category, metrics, lemmatizer: see ``fanoutqa_closed_book``; the retriever has the same lemmatizer.
        protocol: how the model looks things up: "tools", "text" (it writes ``<search>query</search>``), or "auto":
            tools, and text for a model whose provider refuses them.
        turns: the most replies before the model must answer.
        context_length: the model's window in tokens; by default what Inspect knows of the model.
        tokenizer: what counts tokens: a folder or file with a tokenizer.json, or a repository of the Hub; by default
            the model's own where it can be had, else a stated estimate.

    Raises:
        InputError: as ``fanoutqa_closed_book``; an unknown protocol, no turns, an unknown window.
        SourceError: the questions cannot be had.
    """
    data = _Data(config, ids, category)
    check_window(context_length)
    solver = open_book(ANSWER_TOKENS, protocol, turns, context_length, tokenizer, lemmatizer)
    return data.task("open-book", solver, metrics, lemmatizer, prompts.open_book)


@task
def fanoutqa_evidence_provided(
    config: str = "dev",
    ids: Names = None,
    category: Names = None,
    metrics: str = "acc,rouge",
    lemmatizer: str = "auto",
    context_length: int | None = None,
    tokenizer: str | None = None,
) -> Task:
    """FanOutQA with the necessary pages given: their best fragments by BM25+ until the model's window is full.

    Args:
        config, ids, category, metrics, lemmatizer, context_length, tokenizer: see ``fanoutqa_open_book``.

    Raises:
        InputError: as ``fanoutqa_closed_book``; an unknown window. SourceError: the questions cannot be had.
    """
    data = _Data(config, ids, category)
    check_window(context_length)
    solver = [evidence_provided(ANSWER_TOKENS, context_length, tokenizer, lemmatizer), ask()]
    return data.task("evidence-provided", solver, metrics, lemmatizer, str, with_evidence=True)


class _Data:
    """A config's questions, those that were chosen, and what a score says of them."""

    def __init__(self, config: str, ids: Names, category: Names) -> None:
        table = dataset_table("fanoutqa")
        self.config = table.config(config)
        ((split, (file,)),) = self.config.splits.items()
        self.public = split != "test"
        self.digest = file_digest(table.name, file)
        self._rows = {row["id"]: row for row in read_rows(open_path(table.name, file), self.config.name)}
        self.samples = chosen((_sample(row) for row in self._rows.values()), ids, category)

    def task(
        self,
        setting: str,
        solver: Solver | list[Solver],
        metrics: str,
        lemmatizer: str,
        prompt: Callable[[str], str],
        with_evidence: bool = False,
    ) -> Task:
        """The task of a setting."""
        for one in self.samples:
            row = self._rows[str(one.id)]
            one.input = prompt(row["question"])
            if with_evidence:
                one.metadata = (one.metadata or {}) | {"necessary_evidence": row["necessary_evidence"]}
        about = task_metadata("fanoutqa", self.config.name, setting, self.digest)
        if not self.public:
            about["unscored"] = (
                "the answers to test questions are not public; `qabench export` gives the model's, for the leaderboard"
            )
        return Task(
            dataset=MemoryDataset(self.samples, name=f"qabench/fanoutqa/{self.config.name}"),
            solver=solver,
            scorer=self._scorers(metrics, lemmatizer),
            config=GenerateConfig(temperature=0, max_tokens=ANSWER_TOKENS),
            metadata=about,
            # A question that fails is an unanswered one: the others go on, it scores 0, and a retry asks it again.
            fail_on_error=False,
            score_on_error=True,
        )

    def _scorers(self, metrics: str, lemmatizer: str) -> list[Scorer] | None:
        wanted = texts(metrics)
        if not wanted or set(wanted) - {*METRICS, JUDGE}:
            raise InputError(f"metrics are {metrics!r}; allowed: {', '.join(METRICS)}, {JUDGE}, with commas")
        if not self.public:
            return None
        references = [loads(self._rows[str(one.id)]["answer"]) for one in self.samples]
        signed = {"config": self.config.name, "data": self.digest, "references": digest(references)}
        pure = ",".join(name for name in wanted if name != JUDGE)
        scorers = [fanoutqa_scorer(pure, lemmatizer, signed)] if pure else []
        return [*scorers, fanoutqa_judge(signed=signed)] if JUDGE in wanted else scorers


def _sample(row: Mapping[str, Any]) -> Sample:
    groups = {"category": row["categories"], "evidence": [f"{len(row['necessary_evidence'])} pages"]}
    if "answer" not in row:
        return sample(row["id"], "", row["question"], "", groups)
    answer = loads(row["answer"])
    groups["type"] = [type_name(answer)]
    return sample(row["id"], "", row["question"], text_of(answer), groups, answer=row["answer"])
