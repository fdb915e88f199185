"""The main text of an HTML page, by trafilatura."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any

from qabench.errors import MissingExtra

EXTRA = "pip install 'qabench[web]'"


def extractor() -> str:
    """The name and version of the extractor, for signatures. Raises MissingExtra if it is not installed."""
    _trafilatura()
    return f"trafilatura-{metadata.version('trafilatura')}"


def main_text(html: bytes, charset: str | None = None) -> str:
    """The text of a page without navigation, advertisements and comments; paragraphs are separated by newlines.

    Args:
        html: the page.
        charset: as the server declared it; None: it is detected.

    Returns:
        "" if the page has no main text, or is damaged beyond what the parser repairs.
    """
    trafilatura = _trafilatura()
    page: bytes | str = html
    if charset:
        try:
            page = html.decode(charset, "replace")
        except LookupError:  # a charset that Python does not know
            page = html
    try:
        return trafilatura.extract(page, include_comments=False) or ""
    except (ValueError, TypeError, AttributeError, RecursionError):  # its parser meets any input of the web
        return ""


@cache
def _trafilatura() -> Any:
    try:
        import trafilatura
    except ImportError as error:
        raise MissingExtra(f"reading web pages needs {error.name}: {EXTRA}") from None
    return trafilatura
