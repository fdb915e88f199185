"""The prompts of FanOutQA's authors, read at run time from their pinned source files.

Source: https://github.com/zhudotexe/fanoutqa, ``reference/paper_benchmarks`` (the paper's runs) and
``fanoutqa/eval/llm.py`` (the judge).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path

from qabench.benchmarks.fanoutqa.official import JUDGE_PROMPT
from qabench.benchmarks.fanoutqa.verdicts import FIELDS
from qabench.errors import InputError, SourceUnavailable
from qabench.loading_scripts import open_path
from qabench.tasks.prompt_source import PromptSource
from qabench.tasks.prompts import Prompt, check_fields, read_prompt

OFFICIAL, QABENCH, AUTO = "official", "qabench", "auto"
FOLDER = "reference/paper_benchmarks"
CLOSED_BOOK = f"{FOLDER}/run_closedbook.py"
OPEN_BOOK = f"{FOLDER}/run_openbook.py"
EVIDENCE_PROVIDED = f"{FOLDER}/run_wiki_provided.py"
JUDGE = "fanoutqa/eval/llm.py"


@functools.cache
def closed_book() -> Prompt:
    """Return the closed-book prompt; its field is question."""
    return _prompt(_source(CLOSED_BOOK).assigned("prompt", "ClosedBookRunner.get_prompt"), {"question"})


@dataclass(frozen=True, slots=True)
class SearchPrompts:
    """The strings of the open-book setting.

    Attributes:
        tools: the prompt for models that call tools; its field is question.
        tools_gpt_35: the same for gpt-3.5-turbo*.
        text: the prompt for models that write ``<search>...</search>``; its field is question.
        tool: the description of the tool ``search``.
        page: the result of a search that found a page; its fields are title and fragments.
        fragment: one fragment of a page; its field is content.
        similar: the result if no page has the title; its field is titles.
        ambiguous: the result if the page is a disambiguation page; its field is titles.
        title: one title in the lists of ``similar`` and ``ambiguous``; its field is title.
    """

    tools: Prompt
    tools_gpt_35: Prompt
    text: Prompt
    tool: str
    page: Prompt
    fragment: Prompt
    similar: Prompt
    ambiguous: Prompt
    title: Prompt


@functools.cache
def open_book() -> SearchPrompts:
    """Return the strings of the open-book setting."""
    source = _source(OPEN_BOOK)
    search = "WikipediaKani.search"
    page = source.assigned("prompt", search, fields={"page.title": "title"}).replace("{}", "{fragments}")
    titles = {"similar_searches": "titles"}
    return SearchPrompts(
        tools=_prompt(source.assigned("prompt", "OpenAIOpenBookRunner.get_prompt", nth=1), {"question"}),
        tools_gpt_35=_prompt(source.assigned("prompt", "OpenAIOpenBookRunner.get_prompt", nth=0), {"question"}),
        text=_prompt(source.assigned("prompt", "OpenBookRunner.get_prompt"), {"question"}),
        tool=source.docstring(search),
        page=_prompt(page, {"title", "fragments"}),
        fragment=_prompt(source.assigned("formatted", search, fields={"doc.content": "content"}), {"content"}),
        similar=_prompt(source.returned(search, fields=titles, nth=0), {"titles"}),
        ambiguous=_prompt(source.returned(search, fields=titles, nth=1), {"titles"}),
        title=_prompt("<search>{title}</search>", {"title"}),
    )


@dataclass(frozen=True, slots=True)
class EvidencePrompts:
    """The strings of the evidence-provided setting.

    Attributes:
        prompt: its fields are documents and question.
        document: one fragment; its fields are title and content.
    """

    prompt: Prompt
    document: Prompt


@functools.cache
def evidence_provided() -> EvidencePrompts:
    """Return the strings of the evidence-provided setting."""
    source, function = _source(EVIDENCE_PROVIDED), "WikiProvidedRunner.get_prompt"
    prompt = source.assigned("prompt", function, fields={"question_text": "question"}).replace("{}", "{documents}")
    document = source.assigned("formatted", function, fields={"doc.title": "title", "doc.content": "content"})
    return EvidencePrompts(_prompt(prompt, {"documents", "question"}), _prompt(document, {"title", "content"}))


@functools.cache
def judge() -> Prompt:
    """Return the judge's prompt; its fields are question, reference and answer."""
    return judge_prompt_of(open_path("fanoutqa", JUDGE))


def judge_prompt_of(path: Path) -> Prompt:
    """Return the judge's prompt in a version of the authors' ``llm.py``.

    Raises:
        InputError: the file is not a version of ``llm.py``.
    """
    source = PromptSource(path)
    prompt = Prompt(OFFICIAL, source.returned("factuality_prompt"), source.assigned("factuality_system"))
    return check_fields(prompt, set(FIELDS))


def is_available(path: str) -> bool:
    """Return whether one of the authors' files is in a mirror or in the cache, or can be downloaded.

    Raises:
        DigestMismatch: the file does not have the pinned content.
    """
    try:
        open_path("fanoutqa", path)
    except SourceUnavailable:
        return False
    return True


def chosen_prompt(prompt: str, path: str) -> str:
    """Return "official" or "qabench" for the value of a ``prompt`` argument.

    Args:
        prompt: "official", "qabench", or "auto": official if the authors' file is available.
        path: the authors' file with this prompt.

    Raises:
        InputError: another value.
        SourceUnavailable: "official", and the file is not available.
        DigestMismatch: the authors' file does not have the pinned content.
    """
    if prompt not in (OFFICIAL, QABENCH, AUTO):
        raise InputError(f"prompt is {prompt!r}; allowed: {OFFICIAL}, {QABENCH}, {AUTO}")
    if prompt == AUTO:
        return OFFICIAL if is_available(path) else QABENCH
    if prompt == OFFICIAL:
        open_path("fanoutqa", path)
    return prompt


def chosen_protocol(protocol: str, prompt: str) -> str:
    """Return "official" or "qabench" for the value of a ``protocol`` argument: "auto" is the same as the prompt.

    Raises:
        InputError: another value.
    """
    if protocol not in (OFFICIAL, QABENCH, AUTO):
        raise InputError(f"protocol is {protocol!r}; allowed: {OFFICIAL}, {QABENCH}, {AUTO}")
    return prompt if protocol == AUTO else protocol


def judge_prompt(prompt: str | Path, own: Prompt) -> Prompt:
    """Return the judge's prompt for the value of an option: one of the names of ``chosen_prompt``, or a file.

    Args:
        prompt: see ``qabench.benchmarks.fanoutqa.judge.judge_for``.
        own: the prompt for "qabench".

    Raises:
        InputError: neither a name nor a file, or a file that cannot be used.
        SourceError: see ``chosen_prompt``.
    """
    if str(prompt) in (OFFICIAL, QABENCH, AUTO):
        return judge() if chosen_prompt(str(prompt), JUDGE) == OFFICIAL else own
    path = Path(prompt)
    if not path.is_file():
        raise InputError(f"the judge's prompt is {str(prompt)!r}; allowed: {OFFICIAL}, {QABENCH}, {AUTO}, or a file")
    if path.suffix != ".py":
        return check_fields(read_prompt(path), set(FIELDS))
    read = judge_prompt_of(path)
    return read if read.label == JUDGE_PROMPT else replace(read, name=f"file:{path.name}")


def _source(path: str) -> PromptSource:
    return PromptSource(open_path("fanoutqa", path))


def _prompt(template: str, fields: set[str]) -> Prompt:
    return check_fields(Prompt(OFFICIAL, template), fields)
