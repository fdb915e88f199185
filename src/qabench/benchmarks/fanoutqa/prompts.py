"""This project's prompts for FanOutQA; ``official_prompts`` reads those of the authors.

They follow the same terms: zero-shot, only the answer, one list item per line, and the date of the Wikipedia snapshot.
Scores with these prompts are not comparable with published scores.
"""

from __future__ import annotations

from collections.abc import Iterable

from qabench.tasks.prompts import DATA_NOT_INSTRUCTIONS, Prompt

DATE = "11-20-2023"
_TERMS = (
    f"Today's date is {DATE}. Give only the answer: no explanation, no introduction. If the answer is a list, write "
    "each item on its own line."
)
CLOSED_BOOK = Prompt("qabench", f"Answer the question from your own knowledge. {_TERMS}\n\nQuestion: {{question}}")
EVIDENCE_PROVIDED = Prompt(
    "qabench",
    "Below are fragments of Wikipedia pages, the most relevant ones first, and then a question. Answer the question "
    f"with their help. {_TERMS}\n\n{{documents}}\n\nQuestion: {{question}}",
)
OPEN_BOOK = Prompt(
    "qabench",
    "Answer the question. Use the tools to look up in Wikipedia whatever you need, as often as you need; when you know "
    f"the answer, give it. {_TERMS}\n\nQuestion: {{question}}",
)
OPEN_BOOK_TEXT = Prompt(
    "qabench",
    "Answer the question. You can look up facts in Wikipedia, as often as you need: write <search>the title of a page, "
    "or words to search for</search> and nothing else, and you get the fragments of that page that are most relevant "
    "to the question, or the titles of similar pages. When you know the answer, give it without any <search>. "
    f"{_TERMS}\n\nQuestion: {{question}}",
)
SEARCH_TOOL = (
    "Searches Wikipedia. If a page has this title, returns the fragments of it that are most relevant to the question; "
    "otherwise the titles of similar pages."
)
PAGE_TOOL = "Reads a Wikipedia page again: returns the fragments of it that are most relevant to the topic you name."
NO_QUERY = "The query is empty: give the title of a page, or words to search for."
LEFT_OUT = "(This result is no longer shown: the conversation has no more room for it.)"
ANSWER_NOW = f"You cannot search any more. Answer the question now, with what you know. {_TERMS}"
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


def fragments(parts: Iterable[tuple[str, str]]) -> str:
    """Return fragments, each a title and a text, for the prompt."""
    return "\n\n".join(f"[{title}]\n{text.strip()}" for title, text in parts)


def page(title: str, texts: Iterable[str]) -> str:
    """Return the result of a search that found a page."""
    return f"From the Wikipedia page {title!r}:\n\n" + "\n\n".join(text.strip() for text in texts)


def similar_titles(query: str, titles: Iterable[str]) -> str:
    """Return the result of a search for a title that no page has."""
    listed = "\n".join(f"- {title}" for title in titles)
    found = f"These pages are similar:\n{listed}" if listed else "No similar pages were found."
    return f"There is no Wikipedia page {query!r}. {found}"
