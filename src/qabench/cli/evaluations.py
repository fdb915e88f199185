"""Evaluations on the command line: tables, JSON, and notes about problems, deviations and signatures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks import benchmark
from qabench.cli.output import (
    plain_warnings,
    print_json,
    print_tables,
    progress_bar,
    say,
    say_on_stderr,
)
from qabench.data.rows import Json, grouped
from qabench.errors import unknown_name
from qabench.evaluation import Evaluation
from qabench.evaluation.evaluation import labels, systems_table
from qabench.evaluation.records import undefined_note
from qabench.evaluation.signature import short_signature
from qabench.io.files import write_json
from qabench.runs.sources import read_evaluations

if TYPE_CHECKING:
    from qabench.runs.sources import Found

LISTED_PROBLEMS = 5  # per evaluation. The others are counted


def scored(files: Sequence[str | Path], *arguments: Any, **options: Any) -> Found:
    """Return ``qabench.runs.sources.read_evaluations`` of these arguments, with progress and plain warnings."""
    with plain_warnings(), progress_bar("Scoring", "texts") as progress:
        return read_evaluations(files, *arguments, progress=progress, **options)


def show(
    sources: Found,
    format: str,
    by: Sequence[str] = (),
    output: Path | None = None,
    track: str | None = None,
    all_scores: bool = False,
    verbose: bool = False,
) -> list[Json]:
    """Print, write and track evaluations as the options of a command say, and return their reports."""
    evaluations = sources.evaluations
    reports = [report(evaluation, by) for evaluation in evaluations]
    document = reports[0] if len(reports) == 1 else {"evaluations": reports}
    if output:
        write_json(output, document)
    if format == "json":
        print_json(document)
    else:
        print_evaluations(evaluations, by, format, all_scores)
    print_notes(evaluations, sources.notes, format, verbose)
    send_scores(evaluations, track)
    return reports


def send_scores(evaluations: Sequence[Evaluation], track: str | None) -> None:
    """Send scores to the tracker of ``--track``, if there is one."""
    if track:
        from qabench.runs.export import send

        send(evaluations, track)


def report(evaluation: Evaluation, by: Sequence[str] = ()) -> Json:
    """Return the evaluation as JSON data, with the scores in the shape of the authors' scorer as "official".

    "published" has the ranks among published scores by metric. See
    ``qabench.benchmarks.published.ranks``.

    Raises:
        InputError: an unknown grouping.
    """
    allowed = evaluation.groupings()
    if unknown := [name for name in by if name not in allowed]:
        config = f"{benchmark(evaluation.benchmark).title} {evaluation.config}"
        raise unknown_name(f"{config} has no grouping", unknown[0], allowed)
    shape = (
        benchmark(evaluation.benchmark).official_shape(evaluation) if evaluation.answered else None
    )
    official = {"official": shape} if shape else {}
    return evaluation.as_dict(by) | official | {"published": _ranks(evaluation)}


def is_official(evaluation: Evaluation) -> bool:
    """Return whether all scores that the benchmark's authors report are official, and there is at least one."""
    reported = [score for score in evaluation.scores().values() if score.spec.official]
    return bool(reported) and not any(map(evaluation.deviations, reported))


def print_evaluations(
    evaluations: Sequence[Evaluation], by: Sequence[str], format: str, all_scores: bool = False
) -> None:
    """Print the scores: per config one table, of one evaluation or with one row per evaluation.

    Then the groups.
    """
    all_scores = all_scores or format == "csv"
    tables = []
    for group in _by_config(evaluations):
        names = labels(group)
        if len(group) > 1:
            tables.append(systems_table(group, names, all_scores, wide=format == "csv"))
        elif group[0].scores():
            tables.append(group[0].score_table(all_scores))
        for grouping in by:
            heading = f"By {benchmark(group[0].benchmark).groupings.get(grouping, grouping)}"
            for name, evaluation in zip(names, group, strict=True):
                with_name = f"{heading}: {name}" if len(group) > 1 else heading
                tables.append(evaluation.group_table(grouping, with_name, all_scores))
    print_tables(tables, format)


def print_notes(
    evaluations: Sequence[Evaluation], notes: Sequence[str], format: str, verbose: bool = False
) -> None:
    """Print problems, deviations, ranks and signatures.

    On stderr unless the format is a table.
    """
    write = say if format == "table" else say_on_stderr
    configs = _by_config(evaluations)
    for group in configs:
        systems_by_line = grouped(
            (line, label)
            for label, evaluation in zip(labels(group), group, strict=True)
            for line in _notes_of(evaluation, verbose)
        )
        for (text, style), systems in systems_by_line.items():
            prefix = [group[0].questions] if len(configs) > 1 else []
            prefix += [", ".join(systems)] if len(systems) < len(group) else []
            write(": ".join([*prefix, text]), style)
    for note in notes:
        write(note, "yellow")


def _by_config(evaluations: Sequence[Evaluation]) -> list[list[Evaluation]]:
    return list(grouped((evaluation.questions, evaluation) for evaluation in evaluations).values())


def _notes_of(evaluation: Evaluation, verbose: bool) -> list[tuple[str, str]]:
    """Return (text, style) of each note about an evaluation."""
    scores = evaluation.scores()
    sentences = evaluation.problem_sentences(LISTED_PROBLEMS)
    undefined = undefined_note({name: score.interval for name, score in scores.items()})
    notes = [
        (sentence, "yellow")
        for sentence in filter(None, [*sentences, evaluation.cached_note(), undefined])
    ]
    notes += [(note, "") for note in evaluation.notes]
    notes += [(sentence, "yellow") for sentence in evaluation.undefined_sentences()]
    if reason := evaluation.why_unscored():
        return [(f"no scores: {reason}", "bold red"), *notes]
    for sentence, names in evaluation.deviations_by_sentence().items():
        notes.append((f"not official ({', '.join(names)}): {sentence}", "bold red"))
    if rank := _rank(evaluation):
        notes.append((rank, ""))
    for group, line in evaluation.signatures.items():
        text = line if verbose else short_signature(line, evaluation.declarations)
        notes.append((f"{group}: {text}", "dim"))
    return notes


def _ranks(evaluation: Evaluation) -> dict[str, str]:
    if all(map(evaluation.deviations, evaluation.scores().values())):
        return {}
    from qabench.benchmarks.published import ranks

    return ranks(evaluation)


def _rank(evaluation: Evaluation) -> str | None:
    """Return the rank of the main metric among published scores, or of the first metric that has one."""
    sentences = _ranks(evaluation)
    main = benchmark(evaluation.benchmark).headline_score([evaluation])
    return sentences.get(main.name if main else "") or next(iter(sentences.values()), None)
