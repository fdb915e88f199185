"""``qabench cite``: BibTeX of benchmarks, of metrics with additional sources, and of qabench."""

from __future__ import annotations

from typing import Annotated

import typer


def cite(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BENCHMARK|METRIC]...", help="By default all benchmarks."),
    ] = None,
) -> None:
    """Print the BibTeX entries of benchmarks and metrics, and that of qabench."""
    from qabench.citations import bibtex
    from qabench.io.terminal import write_document

    write_document(bibtex(names or ()))
