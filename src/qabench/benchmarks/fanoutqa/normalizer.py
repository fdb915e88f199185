"""FanOutQA's normalizer, which produces the strings that accuracy compares.

The steps and their order are the same as in the official scorer (``fanoutqa.norm`` in the package
``fanoutqa``), but here many texts are processed at once, and each distinct text only once.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qabench.errors import QabenchError
from qabench.io.environment import package_version
from qabench.io.files import cache_dir
from qabench.io.sqlite import EntryFile, entry_checksum
from qabench.text import repair
from qabench.text.lemmatizers import Lemmatizer, grouped, resolve_lemmatizer, thread_safe_lemmatizer

# Signatures and the cache contain this name. If any normal form changes, increase the number.
NAME = "fanoutqa-1"
# Progress is reported, and normal forms are stored in the cache, after each block of texts.
CHARACTERS_PER_BLOCK = 1_000_000
# On a cluster, a block is about a second's work, so that all processors get blocks.
CHARACTERS_PER_BLOCK_ON_A_CLUSTER = 50_000
# The pattern takes linear time on any text: a match cannot start inside a run of digits, and
# possessive quantifiers do not backtrack.
THOUSANDS = re.compile(r"(?<!\d)\d++(?:,\d++)++(?:\.\d++)?")
# The official scorer keeps quotes, brackets and dashes.
PUNCTUATION = str.maketrans("", "", ",.?!:;")
WHITESPACE = re.compile(r"\s+")
MAX_BYTES = 256 * 1024 * 1024
DISABLING_VARIABLE = "QABENCH_TEXT_CACHE"
# Older versions of SQLite allow 999 variables in a query.
KEYS_PER_QUERY = 500
# With a write-ahead log, processes can read while another one writes. With synchronous = NORMAL, a
# power failure can lose the last entries, but cannot damage the file.
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS forms (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, form BLOB NOT NULL, checksum BLOB NOT NULL
);
"""


def before_lemmas(text: Any) -> str:
    """Apply the steps of ``normalize`` that come before lemmatization."""
    # As in the official scorer, the text is lowercased before ftfy repairs it.
    text = repair(str(text).lower())
    return THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)


def after_lemmas(text: str) -> str:
    """Apply the steps of ``normalize`` that come after lemmatization."""
    # As in the official scorer, punctuation is deleted only after spaCy has seen it, and spaces at
    # the ends of the text stay.
    return WHITESPACE.sub(" ", text.translate(PUNCTUATION))


class Normalizer:
    """Normalizes many texts with one lemmatizer, and can keep normal forms in a cache."""

    def __init__(
        self, lemmatizer: str | Lemmatizer = "auto", cache: NormalizedTextCache | None = None
    ) -> None:
        self.lemmatizer = resolve_lemmatizer(lemmatizer)
        self.cache = cache
        self.name = f"{NAME}+ftfy-{package_version('ftfy')}"

    @property
    def key(self) -> str:
        """Return the key of everything that normal forms depend on, except the text."""
        return f"{self.name}/{self.lemmatizer.key}"

    def signature(self) -> dict[str, str]:
        """Return the signature fields that describe what the normal forms depend on."""
        return {"normalizer": self.name, "lemmatizer": self.lemmatizer.name}

    def __call__(self, text: Any) -> str:
        """Return the normal form of one text."""
        return self.batch([text])[str(text)]

    def batch(
        self, texts: Iterable[Any], progress: Callable[[int, int], None] | None = None
    ) -> dict[str, str]:
        """Return the normal form of each distinct ``str(text)``.

        After each block, ``progress`` is called with two numbers, of finished texts and of all
        texts. Texts whose normal form is in the cache are not counted.
        """
        # References are the same in every run, and many answers repeat them.
        distinct = list(dict.fromkeys(map(str, texts)))
        forms: dict[str, str] = {}
        if self.cache:
            forms = self.cache.get(self.key, distinct)
        missing = [text for text in distinct if text not in forms]
        if not missing:
            return forms
        # The import is here because it imports multiprocessing, which is slow.
        from qabench.io.workers import cluster, map_loaded

        size = CHARACTERS_PER_BLOCK
        key = None
        if cluster():
            size = CHARACTERS_PER_BLOCK_ON_A_CLUSTER
            key = self.lemmatizer.key
        blocks = list(grouped(missing, size))
        load = partial(_load, self.lemmatizer, key)
        total = len(missing)
        done = 0
        for block, normal in zip(blocks, map_loaded(load, blocks), strict=True):
            new_forms = dict(zip(block, normal, strict=True))
            if self.cache:
                # Storing each block lets an interrupted run continue after the last block.
                self.cache.put(self.key, new_forms)
            forms |= new_forms
            done += len(block)
            if progress:
                progress(done, total)
        return forms


def shared_normalizer(lemmatizer: str | Lemmatizer) -> Normalizer:
    """Return a thread-safe normalizer that uses the cache, for runs."""
    return Normalizer(thread_safe_lemmatizer(lemmatizer), NormalizedTextCache.default(hold=True))


def _load(lemmatizer: Lemmatizer, key: str | None) -> Callable[[list[str]], list[str]]:
    if key is not None:
        check_key(lemmatizer, key)
    return partial(_normal_forms, lemmatizer)


def check_key(lemmatizer: Lemmatizer, key: str) -> None:
    """Raise QabenchError if the lemmatizer on this cluster machine has another key."""
    if lemmatizer.key != key:
        raise QabenchError(
            f"a machine of the cluster has the lemmatizer {lemmatizer.key} instead of {key}"
        )


