"""``qabench index``: a Lucene index for ``--retriever lucene:DIR``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qabench.errors import InputError
from qabench.io.terminal import write_line

LISTED = 20  # pages that could not be read


def index(
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
) -> None:
    """Build a Lucene index of a corpus with Anserini, for `--retriever lucene:DIR`.

    Exit code: 0 all documents are indexed; 1 some pages of a ZIM file could not be read, the others are indexed; 2
    wrong usage.
    """
    from qabench.cli.output import progress_bar
    from qabench.retrieval.lucene_build import build_lucene, dataset_documents, file_documents, zim_documents

    unreadable: list[tuple[str, str]] = []
    if split is not None:
        documents = dataset_documents(source, config, split, column)
    elif config is not None:
        raise InputError("--config is for a dataset; give --split as well")
    elif not Path(source).exists():
        raise InputError(f"file not found: {source}; to index a dataset on the Hub, add --split NAME")
    elif source.endswith(".zim"):
        documents = zim_documents(Path(source), unreadable)
    else:
        documents = file_documents(Path(source), column)
    with progress_bar("Reading documents") as show:
        size = build_lucene(documents, output, (lambda done: show(done, done)) if show else None)
    write_line(f"{output}: {size:,} documents; search it with --retriever lucene:{output}")
    if unreadable:
        write_line(f"{len(unreadable):,} pages could not be read:")
        for path, reason in unreadable[:LISTED]:
            write_line(f"  {path}: {reason}")
        if len(unreadable) > LISTED:
            write_line(f"  and {len(unreadable) - LISTED:,} more")
        raise typer.Exit(1)
