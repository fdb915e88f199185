"""Evaluations as tables and notes, for ``score`` and ``run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabench.benchmarks import benchmark
from qabench.benchmarks.published import ranks
from qabench.cli.output import print_tables, say, say_on_stderr
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.labels import labels
from qabench.evaluation.results import cached_note, problems, undefined_note, unscored
from qabench.evaluation.scores import Score
from qabench.io.tables import Table

SHOWN = 5  # problems that are listed per evaluation; the others are counted


def report(evaluation: Evaluation, by: Sequence[str] = ()) -> dict[str, Any]:
    """The evaluation as JSON data, with the scores in the shape of the authors' scorer as "official".

    "published" has, by metric, the rank of the score among published scores; see ``qabench.benchmarks.published.rank``.

    Raises:
        InputError: an unknown grouping.
    """
    allowed = evaluation.groupings()
    if unknown := [name for name in by if name not in allowed]:
        raise InputError(
            f"{_config(evaluation)} has no grouping {unknown[0]!r}; allowed: {', '.join(allowed) or 'none'}"
        )
    shape = benchmark(evaluation.benchmark).official_shape(evaluation) if evaluation.answered else None
    official = {"official": shape} if shape else {}
    return evaluation.as_dict(by) | official | {"published": ranks(evaluation, evaluation.scores())}


def deviations(evaluation: Evaluation) -> dict[str, list[str]]:
    """Return what distinguishes scores from the official ones, each sentence with the scores that it applies to.

    The scores are named by their families; those of a family to which a sentence applies in part by their own names.
    """
    scores = evaluation.scores()
    affected: dict[str, list[str]] = {}
    for name, score in scores.items():
        for sentence in evaluation.deviations(score):
            affected.setdefault(sentence, []).append(name)
    families: dict[str, list[str]] = {}
    for name, score in scores.items():
        families.setdefault(score.metric.family, []).append(name)
    for sentence, names in affected.items():
        whole = {name: family for family, of in families.items() if set(of) <= set(names) for name in of}
        affected[sentence] = list(dict.fromkeys(whole.get(name, name) for name in names))
    return affected


def is_official(evaluation: Evaluation) -> bool:
    """Return whether all scores that the benchmark's authors report are official, and there is at least one."""
    reported = [score for score in evaluation.scores().values() if score.metric.official]
    return bool(reported) and not any(map(evaluation.deviations, reported))


def print_evaluations(evaluations: Sequence[Evaluation], by: Sequence[str], format: str) -> None:
    """The scores: per config, a table for one evaluation, or a table with one row per evaluation; then the groups."""
    tables = []
    for of in _by_config(evaluations):
        if len(of) == 1:
            tables += [_single(one, scores) for one in of if (scores := one.scores())]
        else:
            tables.append(_several(of, format))
        for grouping in by:
            for label, one in zip(labels(of), of, strict=True):
                tables.append(_groups(one, grouping, label if len(of) > 1 else ""))
    print_tables(tables, format)


def print_notes(evaluations: Sequence[Evaluation], notes: Sequence[str], format: str) -> None:
    """Prints problems, deviations and signatures; on stderr unless the format is a table."""
    write = say if format == "table" else say_on_stderr
    configs = _by_config(evaluations)
    for of in configs:
        lines: dict[tuple[str, str], list[str]] = {}
        for label, one in zip(labels(of), of, strict=True):
            for line in _about(one):
                lines.setdefault(line, []).append(label)
        for (text, style), systems in lines.items():
            where = [_config(of[0])] if len(configs) > 1 else []
            where += [", ".join(systems)] if len(systems) < len(of) else []
            write(": ".join([*where, text]), style)
    for note in notes:
        write(note, "yellow")


def _by_config(evaluations: Sequence[Evaluation]) -> list[list[Evaluation]]:
    found: dict[tuple[str, str], list[Evaluation]] = {}
    for one in evaluations:
        found.setdefault((one.benchmark, one.config), []).append(one)
    return list(found.values())


def _config(one: Evaluation) -> str:
    return f"{benchmark(one.benchmark).title} {one.config}"