def _normal_forms(lemmatizer: Lemmatizer, texts: list[str]) -> list[str]:
    prepared = [before_lemmas(text) for text in texts]
    distinct = list(dict.fromkeys(prepared))
    lemmas = dict(zip(distinct, lemmatizer(distinct), strict=True))
    return [after_lemmas(lemmas[text]) for text in prepared]


def normalize(text: Any, lemmatizer: str | Lemmatizer = "auto") -> str:
    """Return the official FanOutQA normal form of one text.

    The text is converted by ``str`` and to lowercase, repaired by ``ftfy.fix_text``, and numbers
    lose their thousands commas. Then the lemmas that spaCy finds, joined by spaces, replace the
    text. The characters ``, . ? ! : ;`` are deleted, and each run of whitespace becomes one space.
    Leading and trailing spaces are kept, as upstream. For more than a few texts, use
    ``Normalizer(...).batch``, which is much faster.

    Args:
        text: any object. It is converted by ``str`` first, so None becomes "none".
        lemmatizer: see ``resolve_lemmatizer``. Only spaCy's ``en_core_web_sm`` is official.

    Source: ``fanoutqa.norm.normalize``, https://github.com/zhudotexe/fanoutqa.
    """
    return Normalizer(lemmatizer)(text)


class NormalizedTextCache(EntryFile):
    """A bounded SQLite file of normalized strings (see ``EntryFile``).

    Scores do not depend on the cache: a damaged or missing entry is computed again. The key of an
    entry is a digest of the text and of the normalizer's key (its steps, the versions of ftfy and
    spaCy, and the digest of the model), so an entry is never used for another normalizer. When the
    file exceeds ``max_bytes``, the oldest quarter of the entries is deleted.
    """

    def __init__(
        self, path: Path | None = None, max_bytes: int = MAX_BYTES, hold: bool = False
    ) -> None:
        super().__init__(
            path or cache_dir() / "normalized.sqlite",
            SCHEMA,
            name="cache of normalized strings",
            if_damaged="and the strings are normalized again",
            if_unusable=f"; continuing without it. Delete the file, or set {DISABLING_VARIABLE}=0 or "
            "QABENCH_CACHE to a folder you can write to.",
            hold=hold,
        )
        self.max_bytes = max_bytes

    @classmethod
    def default(cls, hold: bool = False) -> NormalizedTextCache | None:
        """Return the user's cache, or None if the environment variable QABENCH_TEXT_CACHE is 0."""
        if os.environ.get(DISABLING_VARIABLE) == "0":
            return None
        return cls(hold=hold)

    def get(self, key: str, texts: Iterable[str]) -> dict[str, str]:
        """Return the normal forms in the cache, by text."""
        by_digest = {_digest(key, text): text for text in texts}
        digests = list(by_digest)
        rows = self.attempt(lambda connection: _rows(connection, digests))
        forms = {}
        for digest, form, checksum in rows:
            if self.is_whole(digest, form, checksum) and digest in by_digest:
                forms[by_digest[digest]] = form.decode("utf-8", "surrogatepass")
        return forms

    def put(self, key: str, forms: Mapping[str, str]) -> None:
        """Store normal forms by text."""
        rows = []
        for text, form in forms.items():
            digest, value = _digest(key, text), form.encode("utf-8", "surrogatepass")
            rows.append((digest, value, entry_checksum(digest, value)))
        self.attempt(lambda connection: self._store(connection, rows))

    def _store(
        self, connection: sqlite3.Connection, rows: Sequence[tuple[bytes, bytes, bytes]]
    ) -> None:
        def pragma(name: str) -> int:
            return int(connection.execute(f"PRAGMA {name}").fetchone()[0])

        # The ``with`` block commits, or rolls back after an error.
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            # Only missing and damaged entries are stored, so an entry with the same digest is
            # damaged and is replaced.
            connection.executemany(
                "INSERT OR REPLACE INTO forms (digest, form, checksum) VALUES (?, ?, ?)", rows
            )
            # SQLite keeps the pages of deleted entries for new ones, so the size of the file never
            # falls.
            pages_in_use = pragma("page_count") - pragma("freelist_count")
            if pages_in_use * pragma("page_size") > self.max_bytes:
                # SQLite numbers new rows upward, so the lowest ids are the oldest entries.
                oldest = (
                    "SELECT id FROM forms ORDER BY id LIMIT (SELECT count(*) / 4 + 1 FROM forms)"
                )
                connection.execute(f"DELETE FROM forms WHERE id IN ({oldest})")


def _rows(connection: sqlite3.Connection, digests: Sequence[bytes]) -> list[Any]:
    """Return (digest, form, checksum) of the entries with these digests."""
    rows: list[Any] = []
    for start in range(0, len(digests), KEYS_PER_QUERY):
        batch = digests[start : start + KEYS_PER_QUERY]
        marks = ",".join("?" * len(batch))
        query = f"SELECT digest, form, checksum FROM forms WHERE digest IN ({marks})"
        rows += connection.execute(query, batch).fetchall()
    return rows


def _digest(key: str, text: str) -> bytes:
    # A model's text can contain lone surrogates, which plain UTF-8 cannot encode.
    return hashlib.sha256(f"{key}\0{text}".encode("utf-8", "surrogatepass")).digest()[:20]
