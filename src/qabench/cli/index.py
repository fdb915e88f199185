"""``qabench index``: BM25 indexes of corpora that are larger than memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qabench.cli.options import OnRay, RayAddress, on_ray
from qabench.errors import InputError
from qabench.io.terminal import write_line

if TYPE_CHECKING:
    from qabench.retrieval.bm25.sharded_build import Corpus

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
STEPS = {"count": 70, "weigh": 30}  # the share of each in the time, in percent
SHOWN = 200  # characters of a document

index_app = typer.Typer(
    help="BM25 indexes of corpora that are larger than memory.", no_args_is_help=True, rich_markup_mode=None
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", file_okay=False, help="The folder of the index.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@index_app.command("build")
def build(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A .jsonl or .parquet file, or with --split a dataset on the Hub: one document per row. "
            "Or a .zim file: the passages of its pages.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", metavar="DIR", file_okay=False, help="The folder to write.")],
    column: Annotated[str, typer.Option("--column", help="The field with the text.")] = "text",
    split: Annotated[str | None, typer.Option("--split", help="The split of a dataset, such as train.")] = None,
    config: Annotated[str | None, typer.Option("--config", help="The config of a dataset.")] = None,
    method: Annotated[str, typer.Option("--method", help="bm25+, okapi, bm25l, lucene, atire or robertson.")] = "bm25+",
    k1: Annotated[float, typer.Option("--k1", help="Saturation of repeated terms.")] = 1.5,
    b: Annotated[float, typer.Option("--b", help="Strength of length normalization, 0 to 1.")] = 0.75,
    dtype: Annotated[str, typer.Option("--dtype", help="float64, or float32 for two thirds of the size.")] = "float64",
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Memory limit of all processes together, such as 512MiB.")
    ] = "1GiB",
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; by default one per CPU.")] = None,
    ray: OnRay = False,
    ray_address: RayAddress = None,
) -> None:
    """Build a sharded index. Run the same command again to continue a build that was stopped."""
    from qabench.cli.output import in_steps, progress_bar
    from qabench.cli.wiki import build_of_zim
    from qabench.retrieval.bm25.building import DTYPES
    from qabench.retrieval.bm25.formulas import Parameters
    from qabench.retrieval.bm25.sharded import ShardedIndex
    from qabench.retrieval.bm25.sharded_build import build as build_index
    from qabench.retrieval.bm25.tokenizers import words

    if dtype not in DTYPES:
        raise InputError(f"--dtype is {dtype!r}; allowed: {', '.join(DTYPES)}")
    parameters = Parameters.of(method, k1, b, None, 0.25)
    limit = bytes_of(memory)
    if source.endswith(".zim"):
        options = {"parameters": parameters, "dtype": dtype, "memory": limit, "workers": workers}
        build_of_zim(Path(source), output, False, ray, ray_address, **options)
        return
    corpus = _corpus(source, column, split, config)
    with on_ray(ray, ray_address, workers), progress_bar("Building the index, percent") as show:
        progress = in_steps(show, STEPS)
        build_index(corpus, output, parameters, words, dtype, limit, workers, progress)
    info = ShardedIndex(output).info()
    size = f"{info['bytes'] / 2**20:,.1f} MiB"
    write_line(f"{output}: {info['documents']:,} documents in {info['shards']} shards, {size}")


@index_app.command("search")
def search(
    folder: Folder,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query.")],
    k: Annotated[int, typer.Option("-k", min=1, help="The number of documents.")] = 10,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Threads; each searches some of the shards.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Print the best documents for a query: rank, score, position in the source and text."""
    from qabench.cli.output import print_json
    from qabench.retrieval.bm25.sharded import ShardedIndex

    index = ShardedIndex(folder)
    hits = index.search(query, k, workers)
    texts: Sequence[str | None] = index.texts(hits.positions) or [None] * len(hits.positions)
    found = list(zip(hits.positions, hits.scores, texts, strict=True))
    if as_json:
        print_json([{"position": position, "score": score, "text": text} for position, score, text in found])
        return
    for rank, (position, score, text) in enumerate(found, 1):
        shown = "(the source has changed)" if text is None else " ".join(text.split())[:SHOWN]
        write_line(f"{rank:3}  {score:9.4f}  {position:>9}  {shown}")


@index_app.command("info")
def info(folder: Folder) -> None:
    """Print the size, parameters and source of an index as JSON."""
    from qabench.cli.output import print_json
    from qabench.retrieval.bm25.sharded import ShardedIndex

    print_json(ShardedIndex(folder).info())


@index_app.command("verify")
def verify(folder: Folder) -> None:
    """Compare all files of an index with their checksums. Exit code: 0 intact, 2 damaged."""
    from qabench.retrieval.bm25.sharded import ShardedIndex

    index = ShardedIndex(folder)
    index.verify()
    write_line(f"{folder}: intact, {len(index):,} documents")


def _corpus(source: str, column: str, split: str | None, config: str | None) -> Corpus:
    from qabench.retrieval.bm25.corpus_dataset import CorpusDataset
    from qabench.retrieval.bm25.corpus_file import CorpusFile

    if split is not None:
        return CorpusDataset.open(source, config, split, column)
    if config is not None:
        raise InputError("--config is for a dataset; give --split as well")
    if not Path(source).suffix and not Path(source).exists():
        raise InputError(f"file not found: {source}; to index a dataset on the Hub, add --split NAME")
    return CorpusFile.open(Path(source), column)


def bytes_of(text: str) -> int:
    """The value of --memory in bytes. Raises InputError if it is not a number with a unit."""
    unit = next((unit for unit in UNITS if text.endswith(unit)), None)
    number = text.removesuffix(unit or "").strip()
    if unit is None or not (number.isascii() and number.isdigit() and int(number)):
        raise InputError(f"--memory is {text!r}; it must be a number with a unit of {', '.join(UNITS)}, such as 512MiB")
    return int(number) * UNITS[unit]
