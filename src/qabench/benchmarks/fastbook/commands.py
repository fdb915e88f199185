"""``qabench fastbook retrieve``: the retrieval experiment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from qabench.benchmarks.fastbook import BENCHMARK
from qabench.cli.options import Format
from qabench.cli.score import show
from qabench.evaluation import Evaluation
from qabench.io.files import write_text
from qabench.runs.sources import Found, evaluate_predictions

if TYPE_CHECKING:
    from qabench.benchmarks.fastbook.study import Retrieval

METHODS = "bm25, fts (SQLite FTS5), dense or colbert. May be repeated."


def retrieve(
    method: Annotated[list[str] | None, Option(help=METHODS)] = None,
    config: Annotated[str, Option(help="questions, or sample.")] = "questions",
    query: Annotated[
        str | None,
        Option(help="question or keywords. Default: keywords for fts, else question."),
    ] = None,
    chunk_size: Annotated[
        int, Option(help="The maximum number of tokens (words and marks) of a chunk.")
    ] = 500,
    overlap: Annotated[
        int | None,
        Option(
            help="The maximum number of tokens that chunks share. Default: 64, or a quarter of the size."
        ),
    ] = None,
    chunker: Annotated[
        str,
        Option(help="sentences, or llama-index: the source's chunks; needs llama-index-core."),
    ] = "sentences",
    k: Annotated[int, Option(help="The cutoff: the number of chunks to retrieve.")] = 10,
    run: Annotated[
        Path | None,
        Option(help="Write the rankings as a TREC run, one file per method."),
    ] = None,
    dense_model: Annotated[
        str | None, Option(help="The sentence-transformers model of dense.")
    ] = None,
    colbert_model: Annotated[str | None, Option(help="The ColBERT model of colbert.")] = None,
    format: Format = "table",
) -> None:
    """Search each question's chapter and score the retrieved chunks: Answer Component MRR@k and Recall@k.

    Scores are printed as by `qabench score --by chapter`.
    """
    from qabench.benchmarks.fastbook.retrieval import COLBERT_MODEL, DENSE_MODEL, parse_method
    from qabench.benchmarks.fastbook.study import load_study, run_text
    from qabench.benchmarks.fastbook.study import run as run_method

    names = list(dict.fromkeys(method or ["bm25"]))
    chosen = [
        parse_method(name, query, dense_model or DENSE_MODEL, colbert_model or COLBERT_MODEL)
        for name in names
    ]
    study = load_study(config, chunk_size, overlap, chunker)
    outcomes = [run_method(study, parsed, k) for parsed in chosen]
    if run:
        for outcome in outcomes:
            name = outcome.method.name
            path = run if len(outcomes) == 1 else run.with_name(f"{run.stem}.{name}{run.suffix}")
            write_text(path, run_text(study.questions, outcome.hits, name))
    evaluations = [_evaluation(outcome, config) for outcome in outcomes]
    show(Found(evaluations), format, by=["chapter"], verbose=True)


def _evaluation(outcome: Retrieval, config: str) -> Evaluation:
    """Score what a method retrieved as a file of predictions, with the signature of the method."""
    rows = [{"id": id, **fields} for id, fields in outcome.predicted.items()]
    name = f"{outcome.method.name} ({outcome.method.query})"
    predictions = replace(BENCHMARK.read(rows), path=name)
    evaluation = evaluate_predictions("fastbook", config, predictions, k=outcome.k)
    return replace(evaluation, signatures={"retrieval": outcome.signature})
