"""Offline Wikipedia: the pages of a Kiwix ZIM file, read without a server."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.escaping import one_line
from qabench.io.files import cache_dir, write_text
from qabench.io.redaction import printable
from qabench.retrieval.wiki.markdown import article_to_markdown
from qabench.retrieval.wiki.page import PageMissing, PageUnreadable, WikiPage, check_search

INSTALL = "ZIM files need libzim: pip install 'qabench[zim]'"
HTML = "text/html"
# Checking a ZIM file of more bytes takes minutes, so the user is warned.
LARGE = 4 << 30


class ZimFile:
    """A Wikipedia in a ZIM file. Its pages are as of the file's date, not the dataset's epoch."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            from libzim.reader import Archive
        except ImportError:
            raise MissingExtra(INSTALL) from None
        try:
            self._archive = Archive(self.path)
        except RuntimeError as error:
            raise InputError(
                f"cannot read {self.path} as a ZIM file: {printable(one_line(error))}"
            ) from None
        # Signatures contain this name.
        self.name = f"the ZIM file {self.path.stem} ({str(self._archive.uuid)[:8]})"
        self._verify()

    def _verify(self) -> None:
        """Compare the file with its checksum, which libzim does not do when it opens a file.

        A file that has not changed since the last comparison is not compared again.

        Raises:
            InputError: the file is damaged.
        """
        size = int(self._archive.filesize)
        # A ZIM file can be split into parts with other names, so the path itself may not exist.
        changed = self.path.stat().st_mtime_ns if self.path.exists() else 0
        state = f"{self.path.absolute()} {self._archive.uuid} {size} {changed}"
        record = (
            cache_dir()
            / "checked-zim-files"
            / hashlib.sha256(state.encode("utf-8", "replace")).hexdigest()[:32]
        )
        if not self._archive.has_checksum or record.exists():
            return
        if size > LARGE:
            warnings.warn(
                f"checking {self.path} ({size >> 30} GiB) once, which can take minutes",
                stacklevel=4,
            )
        if not self._archive.check():
            raise InputError(
                f"{self.path} is damaged: its content does not match its checksum; download it again"
            )
        # If the cache cannot be written, the file is checked again the next time.
        with suppress(QabenchError):
            write_text(record, state)

    def lookup(self, title: str) -> WikiPage | list[str]:
        """Return the page with this title. Disambiguation pages count as pages."""
        return self._page(WikiPage(title))[0]

    def content(self, evidence: Any) -> str:
        """Return a page's Markdown.

        Results of a search in this file have a path, by which they are found. Other pages are
        looked up by their title.
        """
        page = WikiPage.of(evidence)
        article, html = self._page(page)
        text = article_to_markdown(html)
        if not text.strip():
            raise PageMissing(page, f"the page {article.url!r} of {self.path} is blank")
        return text

    def search(self, query: str, results: int = 10) -> list[WikiPage]:
        """Search the file's full-text index, or its titles if it has none (see ``wiki_search``)."""
        check_search(query, results)
        from libzim.search import Query, Searcher
        from libzim.suggestion import SuggestionSearcher

        query = _encodable(query)
        with self._errors():
            if self._archive.has_fulltext_index:
                paths = (
                    Searcher(self._archive).search(Query().set_query(query)).getResults(0, results)
                )
            else:
                paths = SuggestionSearcher(self._archive).suggest(query).getResults(0, results)
            entries = [self._archive.get_entry_by_path(path) for path in paths]
            return [WikiPage(entry.title, url=entry.path) for entry in entries]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise ``PageUnreadable`` instead of libzim's exceptions for damaged files."""
        try:
            yield
        except (RuntimeError, ValueError, KeyError) as error:
            raise PageUnreadable(f"{self.path} is damaged: {printable(one_line(error))}") from None

    def _article(self, entry: Any) -> tuple[WikiPage, str] | None:
        """Return the article of an entry, after redirects, and its HTML. None if it is not HTML."""
        item = entry.get_item()
        if not item.mimetype.startswith(HTML):
            return None
        return WikiPage(item.title, url=item.path), _decoded(bytes(item.content))

    def _page(self, page: WikiPage) -> tuple[WikiPage, str]:
        with self._errors():
            for entry in self._candidates(page):
                if article := self._article(entry):
                    return article
        raise PageMissing(page, f"{self.path} has no page with this title")

    def _candidates(self, page: WikiPage) -> Iterator[Any]:
        paths = [_encodable(page.url or "")]
        paths += [spelling.replace(" ", "_") for spelling in _spellings(page.title)]
        for path in filter(None, paths):
            if self._archive.has_entry_by_path(path):
                yield self._archive.get_entry_by_path(path)
        for title in _spellings(page.title):
            if self._archive.has_entry_by_title(title):
                yield self._archive.get_entry_by_title(title)


def _decoded(html: bytes) -> str:
    """Decode HTML as UTF-8, else by its declared encoding, or by one that its bytes suggest."""
    from bs4.dammit import UnicodeDammit

    return UnicodeDammit(html, ["utf-8"], is_html=True).unicode_markup or ""


def _spellings(title: str) -> list[str]:
    """Return the title as it is, and with a capital first letter, as Wikipedia stores titles."""
    title = _encodable(title).strip().replace("_", " ")
    if not title:
        return []
    capitalized = title[:1].upper() + title[1:]
    return list(dict.fromkeys((title, capitalized)))


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, which libzim cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")
