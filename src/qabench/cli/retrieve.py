"""``qabench retrieve``: the retrieval study of fastbook-benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.benchmarks.fastbook.study.study import Outcome, Study

METHODS = "bm25, fts (SQLite FTS5), dense, colbert, hybrid (of bm25 and fts) or hybrid:A,B. May be repeated."


def retrieve(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="Which benchmark: fastbook.")],
    method: Annotated[list[str] | None, typer.Option(help=METHODS)] = None,
    config: Annotated[str, typer.Option(help="questions, or sample (shipped).")] = "questions",
    query: Annotated[
        str | None,
        typer.Option(help="What to search for: question or keywords. By default keywords for fts, else question."),
    ] = None,
    chunk_size: Annotated[int, typer.Option(help="The most tokens (words and marks) of a chunk.")] = 500,
    overlap: Annotated[
        int | None, typer.Option(help="The most tokens that chunks share; 64 by default, less for small chunks.")
    ] = None,
    chunker: Annotated[
        str, typer.Option(help="sentences, or llama-index: the source's own chunks, if llama-index-core is installed.")
    ] = "sentences",
    k: Annotated[int, typer.Option("--k", help="The cutoff: how many chunks to retrieve.")] = 10,
    run: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the rankings as a TREC run; with several methods one file for each."),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write which chunks hold the answers, as TREC qrels.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the methods' scores (.png, .svg, .pdf).")
    ] = None,
    dense_model: Annotated[str | None, typer.Option(help="A sentence-transformers model for dense.")] = None,
    colbert_model: Annotated[str | None, typer.Option(help="A ColBERT model for colbert.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Search each question's chapter and score the chunks found: Answer Component MRR@k and Recall@k.

    Scores come by chapter and for all questions, with 95 % bootstrap intervals.
    """
    from qabench.benchmarks.fastbook.study.methods import parse_method
    from qabench.benchmarks.fastbook.study.neural import COLBERT_MODEL, DENSE_MODEL
    from qabench.benchmarks.fastbook.study.study import load_study
    from qabench.benchmarks.fastbook.study.study import run as run_method

    if benchmark.removeprefix("qabench/") != "fastbook":
        raise InputError(f"there is no retrieval study of {benchmark!r}; allowed: fastbook")
    names = list(dict.fromkeys(method or ["bm25"]))
    chosen = [parse_method(name, query, dense_model or DENSE_MODEL, colbert_model or COLBERT_MODEL) for name in names]
    study = load_study(config, chunk_size, overlap, chunker)
    outcomes = [run_method(study, one, k) for one in chosen]
    _write(study, outcomes, run, qrels, plot)
    _print(study, outcomes, as_json)


def _write(study: Study, outcomes: list[Outcome], run: Path | None, qrels: Path | None, plot: Path | None) -> None:
    from qabench.benchmarks.fastbook.trec import qrels_text, run_text
    from qabench.files import write_text

    if run:
        for outcome in outcomes:
            name = outcome.method.name.replace(":", "-").replace(",", "-")
            path = run if len(outcomes) == 1 else run.with_name(f"{run.stem}.{name}{run.suffix}")
            write_text(path, run_text(study.questions, outcome.hits, name))
    if qrels:
        write_text(qrels, qrels_text(study.questions, study.corpus))
    if plot:
        from qabench.benchmarks.fastbook.study.plot import draw

        draw(outcomes, plot)


def _print(study: Study, outcomes: list[Outcome], as_json: bool) -> None:
    from qabench.benchmarks.fastbook.study.report import tables
    from qabench.cli.output import console, print_json, print_table

    if as_json:
        chunks = {str(chapter): len(texts) for chapter, texts in study.corpus.items()}
        held, recall = study.ceiling
        most = {"mrr": held, "recall": recall}
        methods = [outcome.as_dict() for outcome in outcomes]
        print_json({"benchmark": "fastbook", **study.about, "chunks": chunks, "ceiling": most, "methods": methods})
        return
    for table in tables(study, outcomes):
        print_table(table)
    out = console()
    for outcome in outcomes:
        out.print(outcome.signature, style="dim", markup=False, soft_wrap=True)
