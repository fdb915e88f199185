"""Building a sharded index: shards in parallel within a memory limit, then weights from statistics of all of them.

1. Each shard's terms are counted and the counts are written (``counts-00000``).
2. The vocabularies are merged in the order of the shards, so terms have the order of their first occurrence, as in a
   single index; document frequencies and lengths are added up.
3. Each shard's weights are computed with these statistics and written as an ordinary index file (``shard-00000.bm25``).

A killed build continues with the first missing file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from qabench.errors import InputError
from qabench.io.files import sweep, write_json
from qabench.io.workers import cluster, map_parts, most_workers
from qabench.retrieval.bm25.arrays import Array, Floats
from qabench.retrieval.bm25.backends import InvertedScorer
from qabench.retrieval.bm25.building import Content, Origin
from qabench.retrieval.bm25.corpus_dataset import CorpusDataset
from qabench.retrieval.bm25.corpus_file import CorpusFile
from qabench.retrieval.bm25.corpus_parts import CorpusParts
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.inverted import TermCounter
from qabench.retrieval.bm25.plan import read_plan
from qabench.retrieval.bm25.postings import Collection, weigh
from qabench.retrieval.bm25.reading import CHARACTERS_A_BLOCK, Filters, Fingerprint
from qabench.retrieval.bm25.storage import StoredArrays, write
from qabench.retrieval.bm25.stored import save
from qabench.retrieval.bm25.tokenizers import Tokenizer, name_of
from qabench.retrieval.bm25.vocabulary import StoredVocabulary

FORMAT = 1
PLAN, TERMS = "index.json", "terms.bm25"
SAMPLE = 1000  # documents from which the memory of a shard is estimated
# Upper bounds of the memory that a build needs; performance/bm25_sharded.py measures it.
BYTES_PER_POSTING = 28  # while a shard is counted and weighed
SHARED = 96 << 20  # the interpreter and the libraries, shared by all processes
PER_WORKER = 48 << 20  # one block of texts and its terms
LEAST_PER_WORKER = 64 << 20  # for postings: many small shards are slow to search
LEAST_PER_SHARD = 1000  # documents
COUNTS = ("documents", "counts")

Progress = Callable[[str, int, int], None]
Corpus = CorpusFile | CorpusDataset | CorpusParts
Task = TypeVar("Task")


@dataclass(frozen=True)
class Build:
    """Everything that determines the files of an index."""

    corpus: Corpus
    parameters: Parameters
    tokenizer: Tokenizer
    dtype: str
    folder: Path
    per_shard: int

    @property
    def shards(self) -> int:
        return -(-self.corpus.size // self.per_shard)

    def bounds(self, shard: int) -> tuple[int, int]:
        """The first document of a shard, and the first that is not in it."""
        return shard * self.per_shard, min((shard + 1) * self.per_shard, self.corpus.size)

    def counts_path(self, shard: int) -> Path:
        return self.folder / f"counts-{shard:05}"

    def shard_path(self, shard: int) -> Path:
        return shard_path(self.folder, shard)

    def plan(self) -> dict[str, Any]:
        """The content of ``index.json``."""
        return {
            "format": FORMAT,
            "source": self.corpus.source,
            "stamp": list(self.corpus.stamp),
            "column": self.corpus.column,
            "documents": self.corpus.size,
            "documents_per_shard": self.per_shard,
            "parameters": asdict(self.parameters),
            "tokenizer": name_of(self.tokenizer),
            "dtype": self.dtype,
        }


@dataclass(frozen=True)
class Merged:
    """Statistics of all shards. ``numbers``: for each shard, the numbers of its terms."""

    vocabulary: dict[str, int]
    frequencies: Array
    documents: int
    mean_length: float
    numbers: list[Array]


def shard_path(folder: Path, shard: int) -> Path:
    """The file of a shard."""
    return folder / f"shard-{shard:05}.bm25"


def build(
    corpus: Corpus,
    folder: Path,
    parameters: Parameters,
    tokenizer: Tokenizer,
    dtype: str = "float64",
    memory: int = 1 << 30,
    workers: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Builds a sharded index in a folder, or continues a build of the same index.

    On a cluster in use (``qabench.scale.Cluster``), its machines must see the source and the folder at the same paths.

    Args:
        corpus: the documents.
        folder: where the files are written; created if it does not exist.
        parameters: as for ``BM25Index``.
        tokenizer: as for ``BM25Index``.
        dtype: as for ``BM25Index``.
        memory: bytes for all processes together, without the vocabulary of all terms (about 150 bytes per term).
            More memory gives fewer, larger shards, which are faster to search.
        workers: processes; None for one per processor, as far as the memory allows large shards, or for those of the
            cluster in use.
        progress: called with the step, the number of shards done, and of all shards.

    Raises:
        InputError: a document without text, no terms, or another index in the folder.
        QabenchError: a file cannot be written.
    """
    free = memory - SHARED
    if machines := cluster():
        workers = machines.workers
    workers = workers or max(1, min(most_workers(), free // (PER_WORKER + LEAST_PER_WORKER)))
    found = read_plan(folder / PLAN, FORMAT)
    # A build continues with its shards, also with another number of workers.
    per_shard = _shard_size(found, folder) if found else _per_shard(corpus, tokenizer, free // workers - PER_WORKER)
    job = Build(corpus, parameters, tokenizer, dtype, folder, per_shard)
    if not _begin(job, found):
        return
    step = partial(_in_parallel, total=job.shards, workers=workers, progress=progress)
    uncounted = [n for n in range(job.shards) if not job.counts_path(n).exists()]
    step("count", partial(_count, job), uncounted)
    merged = _merge(job)
    idf = parameters.idf(merged.documents, merged.frequencies)
    unweighed = [n for n in range(job.shards) if not job.shard_path(n).exists()]
    if cluster():  # a task that is sent to another machine has the statistics of its own terms only
        step("weigh", partial(_weigh, job), [(n, _statistics(merged, idf, n)) for n in unweighed])
    else:  # forked processes share them
        step("weigh", lambda n: _weigh(job, (n, _statistics(merged, idf, n))), unweighed)
    _write_terms(job, merged, idf)
    write_json(folder / PLAN, job.plan() | {"complete": True})
    for shard in range(job.shards):
        job.counts_path(shard).unlink()


def _begin(job: Build, found: dict[str, Any] | None) -> bool:
    """Whether there is something to do; checks that the folder belongs to this index."""
    if found is None:
        write_json(job.folder / PLAN, job.plan() | {"complete": False})
    elif differing := [name for name, value in job.plan().items() if found.get(name) != value]:
        raise InputError(
            f"{job.folder} contains another index, which differs in {', '.join(differing)}: use another folder, or "
            "delete this one (a build continues only with the same source and options)"
        )
    sweep(job.folder, "*")
    return found is None or not found.get("complete")


def _shard_size(plan: dict[str, Any], folder: Path) -> int:
    size = plan.get("documents_per_shard")
    if type(size) is not int or size < 1:
        raise InputError(f"{folder / PLAN} is damaged: documents_per_shard is {size!r}; delete the folder")
    return size


def _per_shard(corpus: Corpus, tokenizer: Tokenizer, memory: int) -> int:
    sample = list(corpus.texts(0, min(SAMPLE, corpus.size)))
    counter = TermCounter(tokenizer)
    counter.add(sample)
    per_document = BYTES_PER_POSTING * len(counter.counts()[1]) / len(sample)
    return max(LEAST_PER_SHARD, int(memory / max(per_document, 1)))


def _in_parallel(
    name: str,
    action: Callable[[Task], None],
    tasks: Sequence[Task],
    total: int,
    workers: int,
    progress: Progress | None,
) -> None:
    done = total - len(tasks)
    if progress:
        progress(name, done, total)
    for _ in map_parts(action, tasks, workers):
        done += 1
        if progress:
            progress(name, done, total)


def _count(job: Build, shard: int) -> None:
    counter, fingerprint = TermCounter(job.tokenizer), Fingerprint()
    for block in _blocks(job.corpus.texts(*job.bounds(shard))):
        counter.add(block)
        fingerprint.add([(text, ()) for text in block])
    terms = [term.encode("utf-8", "surrogatepass") for term in counter.vocabulary]
    starts, documents, counts, lengths = counter.counts()
    arrays = {
        "terms": np.frombuffer(b"".join(terms), dtype=np.uint8),
        "term_starts": np.concatenate(([0], np.cumsum([len(term) for term in terms], dtype=np.int64))),
        "starts": starts,
        "lengths": lengths.astype(np.int32),
        "documents": documents,
        "counts": counts,
    }
    write(job.counts_path(shard), {"size": fingerprint.size, "digest": fingerprint.hexdigest()}, arrays, COUNTS)


def _blocks(texts: Iterator[str]) -> Iterator[list[str]]:
    while block := list(islice(texts, 256)):
        while sum(map(len, block)) < CHARACTERS_A_BLOCK and (more := list(islice(texts, 256))):
            block += more
        yield block


def _terms(counts: StoredArrays) -> list[str]:
    data = bytes(counts.array("terms", "|u1"))
    starts = counts.array("term_starts", "<i8").tolist()
    return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(starts)]


def _merge(job: Build) -> Merged:
    vocabulary: dict[str, int] = {}
    frequencies: Array = np.zeros(0, dtype=np.int64)
    numbers, documents, length = [], 0, 0
    for shard in range(job.shards):
        counts = StoredArrays(job.counts_path(shard), memory_map=True)
        of_shard = [vocabulary.setdefault(term, len(vocabulary)) for term in _terms(counts)]
        numbers.append(np.array(of_shard, dtype=np.int32))
        frequencies = np.pad(frequencies, (0, len(vocabulary) - len(frequencies)))
        frequencies[numbers[-1]] += np.diff(counts.array("starts", "<i8"))
        lengths = counts.array("lengths", "<i4")
        documents += len(lengths)
        length += int(lengths.sum(dtype=np.int64))
    if not vocabulary:
        raise InputError(f"nothing to index: {documents} documents without a single term")
    return Merged(vocabulary, frequencies, documents, float(length) / documents, numbers)


def _statistics(merged: Merged, idf: Floats, shard: int) -> Collection:
    return Collection(idf[merged.numbers[shard]], merged.mean_length)


def _weigh(job: Build, task: tuple[int, Collection]) -> None:
    shard, collection = task
    counts = StoredArrays(job.counts_path(shard), memory_map=True)
    starts, lengths = counts.array("starts", "<i8"), counts.array("lengths", "<i4")
    documents, occurrences = counts.array("documents", "<i4"), counts.array("counts", "<i4")
    for name in COUNTS:
        counts.blocks(name).check(0, len(documents))
    postings = weigh(starts, documents, occurrences, lengths, job.parameters, job.dtype, collection)
    vocabulary = {term: number for number, term in enumerate(_terms(counts))}
    origin = Origin(len(lengths), counts.header["digest"], None, (), None)
    content = Content(job.parameters, job.tokenizer, InvertedScorer(postings, vocabulary), Filters(), origin)
    save(content, job.shard_path(shard))


def _write_terms(job: Build, merged: Merged, idf: Floats) -> None:
    text, starts, numbers = StoredVocabulary.arrays(merged.vocabulary.items())
    arrays = {
        "vocabulary_text": text,
        "vocabulary_starts": starts,
        "vocabulary_numbers": numbers,
        "frequencies": merged.frequencies,
        "idf": idf,
        "offsets": job.corpus.offsets,
    }
    write(job.folder / TERMS, {"mean_length": merged.mean_length}, arrays, ())
