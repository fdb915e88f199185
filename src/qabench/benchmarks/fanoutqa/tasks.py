"""FanOutQA's three settings as Inspect AI tasks (closed-book, open-book, evidence-provided), and their scorer."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any, Literal

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.model._model import active_model
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import Solver, TaskState
from inspect_ai.util import concurrency

from qabench.answers import UNANSWERED, loads, text_of
from qabench.benchmarks.fanoutqa import prompts
from qabench.benchmarks.fanoutqa.evaluate import COLUMNS, add_evidence, score_answers, scorers_of
from qabench.benchmarks.fanoutqa.evidence import evidence_provided
from qabench.benchmarks.fanoutqa.open_book import is_gpt_35, open_book
from qabench.benchmarks.fanoutqa.questions import groups_of, read_questions
from qabench.benchmarks.fanoutqa.window import ANSWER_TOKENS, check_window
from qabench.errors import InputError
from qabench.evaluation.signature import digest, signature
from qabench.tasks.common import answer_of, chosen, means, sample, task_metadata, texts
from qabench.tasks.prompts import AUTO, OFFICIAL, Origin, Prompt, chosen_protocol
from qabench.tasks.replies import ask, asked_with

Names = str | list[str] | None
Lemmatizer = Literal["auto", "spacy", "simplemma"]


@task
def fanoutqa_closed_book(
    config: str | None = None,
    questions: str | None = None,
    ids: Names = None,
    category: Names = None,
    metrics: str = "acc,rouge",
    lemmatizer: Lemmatizer = "auto",
    judge: dict[str, Any] | None = None,
    prompt: Origin = AUTO,
    protocol: Origin = AUTO,
) -> Task:
    """FanOutQA from memory: the model gets only the question.

    Args:
        config: dev (the default), dev_nov23, test, test_nov23 or sample. The answers to test
            questions are not public: they are not scored, but can be submitted to the leaderboard
            (``qabench fanoutqa submit``).
        questions: a file of questions in the official format, instead of a config.
        ids: ids of questions to ask, a list or a string with commas; by default all.
        category: categories of questions to ask, a list or a string with commas; by default all.
        metrics: some of "acc", "rouge", "bleurt" and "judge", separated by commas.
        lemmatizer: for "acc": "auto", "spacy" (official) or "simplemma".
        judge: for "judge": a mapping such as {"model": "m", "base_url": "URL"}, the arguments of
            ``qabench.benchmarks.fanoutqa.judge.judge_for``; by default from
            FANOUTQA_OPENAI_API_KEY, FANOUTQA_OPENAI_API_BASE and FANOUTQA_JUDGE_MODEL.
        prompt: "official": the authors' prompt, read from their file; "qabench": this project's;
            "auto": official if the file is available.
        protocol: "official": the authors' parameters (temperature 0, no token limit); "qabench":
            temperature 0 and at most 520 tokens; "auto": the same as the prompt.

    Raises:
        InputError: an unknown config, id, category, metric, prompt or protocol.
        SourceError: the questions, or with "official" the prompt, are not available.
    """
    user_prompt = prompts.closed_book(prompt)
    followed = chosen_protocol(protocol, user_prompt.name)
    selection, scoring = (config, questions, ids, category), (metrics, lemmatizer, judge)
    return _task("closed-book", user_prompt, followed, ask(), selection, scoring)


@task
def fanoutqa_open_book(
    config: str | None = None,
    questions: str | None = None,
    ids: Names = None,
    category: Names = None,
    metrics: str = "acc,rouge",
    lemmatizer: Lemmatizer = "auto",
    judge: dict[str, Any] | None = None,
    prompt: Origin = AUTO,
    protocol: Origin = AUTO,
    search: Literal["auto", "tools", "text"] = "auto",
    context_length: int | None = None,
    tokenizer: str | None = None,
    wiki: str | None = None,
) -> Task:
    """FanOutQA with Wikipedia: the model searches for what it needs, then answers.

    Without ``wiki``, the environment chooses the Wikipedia (live at the dataset's epoch with a
    cache, a ZIM file, or a Kiwix server): see ``qabench.retrieval.wiki.client``.

    Args:
        config, questions, ids, category, metrics, judge, prompt: see ``fanoutqa_closed_book``.
        lemmatizer: see ``fanoutqa_closed_book``; the retriever uses the same one.
        protocol: "official": the fragments of a page are ranked by the whole question row, as in
            the authors' runner, and there is no token limit; "qabench": they are ranked by the
            question, and a reply has at most 520 tokens; "auto": the same as the prompt.
        search: how the model searches: "tools", "text" (it writes ``<search>query</search>``), or
            "auto": tools, and text for a model whose provider rejects them.
        context_length: the model's context window in tokens; by default the one that Inspect knows.
        tokenizer: the tokenizer that counts tokens: a folder with a tokenizer.json, that file, or a
            repository on the Hub; by default the model's tokenizer if it is available, else a
            documented estimate.
        wiki: a ZIM file of Wikipedia.
    """
    strings = prompts.open_book(prompt)
    followed = chosen_protocol(protocol, strings.tools.name)
    check_window(context_length)
    solver = open_book(
        strings, followed == OFFICIAL, search, context_length, tokenizer, lemmatizer, wiki
    )
    gpt_35 = (model := active_model()) is not None and is_gpt_35(model)
    user_prompt = (
        strings.text if search == "text" else strings.tools_gpt_35 if gpt_35 else strings.tools
    )
    selection, scoring = (config, questions, ids, category), (metrics, lemmatizer, judge)
    return _task("open-book", user_prompt, followed, solver, selection, scoring)


@task
def fanoutqa_evidence_provided(
    config: str | None = None,
    questions: str | None = None,
    ids: Names = None,
    category: Names = None,
    metrics: str = "acc,rouge",
    lemmatizer: Lemmatizer = "auto",
    judge: dict[str, Any] | None = None,
    prompt: Origin = AUTO,
    protocol: Origin = AUTO,
    context_length: int | None = None,
    tokenizer: str | None = None,
    wiki: str | None = None,
) -> Task:
    """FanOutQA with the necessary pages: their best fragments by BM25+, as many as fit into the model's window.

    Args:
        config, questions, ids, category, metrics, judge, prompt: see ``fanoutqa_closed_book``.
        protocol: "official": the unchanged list of evidence, with repeated pages, and no token
            limit; "qabench": without repeated pages, and at most 520 tokens; "auto": the same as
            the prompt.
        lemmatizer, context_length, tokenizer: see ``fanoutqa_open_book``.
        wiki: see ``fanoutqa_open_book``; by default, the environment chooses the Wikipedia.
    """
    user_prompt, document = prompts.evidence_provided(prompt)
    followed = chosen_protocol(protocol, user_prompt.name)
    check_window(context_length)
    official = followed == OFFICIAL
    solver = evidence_provided(
        user_prompt, document, official, context_length, tokenizer, lemmatizer, wiki
    )
    selection, scoring = (config, questions, ids, category), (metrics, lemmatizer, judge)
    return _task("evidence-provided", user_prompt, followed, [solver, ask()], selection, scoring)


def _task(
    setting: str,
    prompt: Prompt,
    protocol: str,
    solver: Solver | list[Solver],
    selection: tuple[str | None, str | None, Names, Names],
    scoring: tuple[str, str, dict[str, Any] | None],
) -> Task:
    """Return the task of a setting for the selected config, file, ids and categories, scored by these options."""
    config, file, ids, category = selection
    questions = read_questions(config, file)
    ranked_by_row = setting == "open-book" and protocol == OFFICIAL
    queries = questions.source_rows() if ranked_by_row else {}
    samples = chosen(
        (_sample(row, prompt, queries.get(row["id"])) for row in questions.rows), ids, category
    )
    fields = {
        "config": questions.config,
        "data": questions.data_digest,
        "setting": setting,
        "prompt": prompt.label,
        "protocol": protocol,
    }
    metadata = task_metadata(
        "fanoutqa", questions.config, setting, questions.data_digest, len(questions.rows)
    )
    metadata["signatures"] = {"run": signature("fanout_run", benchmark="fanoutqa", **fields)}
    references = [loads((item.metadata or {})["answer"]) for item in samples if questions.public]
    answer_scorer = fanoutqa_scorer(*scoring, signed=fields | {"references": digest(references)})
    if not questions.public:
        metadata["unscored"] = (
            "the answers to test questions are not public; submit the model's answers: `qabench fanoutqa submit`"
        )
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/fanoutqa-{questions.config}"),
        solver=solver,
        scorer=answer_scorer if questions.public else None,
        config=GenerateConfig(
            temperature=0, max_tokens=None if protocol == OFFICIAL else ANSWER_TOKENS
        ),
        metadata=metadata,
        # A failed question is unanswered: the others continue, it scores 0, and a retry asks it
        # again.
        fail_on_error=False,
        score_on_error=True,
    )


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
        necessary_evidence=row["necessary_evidence"],
        **({"query": query} if query is not None else {}),
    )


@scorer(name="fanoutqa", metrics=[means()])
def fanoutqa_scorer(
    metrics: str = "acc,rouge",
    lemmatizer: str = "auto",
    judge: dict[str, Any] | None = None,
    signed: Mapping[str, Any] | None = None,
) -> Scorer:
    """Score a reply as ``qabench score`` does, with the strings found and missing, and the judge's reply.

    A sample without an answer (an error, a refusal, no reply) is unanswered; an empty reply is an
    empty answer. If the judge's call fails, or there is no key, the sample has no judge score, and
    its explanation says why.

    For the first arguments see ``fanoutqa_closed_book``; ``signed`` are the first fields of the
    signatures: data, prompt and protocol.
    """
    families = texts(metrics)
    if not families or set(families) - set(COLUMNS):
        raise InputError(
            f"metrics are {metrics!r}; allowed: {', '.join(COLUMNS)}, separated by commas"
        )
    scorers = scorers_of(families, lemmatizer, judge=judge, threads=True)
    limit = scorers.judge.caller.concurrency if scorers.judge else 16

    async def score(state: TaskState, target: Target) -> Score:
        answer = answer_of(state)
        prediction = UNANSWERED if answer is None else answer
        items = [state.metadata["question"]], [loads(state.metadata["answer"])], [prediction]
        fields = {
            "benchmark": "fanoutqa",
            **(signed or {}),
            **state.metadata.get("signed", {}),
            "only_score_answered": False,
            **_generation_fields(str(state.model)),
        }
        async with concurrency("qabench scoring", limit):
            scores = await anyio.to_thread.run_sync(score_answers, *items, scorers, fields)
        if "searches" in state.metadata:
            pages = [entry for entry in state.metadata["searches"] if entry.get("fragments", 1)]
            pages = [
                {name: entry[name] for name in ("title", "url", "pageid") if entry.get(name)}
                for entry in pages
            ]
            add_evidence(scores, [state.metadata["necessary_evidence"]], [pages], fields)
        detail = scores.details[0]
        metadata: dict[str, Any] = {"detail": detail, "signatures": scores.signatures}
        if scores.judged:
            metadata["usage"] = scores.judged.usage.as_dict()
        explanation = scores.absent.get("gpt") or detail.get("judge_problem") or detail.get("judge")
        if not scores.rows[0]:
            return Score.unscored(
                reason="grader_failed", explanation=explanation, answer=answer, metadata=metadata
            )
        # Inspect requires the same names in each sample's value; NaN values are left out when logs
        # are read.
        values = {
            column: nan for family in scores.signatures for column in COLUMNS[family]
        } | scores.rows[0]
        return Score(value=values, answer=answer, explanation=explanation, metadata=metadata)

    return score


def _generation_fields(model: str) -> dict[str, Any]:
    """Return the generation parameters of the sample's last call, for the signature.

    The limit of tokens of Claude has its own name, because it is the only one that the authors
    send.
    """
    options = asked_with()
    if "claude" in model.lower() and "max_tokens" in options:
        options["claude_max_tokens"] = options.pop("max_tokens")
    return options
