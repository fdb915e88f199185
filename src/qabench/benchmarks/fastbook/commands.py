"""``qabench fastbook retrieve``: the retrieval experiment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from qabench.benchmarks.fastbook import BENCHMARK
from qabench.cli.evaluations import show
from qabench.cli.options import Format
from qabench.evaluation.scoring import Item
from qabench.io.files import check_writable, write_text
from qabench.runs.predictions import evaluate_predictions
from qabench.runs.sources import Evaluations

OTHER_CHUNKS = (
    'official "yes": the scores are computed as by the author. The passages are qabench\'s, so the published values of '
    "the same methods are different: `qabench reproduce fastbook` computes these"
)


def retrieve(
    method: Annotated[str, Option(help="bm25, fts (SQLite FTS5), dense or colbert.")] = "bm25",
    config: Annotated[str, Option(help="questions, or sample.")] = "questions",
    query: Annotated[
        str | None, Option(help="question or keywords. Default: keywords for fts, else question.")
    ] = None,
    model: Annotated[
        str | None, Option(help="The encoder of dense or colbert: NAME, NAME@REVISION or a folder.")
    ] = None,
    k: Annotated[
        int, Option("-k", "--k", help="The cutoff: the number of passages to retrieve.")
    ] = 10,
    output: Annotated[
        Path | None,
        Option("--output", "-o", "--run", help="Write the rankings as a TREC run."),
    ] = None,
    format: Format = "table",
) -> None:
    """Search each question's chapter, and score the retrieved passages.

    The passages are the config `chunks`. Answer Component MRR@k and Recall@k are printed as by
    `qabench score --by chapter`.
    """
    from qabench.benchmarks.fastbook import retrieval
    from qabench.retrieval.documents import run_lines

    if output:
        check_writable(output)
    questions = BENCHMARK.load(config)
    retrieved = retrieval.retrieve(questions.rows, config, method, query, k, model)
    predicted = retrieved.predicted
    if output:
        lines: list[str] = []
        for id, fields in predicted.items():
            pairs = zip(fields["documents"], fields["scores"], strict=True)
            lines += run_lines(id, list(pairs), method)
        write_text(output, "".join(lines))
    rows = [{"id": id, **fields} for id, fields in predicted.items()]
    predictions = BENCHMARK.read(rows)
    # Tables name a system after the file of its predictions.
    predictions = replace(predictions, path=f"{method} ({retrieved.about['query']})")
    evaluation = evaluate_predictions("fastbook", config, predictions, k=k)
    # In contrast to the signature of a file of predictions, this one describes the retrieval.
    items = [Item(question.row, predicted[question.id]) for question in questions.rows]
    about = {"config": config, "data": questions.data} | retrieved.about
    signatures = BENCHMARK.scorer(["retrieval"], k=k).signatures(items, about)
    signed = replace(evaluation, signatures=signatures)
    show(Evaluations([signed], [OTHER_CHUNKS]), format, by=["chapter"])
