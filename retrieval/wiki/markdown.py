"""A Wikipedia page's HTML as the Markdown that FanOutQA shows to models."""

from __future__ import annotations

import functools
import re
from typing import Any

from qabench.errors import MissingExtra
from qabench.retrieval.wiki.page import PageUnreadable

INSTALL = "Wikipedia pages need markdownify and beautifulsoup4: pip install 'qabench[retrieval]'"


MOST_CHARACTERS = 16_000_000
# For each of these the parser or the converter looks through the rest of the page, or all items of the list.
EFFORTS = (
    ("tags that are not closed", re.compile(r"<[^<>]*+(?=<|\Z)"), 300),
    ("comments and declarations", re.compile(r"<[!?]"), 5_000),
    ("list items", re.compile(r"<li\b", re.IGNORECASE), 20_000),
)


def to_markdown(html: str) -> str:
    """HTML as Markdown: ATX headings, tables and lists kept, links as their text, images as ``![alt](image)``.

    ``<script>`` and ``<style>`` are dropped, and a ``<div>`` is its text and a newline, or nothing if it has none.

    With markdownify 0.11, which the official package pins, the result is the official one, character by character.
    With 1.x, which is what a new installation gets, white space differs (blocks are set apart by one blank line, a
    line break in a table's cell or heading becomes a space, so that a row of a table stays on its line, a cell that
    spans columns counts as so many, nested lists are indented by spaces and not tabs), and captions, the terms and
    definitions of a list and quotations are marked; words, headings and tables are the same.

    Args:
        html: a page or a fragment of one; "" gives "".

    Raises:
        MissingExtra: markdownify is not installed.
        PageUnreadable: the elements are nested too deeply (several hundred levels), the HTML is so malformed that the
            parser or the converter fails, or converting it would take too long. No real page was seen to be like this.

    Source: ``fanoutqa.utils.markdownify``, https://github.com/zhudotexe/fanoutqa.
    """
    _check_effort(html)
    try:
        markdown: str = _converter_class()(heading_style="atx").convert(html)
    except MissingExtra:
        raise
    except RecursionError:
        raise PageUnreadable("the page's HTML is nested too deeply to be converted to Markdown") from None
    except Exception as error:  # the parser raises AssertionError, the converter ValueError and others
        raise PageUnreadable(f"the page's HTML cannot be converted to Markdown: {error!r:.200}") from error
    return markdown


def parsed(html: str) -> Any:
    """HTML as a ``bs4.BeautifulSoup``, by the parser that the conversion uses too.

    Raises:
        MissingExtra: bs4 is not installed.
        PageUnreadable: see ``to_markdown``.
    """
    try:
        from bs4 import BeautifulSoup
    except ImportError:
        raise MissingExtra(INSTALL) from None
    _check_effort(html)
    try:
        return BeautifulSoup(html, "html.parser")
    except Exception as error:  # the parser raises AssertionError and others
        raise PageUnreadable(f"the page's HTML cannot be parsed: {error!r:.200}") from error


def _check_effort(html: str) -> None:
    """Raises PageUnreadable for HTML on which the parser or the converter takes quadratic time."""
    if len(html) > MOST_CHARACTERS:
        raise PageUnreadable(f"the page's HTML has {len(html):,} characters, more than {MOST_CHARACTERS:,}")
    for what, pattern, most in EFFORTS:
        if len(html) > most and (count := sum(1 for _ in pattern.finditer(html))) > most:
            raise PageUnreadable(f"the page's HTML has {count:,} {what}, more than {most:,}")


@functools.cache
def _converter_class() -> Any:
    """Made on first use: markdownify and the HTML parser behind it take their time to import."""
    try:
        from markdownify import MarkdownConverter
    except ImportError:
        raise MissingExtra(INSTALL) from None

    class PageConverter(MarkdownConverter):
        """Version 0.11 gives the third argument by position, 1.x by name: what it says matters to none of these."""

        def convert_a(self, el: Any, text: str, *_: Any, **__: Any) -> str:
            return text

        def convert_img(self, el: Any, text: str, *_: Any, **__: Any) -> str:
            return f"![{el.get('alt') or ''}](image)"

        def convert_div(self, el: Any, text: str, *_: Any, **__: Any) -> str:
            text = text.strip()
            return f"{text}\n" if text else ""

        def convert_script(self, *_: Any, **__: Any) -> str:
            return ""

        convert_style = convert_script

    return PageConverter
