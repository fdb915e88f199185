"""FanOutQA's prompts: the authors', read at run time from their pinned files, and qabench's own.

Like the authors' prompts, qabench's are zero-shot, name the date of the Wikipedia snapshot, and ask
for only the answer, with one list item per line. Scores with qabench's prompts are not comparable
with published scores.

Source: https://github.com/zhudotexe/fanoutqa, ``reference/paper_benchmarks`` (the paper's runs) and
``fanoutqa/eval/llm.py`` (the judge).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabench.data.rows import Row
from qabench.errors import InputError
from qabench.loading_scripts import dataset_table
from qabench.prompts.authors import PromptSource
from qabench.prompts.prompt import (
    AUTO,
    DATA_NOT_INSTRUCTIONS,
    OFFICIAL,
    QABENCH,
    Prompt,
    check_fields,
    chosen_prompt,
    chosen_protocol,
    read_prompt,
)

CLOSED_BOOK_FILE = "reference/paper_benchmarks/run_closedbook.py"
OPEN_BOOK_FILE = "reference/paper_benchmarks/run_openbook.py"
EVIDENCE_PROVIDED_FILE = "reference/paper_benchmarks/run_wiki_provided.py"
JUDGE_FILE = "fanoutqa/eval/llm.py"
JUDGE_FIELDS = {"question", "reference", "answer"}

# The date of the Wikipedia pages that the dataset refers to, in the format of the authors' prompts.
DATE = "11-20-2023"
ANSWER_TOKENS = 520
"""Tokens reserved for the answer."""
_TERMS = (
    f"Today's date is {DATE}. Give only the answer: no explanation, no introduction. If the answer is a list, write "
    "each item on its own line."
)
CLOSED_BOOK = Prompt(
    "qabench", f"Answer the question from your own knowledge. {_TERMS}\n\nQuestion: {{question}}"
)
EVIDENCE_PROVIDED = Prompt(
    "qabench",
    "Below are fragments of Wikipedia pages, the most relevant ones first, and then a question. Answer the question "
    f"with their help. {_TERMS}\n\n{{documents}}\n\nQuestion: {{question}}",
)
JUDGE_PROMPT = Prompt(
    "qabench",
    system="You grade answers to questions. For each you are given a reference answer that experts wrote.",
    user=f"""Compare the facts in an answer with the facts in the reference. Wording, layout, order, spelling and length
are not facts.

<question>
{{question}}
</question>

<reference>
{{reference}}
</reference>

<answer>
{{answer}}
</answer>

{DATA_NOT_INSTRUCTIONS}

Which of these six cases is it?

A - The answer has some of the reference's facts but not all, and nothing in it contradicts the reference.
B - The answer has all of the reference's facts and more, and nothing in it contradicts the reference.
C - The answer has the same facts as the reference, no fewer and no more.
D - At least one fact in the answer contradicts the reference.
E - The two differ, but in nothing that makes the answer less correct, such as rounding or another name.
F - The answer does not answer the question: it declines, is empty, is off topic or makes no sense.

Go through the reference's facts one by one: does the answer state it, omit it, or contradict it? Decide on a case only
when you have checked all of them. The last line of your reply must be the letter of that case and nothing else.""",
)


@dataclass(frozen=True)
class FanOutQAAsking:
    """How a model is asked in a setting.

    Attributes:
        setting: the name of the setting.
        prompt: the prompt with the question.
        protocol: "official" or "qabench".
        references: the digest of the reference answers of the questions that are asked.
        scoring: the options of the scorer.
    """

    setting: str
    prompt: Prompt
    protocol: str
    references: str | None = None
    scoring: Mapping[str, Any] = field(default_factory=lambda: {"threads": True})

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the generation options."""
        max_tokens: int | None = ANSWER_TOKENS
        # The authors set no limit.
        if self.protocol == OFFICIAL:
            max_tokens = None
        return {"temperature": 0, "max_tokens": max_tokens}

    def messages(self, row: Row) -> tuple[tuple[str, str], ...]:
        """Return the prompt with the question, or only the question if a later step fills the prompt."""
        if "documents" in self.prompt.fields():
            return (("user", row["question"]),)
        return self.prompt.messages(question=row["question"])

    def fields(self) -> Mapping[str, object]:
        """Return the fields of signatures."""
        return {
            "setting": self.setting,
            "prompt": self.prompt.label,
            "protocol": self.protocol,
            "references": self.references,
        }


def closed_book(prompt: str) -> Prompt:
    """Return the closed-book prompt, with the field question. See ``chosen_prompt`` for ``prompt``."""
    source = _authors_file(prompt, CLOSED_BOOK_FILE)
    if source is None:
        return CLOSED_BOOK
    return Prompt(OFFICIAL, source.assigned("prompt", "ClosedBookRunner.get_prompt"))


def asking_closed_book(prompt: str = AUTO, protocol: str = AUTO) -> FanOutQAAsking:
    """Return how a model is asked closed-book in a task with these arguments."""
    user_prompt = closed_book(prompt)
    return FanOutQAAsking("closed-book", user_prompt, chosen_protocol(protocol, user_prompt.name))


