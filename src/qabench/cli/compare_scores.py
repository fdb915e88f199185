"""``qabench compare-scores``: compares systems from files of per-item scores."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.cli.options import AsJson
from qabench.cli.score_files import Scores, questions_of, read_scores, shared_ids
from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.stats import Comparison

RESAMPLES = 10_000  # the default of qabench.stats, which imports NumPy


def compare_scores(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help='Files of scores as JSONL, {"id", "acc": {"loose": 0.5}}, as `qabench score --per-item` writes them.',
        ),
    ],
    metric: Annotated[str, typer.Option(help="The score to compare, such as acc.loose.")],
    test: Annotated[str, typer.Option(help="randomization or bootstrap.")] = "randomization",
    correction: Annotated[
        str, typer.Option(help="Correction of p-values for several pairs: holm, bh (false discovery rate) or none.")
    ] = "holm",
    cluster: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="The field that names an item's question, if several items share it."),
    ] = None,
    agreement: Annotated[
        bool, typer.Option("--agreement", help="Also print Cohen's kappa of each pair, for scores of judges.")
    ] = False,
    resamples: Annotated[int, typer.Option(min=1, max=10_000_000, help="Resamples.")] = RESAMPLES,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the resampling.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare systems from files of scores of any program, on the items that are in all files."""
    from qabench import stats
    from qabench.cli.output import print_json

    for name, of, allowed in (("test", test, tuple(stats.TESTS)), ("correction", correction, stats.CORRECTIONS)):
        if of not in allowed:
            raise InputError(f"unknown {name} {of!r}; allowed: {', '.join(allowed)}")
    paths = _paths(files)
    systems = {name: read_scores(path, metric, cluster) for name, path in paths.items()}
    ids = shared_ids(systems)
    values = {name: [system.values[i] for i in ids] for name, system in systems.items()}
    clusters = questions_of(systems, ids) if cluster else None
    settings: dict[str, Any] = {"test": test, "correction": correction, "resamples": resamples, "seed": seed}
    compared = stats.compare(values, clusters=clusters, **settings)
    settings["metric"] = metric
    kappas = _kappas(values, clusters, resamples, seed) if agreement else []
    if as_json:
        print_json(_report(settings, paths, systems, compared) | ({"agreement": kappas} if agreement else {}))
        return
    _print(settings, systems, compared)
    if agreement:
        _print_kappas(kappas)


def _kappas(
    values: dict[str, list[float]], clusters: list[str] | None, resamples: int, seed: int
) -> list[dict[str, Any]]:
    """Cohen's kappa of each pair of files, with equal scores as equal labels."""
    from qabench.stats import cohens_kappa

    rows = []
    for first, second in combinations(values, 2):
        found = cohens_kappa(values[first], values[second], clusters=clusters, resamples=resamples, seed=seed)
        bounds = {key: getattr(found.interval, key) for key in ("standard_error", "low", "high")}
        shares = {"agreement": found.agreement, "chance": found.chance}
        rows.append({"first": first, "second": second, "kappa": found.interval.mean, **bounds, **shares})
    return rows


def _print_kappas(rows: list[dict[str, Any]]) -> None:
    from qabench.cli.output import print_table
    from qabench.io.tables import Table

    cells = [
        [f"{row['first']} - {row['second']}", f"{row['kappa']:.4f}", f"{row['low']:.4f} to {row['high']:.4f}"]
        + [f"{row[name]:.4f}" for name in ("agreement", "chance")]
        for row in rows
    ]
    columns = ["pair", "kappa", "95% interval", "agreement", "by chance"]
    print_table(Table("Agreement (Cohen's kappa, equal scores as equal labels)", columns, cells))


def _paths(files: list[Path]) -> dict[str, Path]:
    """Name of the system -> path: the files' stems, or their paths if stems are equal."""
    if len(files) < 2:
        raise InputError("nothing to compare: give at least two files")
    if len(set(files)) < len(files):
        raise InputError(f"the file was given twice: {next(path for path in files if files.count(path) > 1)}")
    stems = [path.stem for path in files]
    return dict(zip(stems if len(set(stems)) == len(stems) else map(str, files), files, strict=True))


def _report(
    settings: dict[str, Any], paths: dict[str, Path], systems: dict[str, Scores], compared: Comparison
) -> dict[str, Any]:
    """The comparison as JSON data."""
    rows = []
    for name, interval in compared.systems.items():
        problems = systems[name].problems
        rows.append({"system": name, "file": str(paths[name]), **asdict(interval), "problems": problems})
    pairs = [pair.as_dict() for pair in compared.pairs]
    return {**settings, "items": compared.items, "questions": compared.questions, "systems": rows, "pairs": pairs}


def _print(settings: dict[str, Any], systems: dict[str, Scores], compared: Comparison) -> None:
    from qabench.cli.output import print_table, say
    from qabench.io.tables import Table

    of = f"{compared.items} items of " if compared.items != compared.questions else ""
    rows: list[list[Any]] = [
        [name, f"{found.mean:.4f}", f"{found.low:.4f} to {found.high:.4f}", f"{found.standard_error:.4f}"]
        for name, found in compared.systems.items()
    ]
    title = f"{settings['metric']} on {of}{compared.questions} questions"
    print_table(Table(title, ["system", "mean", "95% interval", "standard error"], rows))
    rows = []
    for pair in compared.pairs:
        found = pair.difference.interval
        verdict = f"{pair.first} is better" if pair.significant else "no significant difference"
        p_values = [f"{p:.4f}" for p in (pair.difference.p_value, pair.corrected_p)]
        counts = [pair.wins, pair.ties, pair.losses]
        interval = f"{found.low:+.4f} to {found.high:+.4f}"
        rows.append([f"{pair.first} - {pair.second}", f"{found.mean:+.4f}", interval, *p_values, *counts, verdict])
    columns = ["pair", "difference", "95% interval", "p", "corrected p", "wins", "ties", "losses", "verdict at 5%"]
    notes = [
        f"p: paired {settings['test']} test, two-sided, {settings['resamples']:,} resamples, seed {settings['seed']}; "
        f"correction: {settings['correction']}; intervals: bootstrap over questions, not corrected"
    ]
    print_table(Table("Pairs", columns, rows, notes))
    for name, system in systems.items():
        for problem in system.problems:
            say(f"{name}: {problem}", "yellow")
