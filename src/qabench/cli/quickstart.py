"""``qabench quickstart``: scores and a comparison on the shipped sample, without network access."""

from __future__ import annotations

from qabench.cli.evaluations import print_evaluations, print_notes
from qabench.cli.output import hint, plain_warnings, print_tables
from qabench.loading_scripts import FOLDER
from qabench.runs.predictions import evaluate_predictions

BENCHMARK = "fanoutqa"
NEXT = {
    "qabench fetch fanoutqa --config dev": "the real questions; --mirror DIR for offline machines",
    "qabench score fanoutqa ANSWERS.jsonl": 'the answers of your model, {"id": ..., "answer": ...} per line',
    "qabench list": "all benchmarks and metrics",
}


def quickstart() -> None:
    """Score three synthetic systems on a sample of FanOutQA's questions and compare them."""
    from qabench.runs.comparing import compare

    files = sorted((FOLDER / BENCHMARK / "sample" / "generations").glob("*.jsonl"))
    with plain_warnings():
        systems = {path.stem: evaluate_predictions(BENCHMARK, "sample", path) for path in files}
    comparison = compare(BENCHMARK, "sample", systems)
    # A comparison lists the best system first.
    ranked = [systems[label] for label in comparison.systems]
    print_evaluations(ranked, [], "table")
    print_tables(comparison.score_tables()[1:])
    print_notes(ranked, [])
    hint("\nNext:", "bold")
    for command, purpose in NEXT.items():
        hint(f"  {command:<50} # {purpose}", None)