def evidence_provided(prompt: str) -> tuple[Prompt, Prompt | None]:
    """Return the evidence-provided prompt for an argument, and the prompt of one fragment.

    See ``chosen_prompt`` for the argument. The fields of the first prompt are documents and
    question, those of the second title and content. If the second is None, fragments have qabench's
    format.
    """
    source = _authors_file(prompt, EVIDENCE_PROVIDED_FILE)
    if source is None:
        return EVIDENCE_PROVIDED, None
    function = "WikiProvidedRunner.get_prompt"
    template = source.assigned("prompt", function, fields={"question_text": "question"})
    # The authors' prompt contains {}, which their script fills with the documents by ``format``.
    template = template.replace("{}", "{documents}")
    fields = {"doc.title": "title", "doc.content": "content"}
    fragment = source.assigned("formatted", function, fields=fields)
    return Prompt(OFFICIAL, template), Prompt(OFFICIAL, fragment)


def judge_prompt(prompt: str | Path) -> Prompt:
    """Return the judge's prompt, with the fields question, reference and answer.

    Args:
        prompt: a name (see ``chosen_prompt``) or the path of a file (see ``judge_for``).

    Raises:
        InputError: ``prompt`` is neither a name nor a usable file.
    """
    if str(prompt) in (OFFICIAL, QABENCH, AUTO):
        source = _authors_file(str(prompt), JUDGE_FILE)
        if source is None:
            return JUDGE_PROMPT
        return Prompt(
            OFFICIAL, source.returned("factuality_prompt"), source.assigned("factuality_system")
        )
    path = Path(prompt)
    if not path.is_file():
        raise InputError(
            f"the judge's prompt is {str(prompt)!r}; allowed: {OFFICIAL}, {QABENCH}, {AUTO}, or a file"
        )
    return check_fields(read_prompt(path), JUDGE_FIELDS)


@dataclass(frozen=True, slots=True)
class SearchPrompts:
    """The prompts and other texts of the open-book setting.

    Attributes:
        tools: the prompt for models that call tools. Its field is question.
        tools_gpt_35: the prompt for gpt-3.5-turbo* with tool calls. Its field is question.
        text: the prompt for models that write ``<search>...</search>``. Its field is question.
        tool: the description of the tool ``search``.
        page: the result of a search that found a page. Its fields are title and fragments.
        fragment: one fragment of a page. Its field is content.
        similar: the result if no page has the title. Its field is titles.
        ambiguous: the result if the page is a disambiguation page. Its field is titles.
        title: one title in the lists of ``similar`` and ``ambiguous``. Its field is title.
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


_OPEN_BOOK = Prompt(
    "qabench",
    "Answer the question. Use the tool to look up in Wikipedia whatever you need, as often as you need; when you know "
    f"the answer, give it. {_TERMS}\n\nQuestion: {{question}}",
)
OPEN_BOOK = SearchPrompts(
    tools=_OPEN_BOOK,
    tools_gpt_35=_OPEN_BOOK,
    text=Prompt(
        "qabench",
        "Answer the question. You can look up facts in Wikipedia, as often as you need: write <search>the title of a "
        "page, or words to search for</search> and nothing else, and you get the fragments of that page that are most "
        "relevant to the question, or the titles of similar pages. When you know the answer, give it without any "
        f"<search>. {_TERMS}\n\nQuestion: {{question}}",
    ),
    tool="Searches Wikipedia. If a page has this title, returns the fragments of it that are most relevant to the "
    "question; otherwise the titles of similar pages.",
    page=Prompt("qabench", "From the Wikipedia page {title}:\n\n{fragments}"),
    fragment=Prompt("qabench", "{content}\n\n"),
    similar=Prompt("qabench", "No Wikipedia page has this title. Similar pages:\n{titles}"),
    ambiguous=Prompt("qabench", "This title has several meanings. Pages about them:\n{titles}"),
    title=Prompt("qabench", "- {title}"),
)


def open_book(prompt: str) -> SearchPrompts:
    """Return the texts of the open-book setting for an argument, see ``chosen_prompt``."""
    source = _authors_file(prompt, OPEN_BOOK_FILE)
    if source is None:
        return OPEN_BOOK
    search = "WikipediaKani.search"
    page = source.assigned("prompt", search, fields={"page.title": "title"})
    # Here, too, the authors' script fills {} by ``format``.
    page = page.replace("{}", "{fragments}")
    fragment = source.assigned("formatted", search, fields={"doc.content": "content"})
    titles = {"similar_searches": "titles"}
    # The method assigns the prompt of gpt-3.5-turbo first, and then that of all other models.
    with_tools = "OpenAIOpenBookRunner.get_prompt"
    return SearchPrompts(
        tools=Prompt(OFFICIAL, source.assigned("prompt", with_tools, nth=1)),
        tools_gpt_35=Prompt(OFFICIAL, source.assigned("prompt", with_tools, nth=0)),
        text=Prompt(OFFICIAL, source.assigned("prompt", "OpenBookRunner.get_prompt")),
        tool=source.docstring(search),
        page=Prompt(OFFICIAL, page),
        fragment=Prompt(OFFICIAL, fragment),
        similar=Prompt(OFFICIAL, source.returned(search, fields=titles, nth=0)),
        ambiguous=Prompt(OFFICIAL, source.returned(search, fields=titles, nth=1)),
        # In the script, this text is in a generator within ``join``, which ``PromptSource`` cannot
        # read.
        title=Prompt(OFFICIAL, "<search>{title}</search>"),
    )


def _authors_file(prompt: str, file: str) -> PromptSource | None:
    """Return the authors' file if the argument means their prompt, see ``chosen_prompt``."""
    if chosen_prompt("fanoutqa", prompt, file) != OFFICIAL:
        return None
    return PromptSource(dataset_table("fanoutqa").open_path(file))