def _about(one: Evaluation) -> list[tuple[str, str]]:
    said = [(problem, "yellow") for problem in _first(problems(one))]
    if note := cached_note(one):
        said.append((note, "yellow"))
    scores = one.scores()
    if why := unscored(one, scores):
        return [(f"no scores: {why}", "bold red"), *said]
    if note := undefined_note({name: score.interval for name, score in scores.items()}):
        said.append((note, "yellow"))
    for sentence, names in deviations(one).items():
        said.append((f"not official ({', '.join(names)}): {sentence}", "bold red"))
    said += [(sentence, "") for sentence in _rank(one, scores)]
    return said + [(f"{family}: {line}", "dim") for family, line in one.signatures.items()]


def _rank(one: Evaluation, scores: Mapping[str, Score]) -> list[str]:
    """Return the rank of the main metric among published scores, or of the first metric that has one."""
    found = ranks(one, scores)
    main = benchmark(one.benchmark).headline_metric([one])
    name = main.name if main and main.name in found else next(iter(found), "")
    return [found[name]] if name else []


def _first(found: list[str]) -> list[str]:
    more = len(found) - SHOWN
    return found if more <= 0 else [*found[:SHOWN], f"and {more} more problem{'s' if more > 1 else ''}"]


def _title(one: Evaluation) -> str:
    about = "" if one.setting == "predictions" else f", {one.setting}"
    return f"{_config(one)}{about}: {one.model}"


def _single(one: Evaluation, scores: dict[str, Score]) -> Table:
    sizes = {score.size for score in scores.values()}
    rows: list[list[Any]] = [
        [name, *_cells(score), *([] if len(sizes) == 1 else [score.size])] for name, score in scores.items()
    ]
    columns = ["metric", "score", "95% interval", "standard error"]
    if len(sizes) == 1:
        size = f" (n = {min(sizes)})"
    else:
        size = ""
        columns.append("n")
    counts = ", ".join(f"{count} {status}" for status, count in one.counts().items() if count)
    return Table(_title(one) + size, columns, rows, [counts])


def _cells(score: Score) -> list[str]:
    found = score.interval
    return [f"{found.mean:.4f}", f"{found.low:.4f} to {found.high:.4f}", f"{found.standard_error:.4f}"]


def _several(evaluations: Sequence[Evaluation], format: str) -> Table:
    scores = [one.scores() for one in evaluations]
    names = list(dict.fromkeys(name for of in scores for name in of))
    wide = format == "csv"
    columns = ["system", "n"]
    for name in names:
        columns += [name, f"{name} low", f"{name} high"] if wide else [name]
    rows: list[list[Any]] = []
    for label, of in zip(labels(evaluations), scores, strict=True):
        row: list[Any] = [label, max((score.n for score in of.values()), default=0)]
        for name in names:
            row += _wide(of.get(name)) if wide else [_narrow(of.get(name))]
        rows.append(row)
    return Table(f"{_config(evaluations[0])}, scores with 95% intervals", columns, rows)


def _wide(score: Score | None) -> list[Any]:
    found = score.interval if score else None
    return [found.mean, found.low, found.high] if found else [None] * 3


def _narrow(score: Score | None) -> str | None:
    return None if score is None else f"{score.interval.mean:.4f} ({score.interval.low:.3f}-{score.interval.high:.3f})"


def _groups(one: Evaluation, grouping: str, label: str) -> Table:
    sizes = {group: len(records) for group, records in one.by_group(grouping).items()}
    found = {group: (sizes[group], scores) for group, scores in one.scores_by_group(grouping).items()}
    metrics = list(dict.fromkeys(name for _, scores in found.values() for name in scores))
    rows: list[list[Any]] = [
        [group, size, *(f"{scores[name].interval.mean:.4f}" if name in scores else None for name in metrics)]
        for group, (size, scores) in found.items()
    ]
    title = f"By {benchmark(one.benchmark).groupings.get(grouping, grouping)}"
    return Table(f"{title}: {label}" if label else title, [grouping, "records", *metrics], rows)
