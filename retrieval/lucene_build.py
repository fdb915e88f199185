"""Build a Lucene index with Anserini, for ``LuceneIndex``: from a dataset, JSON lines, Parquet or a ZIM file."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from qabench.errors import InputError, QabenchError
from qabench.io.workers import iterate_parallel, killed_with_parent, most_workers
from qabench.retrieval.corpus_file import Documents
from qabench.retrieval.documents import SOURCES
from qabench.retrieval.lucene import anserini_jar, java_command
from qabench.retrieval.wiki.chunk import chunk_text
from qabench.retrieval.wiki.markdown import article_to_markdown
from qabench.retrieval.wiki.page import PageUnreadable
from qabench.retrieval.wiki.zim import ZimFile, opened

DOCUMENTS_PER_FILE = 20_000  # Anserini reads each file in one thread
ENTRIES_PER_PART = 256  # of a ZIM file, parsed in one process
PASSAGE = 1024  # characters, as in the runs that search Wikipedia
SHOWN_ERROR = 400  # characters of Java's output

Document = dict[str, str]  # "id", "contents", and "title" and "url" where the source has them


def build_lucene(
    documents: Iterable[Document], folder: Path, progress: Callable[[int], None] | None = None
) -> int:
    """Write a Lucene index of documents. The folder appears when the index is complete.

    The documents are first written next to the folder, which needs as much space as their text.

    Returns:
        The number of documents.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} already exists: give another --output, or delete it")
    command = [*java_command(), "-cp", str(anserini_jar()), "io.anserini.index.IndexCollection"]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
        collection, index = Path(temporary, "collection"), Path(temporary, "index")
        size = _write_collection(documents, collection, progress)
        command += ["-collection", "JsonCollection", "-threads", str(os.cpu_count() or 1)]
        command += ["-generator", "DefaultLuceneDocumentGenerator", "-storeRaw"]
        command += ["-input", str(collection), "-index", str(index)]
        process = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            preexec_fn=killed_with_parent(),
        )
        if process.returncode or not list(index.glob("segments_*")):
            output = (process.stderr or process.stdout).strip()[-SHOWN_ERROR:]
            raise QabenchError(
                f"Anserini could not build the index (exit code {process.returncode}): {output}"
            )
        index.replace(folder)
    return size


def _write_collection(
    documents: Iterable[Document], folder: Path, progress: Callable[[int], None] | None
) -> int:
    folder.mkdir()
    iterator, size = iter(documents), 0
    while block := list(islice(iterator, DOCUMENTS_PER_FILE)):
        lines = "".join(json.dumps(document) + "\n" for document in block)
        (folder / f"documents-{size:012}.jsonl").write_text(lines, encoding="ascii")
        size += len(block)
        if progress:
            progress(size)
    if not size:
        raise InputError("nothing to index: the source has no documents")
    return size


def lucene_documents(documents: Documents) -> Iterator[Document]:
    """Yield documents in the form that Anserini reads.

    The columns ``title`` and ``url`` are stored with the text.
    """
    for id, text, row in documents:
        sources = {
            name: row.fields[name] for name in SOURCES if isinstance(row.fields.get(name), str)
        }
        yield {"id": id, "contents": text, **sources}


def zim_documents(path: Path, unreadable: list[tuple[str, str]]) -> Iterator[Document]:
    """Yield the passages of a ZIM file's pages, split as FanOutQA does.

    The pages are parsed on all processors.

    ``unreadable`` gets the (path, reason) of pages without text.
    """
    file = ZimFile(path)
    article_to_markdown("")  # raises MissingExtra here instead of in all processes
    parse = partial(_zim_part, path)
    parts = range(0, file.size, ENTRIES_PER_PART)
    for documents, failures in iterate_parallel(parse, parts, most_workers()):
        unreadable += failures
        yield from documents


def _zim_part(path: Path, start: int) -> tuple[list[Document], list[tuple[str, str]]]:
    file = opened(path, os.getpid())
    documents: list[Document] = []
    failures: list[tuple[str, str]] = []
    for article in file.articles(start, min(start + ENTRIES_PER_PART, file.size)):
        if isinstance(article, tuple):
            failures.append(article)
            continue
        try:
            text = article_to_markdown(article.html)
        except PageUnreadable as error:
            failures.append((article.path, str(error)))
            continue
        fields = {"title": article.title, "url": article.path}
        for number, chunk in enumerate(chunk_text(text, PASSAGE) if text.strip() else []):
            documents.append({"id": f"{article.path}#{number}", "contents": chunk, **fields})
    return documents, failures
