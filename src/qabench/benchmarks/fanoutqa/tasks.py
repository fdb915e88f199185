"""FanOutQA's three settings: closed-book, open-book, and evidence-provided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from qabench.benchmarks import benchmark
from qabench.benchmarks.fanoutqa import prompts
from qabench.benchmarks.fanoutqa.accuracy import reference_of
from qabench.benchmarks.fanoutqa.normalizer import shared_normalizer
from qabench.benchmarks.fanoutqa.prompts import FanOutQAAsking
from qabench.benchmarks.plan import Names, ProtocolStep, TaskPlan, planned_model, select
from qabench.data.rows import Json, read_json_list
from qabench.evaluation.scoring import Question
from qabench.evaluation.signature import digest, signature
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.fanoutqa.parse import NOT_PUBLIC
from qabench.prompts.prompt import AUTO, OFFICIAL, Origin, chosen_protocol

# The authors do not limit the turns. GPT-4 needs fewer than 20. A small model can search forever,
# because each new result drops the question and earlier results out of its window.
MAX_TURNS = 100
LOGGED = ("question", "answer", "necessary_evidence")
Lemmatizer = Literal["auto", "spacy", "simplemma"]

BENCHMARK = benchmark("fanoutqa")


@dataclass(frozen=True)
class _Selection:
    """The arguments of a task that select questions."""

    config: str | None
    questions: str | None
    ids: Names
    category: Names


@dataclass(frozen=True)
class _Scoring:
    """The arguments of a task that describe the scoring."""

    scores: str
    lemmatizer: str
    judge: Json | None


def fanoutqa_closed_book(
    config: str | None = None,
    questions: str | None = None,
    ids: Names = None,
    category: Names = None,
    scores: str = "acc,rouge",
    lemmatizer: Lemmatizer = "auto",
    judge: Json | None = None,
    prompt: Origin = AUTO,
    protocol: Origin = AUTO,
) -> TaskPlan:
    """FanOutQA from memory: the model gets only the question.

    Args:
        config: dev (the default), dev_nov23, test, test_nov23 or sample. The answers to test
            questions are not public: they are not scored, but can be submitted to the leaderboard
            (``qabench fanoutqa submit``).
        questions: a file of questions in the official format, instead of a config.
        ids: ids of questions to ask, a list or a string with commas. By default all.
        category: categories of questions to ask, a list or a string with commas. By default all.
        scores: names of scores or groups, such as "acc.loose,judge", separated by commas.
        lemmatizer: for "acc": "auto", "spacy" (official) or "simplemma".
        judge: for "judge": a mapping such as {"model": "m", "base_url": "URL"}, the arguments of
            ``qabench.benchmarks.fanoutqa.judge.judge_for``. By default from
            FANOUTQA_OPENAI_API_KEY, FANOUTQA_OPENAI_API_BASE and FANOUTQA_JUDGE_MODEL.
        prompt: "official": the authors' prompt, read from their file. "qabench": this project's.
            "auto": official if the file is available.
        protocol: "official": the authors' parameters (temperature 0, no token limit). "qabench":
            temperature 0 and at most 520 tokens. "auto": the same as the prompt.

    Raises:
        InputError: an unknown config, id, category, metric, prompt or protocol.
        SourceError: the questions, or with "official" the prompt, are not available.
    """
    asking = prompts.asking_closed_book(prompt, protocol)
    selection = _Selection(config=config, questions=questions, ids=ids, category=category)
    scoring = _Scoring(scores=scores, lemmatizer=lemmatizer, judge=judge)
    return _plan(asking, [ProtocolStep()], selection, scoring)


def fanoutqa_open_book(
    config: str | None = None,
    questions: str | None = None,
    ids: Names = None,
    category: Names = None,
    scores: str = "acc,rouge",
    lemmatizer: Lemmatizer = "auto",
    judge: Json | None = None,
    prompt: Origin = AUTO,
    protocol: Origin = AUTO,
    search: Literal["auto", "tools", "text"] = "auto",
    context_length: int | None = None,
    tokenizer: str | None = None,
    wiki: str | None = None,
    max_turns: int = MAX_TURNS,
) -> TaskPlan:
    """FanOutQA with Wikipedia: the model searches for what it needs, then answers.

    Without ``wiki``, environment variables choose the Wikipedia: the live one as of the dataset's
    date with a cache, a ZIM file, or a Kiwix server. See ``qabench.retrieval.wiki.client``.

    Args:
        config: dev (the default), dev_nov23, test, test_nov23 or sample.
        questions: a file of questions in the official format, instead of a config.
        ids: ids of questions to ask, a list or a string with commas. By default all.
        category: categories of questions to ask, a list or a string with commas. By default all.
        scores: names of scores or groups, such as "acc.loose,judge", separated by commas.
        lemmatizer: for "acc" and the retriever: "auto", "spacy" (official) or "simplemma".
        judge: for "judge": a mapping such as {"model": "m", "base_url": "URL"}.
        prompt: "official": the authors' prompt, read from their file. "qabench": this project's.
            "auto": official if the file is available.
        protocol: "official": the passages of a page are ranked by the whole question row, as in
            the authors' runner, and there is no token limit. "qabench": they are ranked by the
            question, and a reply has at most 520 tokens. "auto": the same as the prompt.
        search: how the model searches: "tools", "text" (it writes ``<search>query</search>``), or
            "auto": tools, and text for a model whose provider rejects them.
        context_length: the model's context window in tokens. By default the one that Inspect knows.
        tokenizer: the tokenizer that counts tokens: a folder with a tokenizer.json, that file, or a
            repository on the Hub. By default the model's tokenizer if it is available, else a
            documented estimate.
        wiki: a ZIM file of Wikipedia.
        max_turns: the maximum number of replies with a search per question. The authors have no
            limit, so reaching it is a deviation.
    """
    # These modules are slow to import, and only this setting needs them.
    from qabench.benchmarks.fanoutqa.evidence import retrieval_conditions
    from qabench.benchmarks.fanoutqa.open_book import open_book, prompt_for
    from qabench.benchmarks.fanoutqa.window import check_window

    strings = prompts.open_book(prompt)
    followed = chosen_protocol(protocol, strings.tools.name)
    check_window(context_length, tokenizer)
    arguments = {
        "strings": strings,
        "official": followed == OFFICIAL,
        "search": search,
        "context_length": context_length,
        "tokenizer": tokenizer,
        "lemmatizer": lemmatizer,
        "wiki": wiki,
        "max_turns": max_turns,
    }
    asking = FanOutQAAsking("open-book", prompt_for(strings, search, planned_model()), followed)
    # The prompt depends on the model and on whether it rejects tools, so all labels are possible.
    labels = {strings.tools.label, strings.tools_gpt_35.label, strings.text.label}
    conditions: dict[str, object] = {"prompt": sorted(labels)}
    conditions |= retrieval_conditions(shared_normalizer(lemmatizer), wiki)
    selection = _Selection(config=config, questions=questions, ids=ids, category=category)
    scoring = _Scoring(scores=scores, lemmatizer=lemmatizer, judge=judge)
    return _plan(asking, [ProtocolStep(open_book, arguments)], selection, scoring, conditions)


def fanoutqa_evidence_provided(
    config: str | None = None,
    questions: str | None = None,
    ids: Names = None,
    category: Names = None,
    scores: str = "acc,rouge",
    lemmatizer: Lemmatizer = "auto",
    judge: Json | None = None,
    prompt: Origin = AUTO,
    protocol: Origin = AUTO,
    context_length: int | None = None,
    tokenizer: str | None = None,
    wiki: str | None = None,
) -> TaskPlan:
    """FanOutQA with the best passages of the necessary pages, as many as fit into the window.

    Args:
        config: dev (the default), dev_nov23, test, test_nov23 or sample.
        questions: a file of questions in the official format, instead of a config.
        ids: ids of questions to ask, a list or a string with commas. By default all.
        category: categories of questions to ask, a list or a string with commas. By default all.
        scores: names of scores or groups, such as "acc.loose,judge", separated by commas.
        lemmatizer: for "acc" and the retriever: "auto", "spacy" (official) or "simplemma".
        judge: for "judge": a mapping such as {"model": "m", "base_url": "URL"}.
        prompt: "official": the authors' prompt, read from their file. "qabench": this project's.
            "auto": official if the file is available.
        protocol: "official": the unchanged list of evidence, with repeated pages, and no token
            limit. "qabench": without repeated pages, and at most 520 tokens. "auto": the same as
            the prompt.
        context_length: the model's context window in tokens. By default the one that Inspect knows.
        tokenizer: the tokenizer that counts tokens: a folder with a tokenizer.json, that file, or a
            repository on the Hub. By default the model's tokenizer if it is available, else a
            documented estimate.
        wiki: a ZIM file of Wikipedia. By default, environment variables choose the Wikipedia.
    """
    from qabench.benchmarks.fanoutqa.evidence import evidence_provided, retrieval_conditions
    from qabench.benchmarks.fanoutqa.window import check_window

    user_prompt, document = prompts.evidence_provided(prompt)
    followed = chosen_protocol(protocol, user_prompt.name)
    check_window(context_length, tokenizer)
    arguments = {
        "prompt": user_prompt,
        "document": document,
        "official": followed == OFFICIAL,
        "context_length": context_length,
        "tokenizer": tokenizer,
        "lemmatizer": lemmatizer,
        "wiki": wiki,
    }
    asking = FanOutQAAsking("evidence-provided", user_prompt, followed)
    selection = _Selection(config=config, questions=questions, ids=ids, category=category)
    scoring = _Scoring(scores=scores, lemmatizer=lemmatizer, judge=judge)
    conditions = retrieval_conditions(shared_normalizer(lemmatizer), wiki)
    steps = [ProtocolStep(evidence_provided, arguments), ProtocolStep()]
    return _plan(asking, steps, selection, scoring, conditions)


def _plan(
    asking: FanOutQAAsking,
    steps: Sequence[ProtocolStep],
    selection: _Selection,
    scoring: _Scoring,
    conditions: Mapping[str, object] | None = None,
) -> TaskPlan:
    """Return the plan of a setting, whose protocol has these steps."""
    path = Path(selection.questions) if selection.questions else None
    questions = BENCHMARK.load(selection.config, path)
    groups = _groups(scoring.scores, asking.setting)
    queries: Mapping[str, str] = {}
    if asking.setting == "open-book" and asking.protocol == OFFICIAL:
        queries = _source_rows(selection.config, selection.questions)
    chosen = select(questions, selection.ids, selection.category)
    selected = [_logged(question, queries) for question in chosen]
    # The answers to test questions are not public.
    is_public = all("answer" in question.row for question in questions.rows)
    references = None
    unscored = NOT_PUBLIC
    if is_public:
        unscored = ""
        references = digest(reference_of(question.row) for question in selected)
    options = {
        "lemmatizer": scoring.lemmatizer,
        "judge": scoring.judge,
        # In a run, the scorer is called from several threads. See ``scorer_of``.
        "threads": True,
    }
    asking = replace(asking, references=references, scoring=options)
    # This signature describes only how the model was asked, so it has no digest of references.
    fields = {**questions.fields, **asking.fields(), "references": None}
    run = signature("fanout_run", benchmark=BENCHMARK.name, **fields)
    return TaskPlan(
        questions,
        selected,
        asking,
        asking.setting,
        steps,
        groups,
        conditions=conditions or {},
        metadata={"signatures": {"run": run}},
        unscored=unscored,
    )


def _groups(scores: str, setting: str) -> list[str] | None:
    """Return the groups of scores to compute, or None for the default."""
    groups = BENCHMARK.selected_groups(scores) or []
    if setting == "open-book":
        # Only this setting searches for pages.
        groups = [*groups, "evidence"]
    # The user may have named "evidence", too. This leaves each group once, in the declared order.
    return BENCHMARK.selected_groups(groups or None)


def _logged(question: Question, queries: Mapping[str, str]) -> Question:
    """Return a question for the log, with only the columns that solvers and the scorer need.

    ``queries`` has the text of the column ``query`` by id (see ``_source_rows``). The protocol
    ``open_book`` reads this column if it is official.
    """
    row = {}
    for name in LOGGED:
        # Test questions have no answer.
        if name in question.row:
            row[name] = question.row[name]
    if question.id in queries:
        row["query"] = queries[question.id]
    return replace(question, row=row)


def _source_rows(config: str | None, file: str | None) -> dict[str, str]:
    """Map the ids of questions to the text of the whole row, as Python prints the dict.

    The authors' open-book runner ranks the fragments of a page by this text instead of the
    question. It contains the titles of the evidence, and for development questions also the
    decomposition with all answers.
    """
    table = dataset_table("fanoutqa")
    # Each config of questions has one split with one file.
    ((name,),) = table.config(config).splits.values()
    path = Path(file) if file else table.open_path(name)
    return {row.fields["id"]: str(row.fields) for row in read_json_list(path)}
