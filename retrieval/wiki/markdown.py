"""A Wikipedia page's HTML as the Markdown that FanOutQA shows to models."""

from __future__ import annotations

import functools
from typing import Any

from qabench.errors import MissingExtra
from qabench.retrieval.wiki.page import WikiError

INSTALL = "Wikipedia pages need markdownify and beautifulsoup4: pip install 'qabench[retrieval]'"


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
        WikiError: the elements are nested too deeply (several hundred levels; no real page is).

    Source: ``fanoutqa.utils.markdownify``, https://github.com/zhudotexe/fanoutqa.
    """
    try:
        markdown: str = _converter_class()(heading_style="atx").convert(html)
    except RecursionError:
        raise WikiError("the page's HTML is nested too deeply to be converted to Markdown") from None
    return markdown


def parsed(html: str) -> Any:
    """HTML as a ``bs4.BeautifulSoup``, by the parser that the conversion uses too. Raises MissingExtra without bs4."""
    try:
        from bs4 import BeautifulSoup
    except ImportError:
        raise MissingExtra(INSTALL) from None
    return BeautifulSoup(html, "html.parser")


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
