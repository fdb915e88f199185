"""What models are asked in FanOutQA's settings (Zhu et al. 2024): in our own words, with the settings' terms.

The terms: zero-shot, the answer alone, an item of a list a line, and the date at which Wikipedia was frozen.
"""

from __future__ import annotations

from collections.abc import Iterable

DATE = "11-20-2023"
_TERMS = (
    f"Today's date is {DATE}. Give the answer alone: no explanation, no introduction. If the answer is a list, write "
    "each item on a line of its own."
)


def closed_book(question: str) -> str:
    """The question alone."""
    return f"Answer the question from what you know. {_TERMS}\n\nQuestion: {question}"


def evidence_provided(question: str, evidence: str) -> str:
    """The question after the fragments that answer it."""
    return (
        "Below are fragments of Wikipedia pages, the most useful ones first, and then a question. Answer the question "
        f"with their help. {_TERMS}\n\n{evidence}\n\nQuestion: {question}"
    )


def fragments(parts: Iterable[tuple[str, str]]) -> str:
    """Fragments, each a title and a text, as models read them."""
    return "\n\n".join(f"[{title}]\n{text.strip()}" for title, text in parts)


SEARCH_TOOL = (
    "Looks something up in Wikipedia. Where a page has this title, you get its fragments that matter most to the "
    "question; otherwise the titles of similar pages."
)
PAGE_TOOL = "Reads a Wikipedia page again for something else: you get its fragments that matter most to what you name."
NO_QUERY = "There is nothing to look up: name a page's title, or words to search for."
LEFT_OUT = "(This result is no longer shown: there was no more room for it.)"
ANSWER_NOW = f"You can look up nothing more. Answer the question now, with what you know. {_TERMS}"


def open_book(question: str) -> str:
    """The question for a model that calls tools."""
    return (
        "Answer the question. Look up in Wikipedia whatever you need with the tools, as often as you need them; when "
        f"you know the answer, give it. {_TERMS}\n\nQuestion: {question}"
    )


def open_book_as_text(question: str) -> str:
    """The question for a model that calls no tools."""
    return (
        "Answer the question. You can look things up in Wikipedia, as often as you need: write <search>the title of a "
        "page, or words to search for</search> and nothing else, and you get the fragments of that page that matter "
        "most to the question, or the titles of similar pages. When you know the answer, give it without any <search>. "
        f"{_TERMS}\n\nQuestion: {question}"
    )


def page(title: str, texts: Iterable[str]) -> str:
    """What a model reads of a page that it looked up."""
    return f"From the Wikipedia page {title!r}:\n\n" + "\n\n".join(text.strip() for text in texts)


def similar_titles(query: str, titles: Iterable[str]) -> str:
    """What a model reads where there is no page of the title."""
    listed = "\n".join(f"- {title}" for title in titles)
    found = f"These pages are similar:\n{listed}" if listed else "Nothing similar was found, either."
    return f"There is no Wikipedia page {query!r}. {found}"
