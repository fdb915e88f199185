"""Parses the pages of a ZIM file to Markdown and splits them into passages, in processes, part by part.

A part is a range of the file's entries. Its passages are written to one Parquet file, together with the counts of its
entries and the names of the pages that could not be read, so a part is either complete or not there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from qabench.errors import InputError
from qabench.io.files import replacing, sweep, write_json
from qabench.io.limits import json_of
from qabench.io.workers import map_parts
from qabench.retrieval.bm25.corpus_file import opened_parquet
from qabench.retrieval.bm25.plan import read_plan
from qabench.retrieval.wiki.chunk import chunk_text
from qabench.retrieval.wiki.markdown import article_to_markdown
from qabench.retrieval.wiki.page import PageUnreadable
from qabench.retrieval.wiki.zim import Article, ZimFile, decoded, opened

FORMAT = 1
PLAN = "zim.json"
FOLDER = "pages"  # of the parts, in the folder of the index
COUNTS = b"qabench"  # the key of the counts in a Parquet file's metadata
ENTRIES_PER_PART = 2048
CHARACTERS_PER_GROUP = 1 << 19  # of passages, in a row group, which is read as a whole
PASSAGE = 1024  # characters, as in FanOutQA's runs
COLUMNS = ("title", "path", "text")


@dataclass
class Parsed:
    """Counts of a ZIM file's entries, which add up to ``entries``.

    Attributes:
        entries: all entries of the file.
        pages: articles that were parsed.
        blank: articles without text.
        others: redirects, images and other files.
        bad: (path, reason) of articles that cannot be read or parsed.
        passages: passages of all pages.
        html: bytes of HTML of all pages.
        characters: characters of Markdown of all pages.
    """

    entries: int = 0
    pages: int = 0
    blank: int = 0
    others: int = 0
    bad: list[tuple[str, str]] = field(default_factory=list)
    passages: int = 0
    html: int = 0
    characters: int = 0

    def add(self, other: Parsed) -> None:
        """Adds the counts of another part."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True)
class Parsing:
    """Everything that determines the parts of a file."""

    zim: Path
    folder: Path
    passage: int = PASSAGE
    entries_per_part: int = ENTRIES_PER_PART

    def path(self, part: int) -> Path:
        """The file of a part."""
        return self.folder / f"part-{part:06}.parquet"


def parse_zim(
    job: Parsing, workers: int | None = None, progress: Callable[[str, int, int], None] | None = None
) -> Parsed:
    """Parses all pages of a ZIM file, or continues where an earlier call was stopped.

    Args:
        job: the file, the folder to write, and the sizes.
        workers: processes; None for one per processor, or for those of the cluster in use.
        progress: called with "parse", the number of parts done, and of all parts.

    Raises:
        InputError: not a ZIM file, a damaged one, or the folder has the parts of another file or of other options.
        MissingExtra: libzim or markdownify is not installed.
        QabenchError: a part cannot be written.
    """
    file = ZimFile(job.zim)
    article_to_markdown("")  # raises MissingExtra here instead of in all processes
    _begin(job, file)
    total = -(-file.size // job.entries_per_part)
    left = [part for part in range(total) if not job.path(part).exists()]
    done = total - len(left)
    for _ in map_parts(partial(parse_part, job), left, workers):
        done += 1
        if progress:
            progress("parse", done, total)
    return counts_of(job.folder)


def parse_part(job: Parsing, part: int) -> None:
    """Parses the entries of a part and writes its file. Independent of other parts."""
    import pyarrow
    import pyarrow.parquet

    file = opened(job.zim, os.getpid())
    counts = Parsed()
    start = part * job.entries_per_part
    passages = _passages(file, start, min(start + job.entries_per_part, file.size), job.passage, counts)
    schema = pyarrow.schema([(name, pyarrow.string()) for name in COLUMNS])
    with (
        replacing(job.path(part)) as output,
        pyarrow.parquet.ParquetWriter(output, schema, compression="zstd") as writer,
    ):
        for group in _groups(passages):
            columns = zip(*group, strict=True)
            writer.write_table(pyarrow.table([pyarrow.array(column, pyarrow.string()) for column in columns], schema))
        writer.add_key_value_metadata({COUNTS: json.dumps(asdict(counts))})


def counts_of(folder: Path) -> Parsed:
    """The counts of all parts in a folder. Raises InputError if one is damaged."""
    total = Parsed()
    for path in sorted(folder.glob("part-*.parquet")):
        with opened_parquet(path) as file:
            found = json_of((file.metadata.metadata or {}).get(COUNTS, b"null"))
        try:
            counts = Parsed(**found)
        except TypeError:
            raise InputError(f"{path} has no counts of pages: delete it, and run the same command again") from None
        counts.bad = [(name, reason) for name, reason in counts.bad]
        total.add(counts)
    return total


def _begin(job: Parsing, file: ZimFile) -> None:
    plan = {
        "format": FORMAT,
        "uuid": file.uuid,
        "entries": file.size,
        "passage": job.passage,
        "entries_per_part": job.entries_per_part,
    }
    found = read_plan(job.folder / PLAN, FORMAT)
    if found is not None and (differing := [name for name, value in plan.items() if found.get(name) != value]):
        raise InputError(
            f"{job.folder} has the pages of another ZIM file or of other options, which differ in "
            f"{', '.join(differing)}: use another folder, or delete this one"
        )
    if found is None:
        file.verify()
    write_json(job.folder / PLAN, plan | {"zim": str(job.zim.absolute())})
    sweep(job.folder, "*")


def _passages(file: ZimFile, start: int, end: int, size: int, counts: Parsed) -> Iterator[tuple[str, str, str]]:
    """The passages of a range of entries as (title, path, text); counts the entries."""
    for found in file.articles(start, end):
        counts.entries += 1
        if found is None:
            counts.others += 1
        elif isinstance(found, tuple):
            counts.bad.append(found)
        else:
            try:
                chunks = _chunks(found, size, counts)
            except PageUnreadable as error:
                counts.bad.append((found.path, str(error)))
            else:
                yield from ((found.title, found.path, chunk) for chunk in chunks)


def _chunks(article: Article, size: int, counts: Parsed) -> list[str]:
    text = article_to_markdown(decoded(article.html))
    if not text.strip():
        counts.blank += 1
        return []
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # &#xD800; and similar
        text = text.encode("utf-8", "replace").decode("utf-8")
    chunks = chunk_text(text, size)
    counts.pages += 1
    counts.passages += len(chunks)
    counts.html += len(article.html)
    counts.characters += len(text)
    return chunks


def _groups(passages: Iterator[tuple[str, str, str]]) -> Iterator[list[tuple[str, str, str]]]:
    group, characters = [], 0
    for passage in passages:
        group.append(passage)
        characters += len(passage[2])
        if characters >= CHARACTERS_PER_GROUP:
            yield group
            group, characters = [], 0
    if group:
        yield group
