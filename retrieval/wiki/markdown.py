"""Convert the HTML of a Wikipedia page to Markdown, as for FanOutQA's prompts."""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import Any

from qabench.errors import MissingExtra
from qabench.io.redaction import quoted
from qabench.retrieval.wiki.page import PageUnreadable

INSTALL = "Wikipedia pages need markdownify and beautifulsoup4: pip install 'qabench[wikipedia]'"

# Parts of a page that a Kiwix server adds, such as its toolbar.
KIWIX_PARTS = "head, span.kiwix, #kiwixtoolbar"
CONTENT_ID = "mw-content-text"
# The converter keeps the whole tree of a page in memory.
MAX_CHARACTERS = 16_000_000
# Constructs that take quadratic time, and how often a page may have them: at each occurrence, the
# parser or the converter scans the rest of the page, or all items of a list.
SLOW_CONSTRUCTS = (
    ("tags that are not closed", re.compile(r"<[^<>]*+(?=<|\Z)"), 300),
    ("comments and declarations", re.compile(r"<[!?]"), 5_000),
    ("list items", re.compile(r"<li\b", re.IGNORECASE), 20_000),
)
# Elements that have no end tag.
VOID = "area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr"
# The start tag or end tag of any other element.
TAG = re.compile(rf"<(/?)(?!(?:{VOID})\b)([a-z]\w*)\b[^<>]*+(?<!/)>", re.IGNORECASE)
# The parser nests everything after an unclosed element in it. The converter recurses into nested
# elements, and Python limits the depth of calls.
MAX_OPEN_TAGS = 1_000


def to_markdown(html: str) -> str:
    """Convert HTML to Markdown.

    Headings become ATX headings, links become their text, and images ``![alt](image)``.
    ``<script>`` and ``<style>`` are dropped. A ``<div>`` becomes its text and a newline, or nothing
    if it is empty.

    With markdownify 0.11, which qabench and the official package pin, the result is identical to
    the official one. With 1.x, words, headings and tables are the same. Blank lines, lists and
    cells differ.

    Args:
        html: a page or a fragment. "" gives "".

    Raises:
        MissingExtra: markdownify is not installed.
        PageUnreadable: the elements are nested too deeply (several hundred levels), the HTML is so
            malformed that the parser or the converter fails, or the conversion would take too long.
            No real page is known to cause this.

    Source: ``fanoutqa.utils.markdownify``, https://github.com/zhudotexe/fanoutqa.
    """
    return _converted(parsed(html))


def article_to_markdown(html: str) -> str:
    """Convert a whole page of a Kiwix book to Markdown, without what Kiwix added to it."""
    page = parsed(html)
    for added in page.select(KIWIX_PARTS):
        added.decompose()
    return _converted(page.find(id=CONTENT_ID) or page)


def _converted(soup: Any) -> str:
    try:
        markdown: str = _converter_class()(heading_style="atx").convert_soup(soup)
    except MissingExtra:
        raise
    except RecursionError:
        raise PageUnreadable(
            "the page's HTML is nested too deeply to be converted to Markdown"
        ) from None
    except Exception as error:
        # The converter can raise ValueError and other errors for malformed HTML.
        raise PageUnreadable(
            f"the page's HTML cannot be converted to Markdown: {quoted(error, 200)}"
        ) from error
    return markdown


def parsed(html: str) -> Any:
    """Parse HTML into a ``bs4.BeautifulSoup``, with the same parser as for the conversion."""
    try:
        from bs4 import BeautifulSoup
    except ImportError:
        raise MissingExtra(INSTALL) from None
    _check_effort(html)
    try:
        return BeautifulSoup(html, "html.parser")
    except Exception as error:
        # The parser can raise AssertionError and other errors for malformed HTML.
        raise PageUnreadable(f"the page's HTML cannot be parsed: {quoted(error, 200)}") from error


def _check_effort(html: str) -> None:
    """Raise PageUnreadable for HTML on which the parser or the converter takes quadratic time."""
    if len(html) > MAX_CHARACTERS:
        raise PageUnreadable(
            f"the page's HTML has {len(html):,} characters, more than {MAX_CHARACTERS:,}"
        )
    for what, pattern, most in SLOW_CONSTRUCTS:
        if len(html) > most and (count := sum(1 for _ in pattern.finditer(html))) > most:
            raise PageUnreadable(f"the page's HTML has {count:,} {what}, more than {most:,}")
    open_tags: Counter[str] = Counter()
    depth = 0
    for slash, name in TAG.findall(html):
        change = -1 if slash else 1
        # The parser ignores an end tag without a start tag.
        if open_tags[name] + change >= 0:
            open_tags[name] += change
            depth += change
        if depth > MAX_OPEN_TAGS:
            raise PageUnreadable(
                f"the page's HTML is nested too deeply: more than {MAX_OPEN_TAGS:,} open tags"
            )


@functools.cache
def _converter_class() -> Any:
    """Return the class of the converter. markdownify is imported here because that is slow."""
    try:
        from markdownify import MarkdownConverter
    except ImportError:
        raise MissingExtra(INSTALL) from None

    class PageConverter(MarkdownConverter):
        """The markdownify converter with the rules of the authors' package.

        Each method accepts further arguments and ignores them, because markdownify 0.11 passes a
        third argument by position and 1.x by name.
        """

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
