"""A cache of pages on disk, in the official layout: one file ``{pageid}-dated.md`` per page."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

from qabench.errors import InputError, QabenchError
from qabench.io.files import cache_dir, write_json, write_text
from qabench.io.limits import json_of
from qabench.retrieval.wiki.page import valid_id

VARIABLE = "QABENCH_WIKICACHE"
TITLES = "titles"
DIGESTS = "digests"


def official_folder() -> Path:
    """Return the cache folder of the official package, into which the authors' tarball is unpacked."""
    return Path("~/.cache/fanoutqa/wikicache").expanduser()


class WikiCache:
    """A folder of pages (by default QABENCH_WIKICACHE), and shared folders that are only read.

    The pages of a wiki other than Wikipedia are in a separate folder, named after its address.

    Some files count as missing: empty ones (the official package writes an empty file for a page
    that it could not get), those that are not UTF-8 or contain NUL characters (the result of a
    crash), and those that differ from the digest that was written with them, such as a page that
    was cut off on a full disk. Pages of the official package have no digest.
    """

    def __init__(
        self, folder: Path | None = None, shared: Sequence[Path] | None = None, *, wiki: str = ""
    ) -> None:
        variable = os.environ.get(VARIABLE)
        default = Path(variable).expanduser().absolute() if variable else cache_dir() / "wikicache"
        if wiki:
            default, shared = default / "other-wikis" / re.sub(r"[^\w.-]", "-", wiki), []
        self.folder = folder or default
        self.shared = [official_folder()] if shared is None else list(shared)

    def path(self, pageid: int) -> Path:
        """Return the file of a page. Raises InputError for an id that is not a positive integer."""
        if valid_id(pageid) is None:
            raise InputError(f"{pageid!r:.80} is not a page id, which is a positive integer")
        return self.folder / f"{pageid}-dated.md"

    def read(self, pageid: int) -> str | None:
        """Return a page's Markdown, or None if no folder has it."""
        for folder in (self.folder, *self.shared):
            path = folder / self.path(pageid).name
            try:
                text = path.read_text(encoding="utf-8")
            except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
                continue
            except OSError as error:
                raise QabenchError(
                    f"cannot read the cached page {path}: {error.strerror or error}"
                ) from error
            if text.strip() and "\0" not in text and _is_whole(path, text):
                return text
        return None

    def write(self, pageid: int, text: str) -> None:
        """Store a page and its digest. Both files are written atomically."""
        path = self.path(pageid)
        write_text(path, text)
        # Writing changes lone surrogates, and reading changes line endings, so the digest is
        # computed from the text as it is read back.
        write_text(_digest_path(path), digest_of(path.read_text(encoding="utf-8")) + "\n")

    def pageid_of(self, title: str) -> int | None:
        """Return the stored id of the page with a title, or None."""
        try:
            entry = json_of(self._title_path(title).read_bytes())
            return valid_id(entry["pageid"]) if entry["title"] == title else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def remember_title(self, title: str, pageid: int) -> None:
        """Store the id of the page with a title, so that the page can be found without a network."""
        write_json(self._title_path(title), {"title": title, "pageid": pageid})

    def _title_path(self, title: str) -> Path:
        # Titles can be longer than file names, and contain characters that file names cannot.
        return self.folder / TITLES / f"{hashlib.sha256(title.encode()).hexdigest()[:32]}.json"


def _digest_path(path: Path) -> Path:
    return path.parent / DIGESTS / f"{path.stem}.sha256"


def digest_of(text: str) -> str:
    """Return the SHA-256 of a page's text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def _is_whole(path: Path, text: str) -> bool:
    """Tell whether a page matches its digest. A page without a digest is assumed to be intact."""
    try:
        expected = _digest_path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return True
    if expected == digest_of(text):
        return True
    warnings.warn(
        f"the cached page {path} is not as it was downloaded, and is not used; if you changed it, delete "
        f"{_digest_path(path)}",
        stacklevel=3,
    )
    return False
