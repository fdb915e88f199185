"""Pages kept on disk in the official layout: one file ``{pageid}-dated.md`` a page."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from qabench.errors import InputError, QabenchError
from qabench.files import sweep, write_json, write_text
from qabench.limits import json_of
from qabench.paths import cache_dir
from qabench.retrieval.wiki.page import valid_id

VARIABLE = "QABENCH_WIKICACHE"
TITLES = "titles"


def official_folder() -> Path:
    """Where the official package keeps its pages, and people unpack its authors' tarball."""
    return Path("~/.cache/fanoutqa/wikicache").expanduser()


class WikiCache:
    """A folder that pages are written to, and folders that are only read.

    A file that is empty (the official package writes one for a page that it could not get), is not UTF-8 or holds NUL
    characters (both are what a crash leaves) counts as absent.

    Args:
        folder: read and written; by default the one that QABENCH_WIKICACHE names, else ``wikicache`` in qabench's
            cache. It can be the official package's, which then reads what is written here.
        others: only read, in this order, where ``folder`` lacks a page; by default the official package's folder.
    """

    def __init__(self, folder: Path | None = None, others: Sequence[Path] | None = None) -> None:
        named = os.environ.get(VARIABLE)
        self.folder = folder or (Path(named).expanduser().absolute() if named else cache_dir() / "wikicache")
        self.others = [official_folder()] if others is None else list(others)

    def path(self, pageid: int) -> Path:
        """Where a page is written. Raises InputError for an id that is not a positive number."""
        if valid_id(pageid) is None:
            raise InputError(f"{pageid!r:.80} is not the id of a page: a positive number")
        return self.folder / f"{pageid}-dated.md"

    def read(self, pageid: int) -> str | None:
        """A page's Markdown, or None where no folder has it whole.

        Raises:
            QabenchError: a file is there and cannot be read (permission, a failing disk).
        """
        for folder in (self.folder, *self.others):
            path = folder / self.path(pageid).name
            try:
                text = path.read_text(encoding="utf-8")
            except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
                continue
            except OSError as error:
                raise QabenchError(f"cannot read the cached page {path}: {error.strerror or error}") from error
            if text.strip() and "\0" not in text:
                return text
        return None

    def write(self, pageid: int, text: str) -> None:
        """Keeps a page. The file appears whole or not at all.

        Raises:
            QabenchError: it cannot be written; the message says why.
        """
        write_text(self.path(pageid), text)

    def pageid_of(self, title: str) -> int | None:
        """The id of a page that was once looked up by its title."""
        try:
            entry = json_of(self._title_path(title).read_bytes())
            return valid_id(entry["pageid"]) if entry["title"] == title else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def remember_title(self, title: str, pageid: int) -> None:
        """Keeps the id that a title was found to have, so that the page is found again without a network."""
        write_json(self._title_path(title), {"title": title, "pageid": pageid})

    def sweep(self) -> int:
        """Deletes temporary files that killed processes left, and returns how many."""
        return sweep(self.folder, "*-dated.md") + sweep(self.folder / TITLES, "*.json")

    def _title_path(self, title: str) -> Path:
        # A title can hold what a file name cannot, and be longer.
        return self.folder / TITLES / f"{hashlib.sha256(title.encode()).hexdigest()[:32]}.json"
