"""``qabench quickstart``: scores and a comparison on local data, in seconds, without network access."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.cli.options import AsJson, Format, checked_format
from qabench.cli.output import hint, plain_warnings, print_json, print_tables

if TYPE_CHECKING:
    from qabench.data.predictions import Predictions

BENCHMARK = "fanoutqa"
# The share of a reference's lines that each system keeps, and the share of questions that it answers.
SYSTEMS = {"careful": (0.95, 1.0), "hasty": (0.55, 0.92), "rambling": (0.8, 1.0)}
NEXT = {
    "qabench fetch fanoutqa --config dev": "the real questions; --mirror DIR for offline machines",
    "qabench quickstart --config dev": "this comparison on the real questions",
    "qabench score fanoutqa ANSWERS.jsonl": 'the answers of your model, {"id": ..., "answer": ...} per line',
    "qabench list": "all benchmarks and metrics",
}
PADDING = "As far as I can tell, and sources differ on the details, the following should be right: "


def quickstart(
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="NAME",
            help="sample, dev or dev_nov23. Default: dev if QABENCH_MIRROR is set, else sample.",
        ),
    ] = None,
    format: Format = "table",
    as_json: AsJson = False,
) -> None:
    """Score three synthetic systems on FanOutQA questions and compare them."""
    from qabench.cli.evaluations import print_evaluations, print_notes, report
    from qabench.evaluation.comparison import compare
    from qabench.runs.sources import evaluate_predictions

    output_format = checked_format(format, as_json)
    name = config or ("dev" if os.environ.get("QABENCH_MIRROR") else "sample")
    with plain_warnings():
        systems = {
            system: replace(evaluate_predictions(BENCHMARK, name, rows), model=system)
            for system, rows in _systems(name).items()
        }
    metric = next(score.metric for score in next(iter(systems.values())).scores().values())
    comparison = compare(systems, metric)
    ranked = [systems[label] for label in comparison.systems]
    if output_format == "json":
        reports = {evaluation.model: report(evaluation) for evaluation in ranked}
        print_json({"systems": reports, "comparison": comparison.as_dict()})
        return
    print_evaluations(ranked, [], output_format)
    print_tables(comparison.tables()[1:], output_format)
    print_notes(ranked, [], output_format)
    hint("\nNext:", "bold")
    for command, purpose in NEXT.items():
        hint(f"  {command:<50} # {purpose}", None)


def _systems(config: str) -> dict[str, list[dict[str, Any]]]:
    """Return the answers of each system: the sample's files, or synthetic answers to a config's questions."""
    from qabench.data.predictions import read_predictions
    from qabench.loading_scripts import FOLDER, dataset_table, open_path
    from qabench.loading_scripts.fanoutqa.parse import read_rows

    if config == "sample":
        folder = FOLDER / BENCHMARK / "sample" / "generations"
        paths = sorted(folder.glob("*.jsonl"))
        return {path.stem: [dict(row.fields) for row in read_predictions(path).rows] for path in paths}
    table = dataset_table(BENCHMARK).config(config)
    ((file,),) = table.splits.values()
    rows = list(read_rows(open_path(BENCHMARK, file), table.name))
    return {name: [dict(row.fields) for row in synthetic_predictions(name, rows).rows] for name in SYSTEMS}


def synthetic_predictions(system: str, rows: Sequence[Mapping[str, Any]], seed: int = 0) -> Predictions:
    """Return reference answers with parts dropped, or with padding; the same seed gives the same answers."""
    from qabench.answers import loads, text_of
    from qabench.data.predictions import Prediction, Predictions

    line_share, answered_share = SYSTEMS[system]
    predictions = []
    for line, row in enumerate(rows, 1):
        rng = random.Random(f"{seed}/{system}/{row['id']}")
        if rng.random() > answered_share:
            continue
        lines = [part for part in text_of(loads(row["answer"])).split("\n") if rng.random() < line_share]
        text = PADDING + "; ".join(lines) + "." if system == "rambling" else "\n".join(lines)
        predictions.append(Prediction(line, row["id"], {"id": row["id"], "answer": text}))
    return Predictions(f"{system} (synthetic)", tuple(predictions))
