"""Building a sharded BM25 index of a column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qabench.retrieval.bm25.corpus_dataset import CorpusDataset
from qabench.retrieval.bm25.corpus_file import CorpusFile
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.sharded import ShardedIndex
from qabench.retrieval.bm25.sharded_build import Progress, build
from qabench.retrieval.bm25.tokenizers import words


def index(
    source: Any,
    output: str | Path,
    column: str = "text",
    method: str = "bm25+",
    *,
    k1: float = 1.5,
    b: float = 0.75,
    dtype: str = "float64",
    memory: int = 1 << 30,
    progress: Progress | None = None,
) -> ShardedIndex:
    """Builds a sharded BM25 index of one document per row, as ``qabench index build`` does.

    Args:
        source: a ``datasets.Dataset``, or the path of a .jsonl or .parquet file.
        output: the folder of the index. A build that was interrupted continues.
        column: the column of the documents.
        method: the formula; see ``BM25Index``, as for ``k1``, ``b`` and ``dtype``.
        k1: saturation of repeated terms.
        b: strength of length normalization.
        dtype: of the weights.
        memory: bytes for all processes together; see ``qabench.retrieval.bm25.sharded_build.build``.
        progress: called with the step, the number of shards done, and of all shards.

    Returns:
        The index, to search.

    Raises:
        InputError: the source cannot be read, has a row without text, or the folder has another index.
    """
    if isinstance(source, str | Path):
        corpus: CorpusFile | CorpusDataset = CorpusFile.open(Path(source).absolute(), column)
    else:
        corpus = CorpusDataset.of(source, column)
    folder = Path(output).absolute()
    build(corpus, folder, Parameters.of(method, k1, b, None, 0.25), words, dtype, memory, None, progress)
    return ShardedIndex(folder)
