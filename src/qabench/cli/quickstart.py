"""``qabench quickstart``: the whole job on data that is at hand, in seconds, with no network."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.old_predictions import Evaluation, Questions
    from qabench.generations import Generations


def quickstart(
    data: Annotated[
        str | None,
        typer.Option(help="sample (shipped), dev or dev_nov23; dev if QABENCH_MIRROR is set, else sample."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Score three imaginary systems on FanOutQA questions and say which is better, and how surely."""
    from qabench.benchmarks.fanoutqa.old_predictions import evaluate, load_questions
    from qabench.cli.output import plain_warnings, print_json
    from qabench.text import Normalizer
    from qabench.text.cache import NormalizedTextCache

    questions = load_questions("fanoutqa", data or ("dev" if os.environ.get("QABENCH_MIRROR") else "sample"))
    with plain_warnings():
        normalizer = Normalizer("auto", NormalizedTextCache.default())
        evaluations = {
            name: evaluate(generations, questions, normalizer=normalizer)
            for name, generations in _systems(questions).items()
        }
    # The best first, as a table of results is read.
    ranked = dict(sorted(evaluations.items(), key=lambda item: -item[1].scores()["acc"]["loose"]))
    if as_json:
        systems = {name: evaluation.as_dict() for name, evaluation in ranked.items()}
        print_json({"systems": systems, "comparisons": _comparisons(ranked)})
    else:
        _print(questions, ranked)


def _systems(questions: Questions) -> dict[str, Generations]:
    from qabench.benchmarks.fanoutqa.synthetic import SYSTEMS, imaginary_answers
    from qabench.generations import read_generations
    from qabench.loading_scripts import FOLDER

    if questions.config != "sample":
        return {name: imaginary_answers(name, questions.rows) for name in SYSTEMS}
    folder = FOLDER / "fanoutqa" / "sample" / "generations"
    return {path.stem: read_generations(path) for path in sorted(folder.glob("*.jsonl"))}


def _comparisons(ranked: dict[str, Evaluation]) -> list[dict[str, object]]:
    """Each system against the next, by loose accuracy on the same questions."""
    from qabench.stats import paired_bootstrap

    names = list(ranked)
    compared: list[dict[str, object]] = []
    for better, worse in pairwise(names):
        difference = paired_bootstrap(ranked[better].columns()["acc.loose"], ranked[worse].columns()["acc.loose"])
        compared.append(
            {
                "better": better,
                "worse": worse,
                "difference": difference.interval.mean,
                "low": difference.interval.low,
                "high": difference.interval.high,
                "p_value": difference.p_value,
                "significant": difference.significant,
            }
        )
    return compared


def _print(questions: Questions, ranked: dict[str, Evaluation]) -> None:
    from qabench.cli.output import console, print_table
    from qabench.tables import Table

    rows = []
    for name, evaluation in ranked.items():
        loose, scores = evaluation.intervals()["acc.loose"], evaluation.scores()
        interval = f"{loose.low:.3f} to {loose.high:.3f}"
        figures = [
            scores["acc"]["strict"],
            *(scores["rouge"][kind]["fscore"] for kind in ("rouge1", "rouge2", "rougeL")),
        ]
        unanswered = evaluation.joined.counts()["missing"]
        rows.append([name, f"{loose.mean:.3f}", interval, *(f"{figure:.3f}" for figure in figures), unanswered])
    columns = ["system", "loose", "95 % interval", "strict", "ROUGE-1", "ROUGE-2", "ROUGE-L", "unanswered"]
    title = f"Three imaginary systems on {len(questions.rows)} questions (fanoutqa {questions.config})"
    print_table(Table(title, columns, rows, ["loose and strict: accuracy; ROUGE: F-measure; intervals: bootstrap"]))
    out = console()
    for c in _comparisons(ranked):
        verdict = "better" if c["significant"] else "not significantly better"
        out.print(
            f"{c['better']} is {verdict} than {c['worse']}: {c['difference']:+.3f} loose accuracy "
            f"({c['low']:+.3f} to {c['high']:+.3f}, p = {c['p_value']:.4f}, paired bootstrap)"
        )
    first = next(iter(ranked.values()))
    out.print(f"\nsignature of acc: {first.signatures['acc']}", style="dim", markup=False, soft_wrap=True)
    out.print("\nNext:", style="bold")
    for command, what in _next_commands(first.unofficial is not None):
        out.print(f"  {command:<47} # {what}", markup=False, soft_wrap=True)


def _next_commands(unofficial: bool) -> list[tuple[str, str]]:
    official = [("pip install 'qabench[spacy]'", "then the model: python -m spacy download en_core_web_sm")]
    return [
        *(official if unofficial else []),
        ("qabench fetch fanoutqa --config dev", "the real questions, verified; --mirror DIR for offline machines"),
        ("qabench quickstart --data dev", "this comparison on them"),
        ("qabench score fanoutqa dev ANSWERS.jsonl", 'your model\'s answers: {"id": ..., "answer": ...} a line'),
        ("qabench list", "all benchmarks and metrics"),
    ]
