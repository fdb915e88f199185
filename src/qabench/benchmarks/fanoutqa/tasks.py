"""FanOutQA's three settings as Inspect AI tasks: closed-book, open-book, evidence-provided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.model._model import active_model
from inspect_ai.scorer import Scorer
from inspect_ai.solver import Solver

from qabench.answers import loads, text_of
from qabench.benchmarks.fanoutqa import official_prompts, prompts
from qabench.benchmarks.fanoutqa.evidence import evidence_provided
from qabench.benchmarks.fanoutqa.official_prompts import AUTO, OFFICIAL, chosen_prompt, chosen_protocol
from qabench.benchmarks.fanoutqa.open_book import is_gpt_35, open_book
from qabench.benchmarks.fanoutqa.questions import groups_of, read_questions
from qabench.benchmarks.fanoutqa.scorer import fanoutqa_scorer
from qabench.benchmarks.fanoutqa.window import check_window
from qabench.evaluation.signature import digest, signature
from qabench.tasks.common import chosen, sample, task_metadata
from qabench.tasks.prompts import Prompt
from qabench.tasks.replies import ask

ANSWER_TOKENS = 520
"""The number of tokens reserved for the answer."""

Names = str | list[str] | None


@task
def fanoutqa_closed_book(
    config: str | None = None,
    questions: str | None = None,
    ids: Names = None,
    category: Names = None,
    metrics: str = "acc,rouge",
    lemmatizer: str = "auto",
    judge: dict[str, Any] | None = None,
    prompt: str = AUTO,
    protocol: str = AUTO,
) -> Task:
    """FanOutQA from memory: the model gets only the question.

    Args:
        config: dev (the default), dev_nov23, test, test_nov23 or sample. The answers to test questions are not public:
            they are not scored, but can be submitted to the leaderboard (``qabench fanoutqa submit``).
        questions: a file of questions in the official format, instead of a config.
        ids: ids of questions to ask, a list or a string with commas; by default all.
        category: categories of questions to ask, a list or a string with commas; by default all.
        metrics: some of "acc", "rouge", "bleurt" and "judge", separated by commas.
        lemmatizer: for "acc": "auto", "spacy" (official) or "simplemma".
        judge: for "judge": a mapping such as {"model": "m", "base_url": "URL"}, the arguments of
            ``qabench.benchmarks.fanoutqa.judge.judge_for``; by default from FANOUTQA_OPENAI_API_KEY,
            FANOUTQA_OPENAI_API_BASE and FANOUTQA_JUDGE_MODEL.
        prompt: "official": the authors' prompt, read from their file; "qabench": this project's; "auto": official if
            the file is available.
        protocol: "official": the authors' parameters (temperature 0, no token limit); "qabench": temperature 0 and at
            most 520 tokens; "auto": the same as the prompt.

    Raises:
        InputError: an unknown config, id, category, metric, prompt or protocol.
        SourceError: the questions, or with "official" the prompt, are not available.
    """
    which = chosen_prompt(prompt, official_prompts.CLOSED_BOOK)
    message = official_prompts.closed_book() if which == OFFICIAL else prompts.CLOSED_BOOK
    data = _Data(config, questions, ids, category, "closed-book", message, chosen_protocol(protocol, which))
    return data.task(ask(), metrics, lemmatizer, judge)


@task
def fanoutqa_open_book(
    config: str | None = None,
    questions: str | None = None,
    ids: Names = None,
    category: Names = None,
    metrics: str = "acc,rouge",
    lemmatizer: str = "auto",
    judge: dict[str, Any] | None = None,
    prompt: str = AUTO,
    protocol: str = AUTO,
    search: str = AUTO,
    turns: int = 20,
    context_length: int | None = None,
    tokenizer: str | None = None,
    wiki: str | None = None,
) -> Task:
    """FanOutQA with Wikipedia: the model searches for what it needs, then answers.

    Without ``wiki``, the environment chooses the Wikipedia (live at the dataset's epoch with a cache, a ZIM file, or a
    Kiwix server): see ``qabench.retrieval.wiki.client``.

    Args:
        config: see ``fanoutqa_closed_book``.
        questions: see ``fanoutqa_closed_book``.
        ids: see ``fanoutqa_closed_book``.
        category: see ``fanoutqa_closed_book``.
        metrics: see ``fanoutqa_closed_book``.
        lemmatizer: see ``fanoutqa_closed_book``; the retriever uses the same one.
        judge: see ``fanoutqa_closed_book``.
        prompt: see ``fanoutqa_closed_book``.
        protocol: "official": one tool, ``search``, and the authors' handling of the conversation; "qabench": a second
            tool that reads a page again, a limit of turns, and the oldest results are dropped first; "auto": the same
            as the prompt. Official also ranks the fragments of a page by the whole question row, as the authors'
            runner does; this project's protocol ranks them by the question.
        search: how the model searches: "tools", "text" (it writes ``<search>query</search>``), or "auto": tools, and
            text for a model whose provider rejects them.
        turns: with protocol "qabench", the maximum number of replies before the model must answer.
        context_length: the model's context window in tokens; by default the one that Inspect knows.
        tokenizer: the tokenizer that counts tokens: a folder with a tokenizer.json, that file, or a repository on the
            Hub; by default the model's tokenizer if it is available, else a documented estimate.
        wiki: a ZIM file of Wikipedia.

    Raises:
        InputError: as ``fanoutqa_closed_book``; an unknown search, ``turns`` below 1, an unknown window.
        SourceError: as ``fanoutqa_closed_book``.
    """
    which = chosen_prompt(prompt, official_prompts.OPEN_BOOK)
    how = chosen_protocol(protocol, which)
    strings = official_prompts.open_book() if OFFICIAL in (which, how) else None
    own = {"tools": prompts.OPEN_BOOK, "text": prompts.OPEN_BOOK_TEXT}
    by_search = {"tools": strings.tools, "text": strings.text} if strings and which == OFFICIAL else own
    check_window(context_length)
    solver = open_book(
        by_search,
        strings if how == OFFICIAL else None,
        ANSWER_TOKENS,
        search,
        turns,
        context_length,
        tokenizer,
        lemmatizer,
        wiki,
    )
    first = by_search["text" if search == "text" else "tools"]
    if strings and first is strings.tools and (model := active_model()) and is_gpt_35(model):
        first = strings.tools_gpt_35
    data = _Data(config, questions, ids, category, "open-book", first, how)
    return data.task(solver, metrics, lemmatizer, judge)


@task
def fanoutqa_evidence_provided(
    config: str | None = None,
    questions: str | None = None,
    ids: Names = None,
    category: Names = None,
    metrics: str = "acc,rouge",
    lemmatizer: str = "auto",
    judge: dict[str, Any] | None = None,
    prompt: str = AUTO,
    protocol: str = AUTO,
    context_length: int | None = None,
    tokenizer: str | None = None,
    wiki: str | None = None,
) -> Task:
    """FanOutQA with the necessary pages: their best fragments by BM25+, as many as fit into the model's window.

    Args:
        config: see ``fanoutqa_closed_book``.
        questions: see ``fanoutqa_closed_book``.
        ids: see ``fanoutqa_closed_book``.
        category: see ``fanoutqa_closed_book``.
        metrics: see ``fanoutqa_closed_book``.
        lemmatizer: see ``fanoutqa_open_book``.
        judge: see ``fanoutqa_closed_book``.
        prompt: see ``fanoutqa_closed_book``.
        protocol: "official": the unchanged list of evidence, with repeated pages, and no token limit; "qabench":
            without repeated pages, and at most 520 tokens; "auto": the same as the prompt.
        context_length: see ``fanoutqa_open_book``.
        tokenizer: see ``fanoutqa_open_book``.
        wiki: see ``fanoutqa_open_book``; by default, the environment chooses the Wikipedia.

    Raises:
        InputError: as ``fanoutqa_closed_book``; an unknown window.
        SourceError: as ``fanoutqa_closed_book``.
    """
    which = chosen_prompt(prompt, official_prompts.EVIDENCE_PROVIDED)
    how = chosen_protocol(protocol, which)
    message, document = prompts.EVIDENCE_PROVIDED, None
    if which == OFFICIAL:
        message, document = official_prompts.evidence_provided().prompt, official_prompts.evidence_provided().document
    check_window(context_length)
    data = _Data(config, questions, ids, category, "evidence-provided", message, how)
    solver = evidence_provided(
        message, document, how == OFFICIAL, ANSWER_TOKENS, context_length, tokenizer, lemmatizer, wiki
    )
    return data.task([solver, ask()], metrics, lemmatizer, judge)


class _Data:
    """The selected questions of a config or a file, and the first fields of the signatures of their scores."""

    def __init__(
        self,
        config: str | None,
        questions: str | None,
        ids: Names,
        category: Names,
        setting: str,
        prompt: Prompt,
        protocol: str,
    ) -> None:
        self.questions = read_questions(config, questions)
        self.setting = setting
        self.prompt = prompt
        self.protocol = protocol
        queries = self.questions.source_rows() if setting == "open-book" and protocol == OFFICIAL else {}
        self.samples = chosen(
            (_sample(row, prompt, queries.get(row["id"])) for row in self.questions.rows), ids, category
        )

    def task(self, solver: Solver | list[Solver], metrics: str, lemmatizer: str, judge: dict[str, Any] | None) -> Task:
        """Return the task of a setting."""
        about = task_metadata("fanoutqa", self.questions.config, self.setting, self.questions.data_digest)
        about["available"] = len(self.questions.rows)
        about["signatures"] = {"run": signature("fanout_run", benchmark="fanoutqa", **self._signed())}
        if not self.questions.public:
            about["unscored"] = (
                "the answers to test questions are not public; submit the model's answers: `qabench fanoutqa submit`"
            )
        limit = None if self.protocol == OFFICIAL else ANSWER_TOKENS
        return Task(
            dataset=MemoryDataset(self.samples, name=f"qabench/fanoutqa/{self.questions.config}"),
            solver=solver,
            scorer=self._scorer(metrics, lemmatizer, judge),
            config=GenerateConfig(temperature=0, max_tokens=limit),
            metadata=about,
            # A failed question is unanswered: the others continue, it scores 0, and a retry asks it again.
            fail_on_error=False,
            score_on_error=True,
        )

    def _signed(self) -> dict[str, Any]:
        return {
            "config": self.questions.config,
            "data": self.questions.data_digest,
            "setting": self.setting,
            "prompt": self.prompt.label,
            "protocol": self.protocol,
        }

    def _scorer(self, metrics: str, lemmatizer: str, judge: dict[str, Any] | None) -> Scorer | None:
        references = [loads((sample.metadata or {})["answer"]) for sample in self.samples if self.questions.public]
        signed = self._signed() | {"references": digest(references)}
        scorer = fanoutqa_scorer(metrics, lemmatizer, judge, signed=signed)
        return scorer if self.questions.public else None


def _sample(row: Mapping[str, Any], prompt: Prompt, query: str | None) -> Sample:
    answer = {"answer": row["answer"]} if "answer" in row else {}
    with_evidence = "documents" in prompt.fields()
    return sample(
        row["id"],
        row["question"] if with_evidence else prompt.filled(question=row["question"]),
        row["question"],
        text_of(loads(row["answer"])) if answer else "",
        groups_of(row),
        **answer,
        **({"necessary_evidence": row["necessary_evidence"]} if with_evidence else {}),
        **({"query": query} if query is not None else {}),
    )
