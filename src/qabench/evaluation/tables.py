"""Evaluations as tables, JSON data and plots: for ``print``, notebooks and the command line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from qabench.data.predictions import NO_PREDICTION, WITHOUT_PREDICTION, some
from qabench.errors import MissingExtra, unknown_name
from qabench.evaluation.metric import Names, select_scores
from qabench.io.tables import Table

if TYPE_CHECKING:
    from qabench.evaluation.evaluation import Evaluation, Score
    from qabench.stats import Interval


UNDEFINED = "undefined"
MAX_LENGTH = 80  # of a label


def title(evaluation: Evaluation) -> str:
    """Return model, benchmark, config and setting, such as "gpt-4o on fanoutqa dev (closed-book)"."""
    setting = "" if evaluation.setting in ("", "predictions") else f" ({evaluation.setting})"
    return f"{evaluation.model} on {_questions(evaluation)}{setting}"


def _questions(evaluation: Evaluation) -> str:
    return f"{evaluation.benchmark} {evaluation.config}".strip()


def deviations_by_sentence(evaluation: Evaluation) -> dict[str, list[str]]:
    """Return what distinguishes scores from the official ones, each sentence with the scores that it applies to.

    The scores are named by their groups. If a sentence applies to a part of a group, its scores are
    named.
    """
    scores = evaluation.scores()
    names_by_sentence: dict[str, list[str]] = {}
    groups: dict[str, list[str]] = {}
    for name, score in scores.items():
        groups.setdefault(score.metric.group, []).append(name)
        for sentence in evaluation.deviations(score):
            names_by_sentence.setdefault(sentence, []).append(name)
    for sentence, names in names_by_sentence.items():
        whole = {
            name: group
            for group, members in groups.items()
            if set(members) <= set(names)
            for name in members
        }
        names_by_sentence[sentence] = list(dict.fromkeys(whole.get(name, name) for name in names))
    return names_by_sentence


def score_table(evaluation: Evaluation, all_scores: bool = True) -> Table:
    """Return one row per score.

    Without ``all_scores`` only the main scores.

    The notes count records.
    """
    scores = evaluation.scores()
    rows: list[list[Any]] = []
    for name, score in _shown(scores, all_scores).items():
        official = ["no" if evaluation.deviations(score) else "yes"] if evaluation.benchmark else []
        rows.append([name, *value_cells(score.interval), score.size, *official])
    main = {metric.name for metric in evaluation.metrics if metric.main or all_scores}
    columns = [
        "score",
        "value",
        "95% interval",
        "n",
        *(["official"] if evaluation.benchmark else []),
    ]
    empty = [None] * (len(columns) - 2)
    rows += [[name, UNDEFINED, *empty] for name in evaluation.undefined() if name in main]
    counts = ", ".join(
        f"{count} {status}" for status, count in evaluation.counts().items() if count
    )
    notes = [counts] if counts else []
    if hidden := len(scores) - len(_shown(scores, all_scores)):
        notes.append(f"{hidden} more {'score' if hidden == 1 else 'scores'}: --all-scores")
    if reason := unscored(evaluation, scores):
        notes = [f"no scores: {reason}"]
    return Table(title(evaluation), columns, rows, notes)


def systems_table(
    evaluations: Sequence[Evaluation], labels: Sequence[str], all_scores: bool, wide: bool
) -> Table:
    """Return one row per evaluation of a config.

    If ``wide``, the bounds of intervals have columns of their own.
    """
    columns = _shown(
        {name: score for each in evaluations for name, score in each.scores().items()}, all_scores
    )
    names = [
        name
        for metric in columns
        for name in ([metric, f"{metric} low", f"{metric} high"] if wide else [metric])
    ]
    rows: list[list[Any]] = []
    for label, evaluation in zip(labels, evaluations, strict=True):
        scores, undefined = evaluation.scores(), evaluation.undefined()
        row: list[Any] = [label, max((score.n for score in scores.values()), default=0)]
        for name in columns:
            interval = scores[name].interval if name in scores else None
            if wide:
                row += [interval.mean, interval.low, interval.high] if interval else [None] * 3
            else:
                missing = UNDEFINED if name in undefined else None
                row.append(_with_half_width(interval) if interval else missing)
        rows.append(row)
    return Table(
        f"{_questions(evaluations[0])}: scores ± half the width of their 95% intervals",
        ["system", "n", *names],
        rows,
    )


def group_table(evaluation: Evaluation, grouping: str, heading: str, all_scores: bool) -> Table:
    """Return the scores of each group of a grouping, such as "category"."""
    groups = evaluation.scores_by_group(grouping)
    names = _shown(
        {name: score for scores in groups.values() for name, score in scores.items()}, all_scores
    )
    sizes = {group: len(records) for group, records in evaluation.by_group(grouping).items()}
    rows: list[list[Any]] = [
        [
            group,
            sizes[group],
            *(f"{scores[name].interval.mean:.4f}" if name in scores else None for name in names),
        ]
        for group, scores in groups.items()
    ]
    return Table(heading, [grouping, "records", *names], rows)


def _with_half_width(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return f"{interval.mean:.4f}"
    return f"{interval.mean:.4f} ±{(interval.high - interval.low) / 2:.3f}"


def _shown(scores: dict[str, Score], all_scores: bool) -> dict[str, Score]:
    main = {name: score for name, score in scores.items() if score.metric.main}
    return scores if all_scores or not main else main


def value_cells(interval: Interval) -> list[str]:
    """Return a value and its bounds as cells of a table."""
    return [f"{interval.mean:.4f}", interval.bounds()]


def labels(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return one label per evaluation: the model's name, with what differs between equal names, or else a number.

    The setting, server, seed and options are tried in this order. The provider is left out of a
    model's name unless two providers have a model of that name. A model that was loaded from a
    folder (``-M model_path=DIR``) has the folder's name.
    """
    models = [
        str(evaluation.arguments.get("model_path", evaluation.model)) for evaluation in evaluations
    ]
    names = [model.rpartition("/")[2] or model or "no name" for model in models]
    if len(set(names)) < len(set(models)):
        names = models
    settings = [evaluation.setting for evaluation in evaluations]
    if len(set(settings)) > 1:  # shown even if the models already distinguish the systems
        names = [f"{name} · {setting}" for name, setting in zip(names, settings, strict=True)]
    options = {name for evaluation in evaluations for name in evaluation.arguments} - {
        "seed",
        "model_path",
    }
    details = [[evaluation.server.partition("://")[2] for evaluation in evaluations]]
    details += [
        [_option(evaluation, name) for evaluation in evaluations]
        for name in ("seed", *sorted(options))
    ]
    for values in details:
        names = _told_apart(names, values)
    return distinct([name[:MAX_LENGTH] for name in names])


def _option(evaluation: Evaluation, name: str) -> str:
    value = evaluation.arguments.get(name)
    return f"{name} {value}" if isinstance(value, str | int | float) else ""


def _told_apart(names: Sequence[str], values: Sequence[str]) -> list[str]:
    """Add the values to names that occur several times with different values."""
    pairs = list(zip(names, values, strict=True))
    counts = Counter(name for name, _ in set(pairs))
    return [f"{name} · {value}" if counts[name] > 1 and value else name for name, value in pairs]


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names, each on one line.

    Repeated names get a number.
    """
    unique: dict[str, None] = {}
    for raw in names:
        name = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", raw).strip()
        number, candidate = 1, name
        while candidate in unique:
            number += 1
            candidate = f"{name} ({number})"
        unique[candidate] = None
    return list(unique)


def as_dict(evaluation: Evaluation, by: Sequence[str] = ()) -> dict[str, Any]:
    """Return an evaluation as JSON data.

    Args:
        evaluation: from a run's log or from a file of predictions.
        by: groupings to add, such as "category".

    Returns:
        benchmark, config, setting, model, created, status, path, expected, available. By metric
        name: ``scores`` (value), ``intervals`` (see ``qabench.stats.Interval``), ``n``, ``unit``,
        ``left_out`` and ``deviations`` (sentences; [] for an official score). ``counts`` (records
        by status, missing ones and all records), ``problems`` (sentences), ``signatures`` by
        group. ``replies`` (all, and those from the cache) of a run whose replies are cached.
        ``notes`` (sentences) and ``unscored`` (why there are no scores) only if there are any, as
        ``undefined`` (why a score is undefined, by metric name). With ``by`` {grouping: {group:
        {"records", "scores", "intervals", "n", "left_out"}}}.
    """
    scores = evaluation.scores()
    names = (
        "benchmark",
        "config",
        "setting",
        "model",
        "created",
        "status",
        "path",
        "expected",
        "available",
    )
    document: dict[str, Any] = {name: getattr(evaluation, name) for name in names}
    document |= _numbers(scores)
    document |= {
        "unit": {name: score.metric.unit for name, score in scores.items()},
        "deviations": {name: evaluation.deviations(score) for name, score in scores.items()},
        "counts": evaluation.counts() | {"records": len(evaluation.records)},
        "problems": problems(evaluation),
        "signatures": dict(evaluation.signatures),
    }
    if undefined := evaluation.undefined():
        document["undefined"] = undefined
    if replies := evaluation.replies():
        document["replies"] = replies
    if evaluation.notes:
        document["notes"] = list(evaluation.notes)
    if reason := unscored(evaluation, scores):
        document["unscored"] = reason
    if by:
        document["by"] = {
            grouping: {
                group: {"records": len(records)}
                | _numbers(evaluation.scores_by_group(grouping)[group])
                for group, records in evaluation.by_group(grouping).items()
            }
            for grouping in by
        }
    return document


def problems(evaluation: Evaluation, most: int | None = None) -> list[str]:
    """Return the problems of an evaluation, one sentence per kind, with the first ids.

    After ``most``, their number.
    """
    kinds: dict[str, list[str]] = {}
    missing_named = any(problem.startswith(WITHOUT_PREDICTION) for problem in evaluation.problems)
    for record in evaluation.records:
        if record.problem and not (missing_named and record.problem == NO_PREDICTION):
            kinds.setdefault(f"{record.status}: {record.problem}", []).append(record.id)
    sentences = list(evaluation.problems)
    for kind, ids in sorted(kinds.items(), key=lambda item: -len(item[1])):
        sentences.append(f"{len(ids)} x {kind} ({some(ids)})")
    if most is not None and (more := len(sentences) - most) > 0:
        sentences[most:] = [f"and {more} more problem{'s' if more > 1 else ''}"]
    return sentences


def undefined_note(intervals: Mapping[str, Interval]) -> str | None:
    """Return a sentence about the resamples in which scores are undefined, by name, or None if there are none."""
    shares = [
        f"{name} {interval.undefined:.1%}"
        for name, interval in intervals.items()
        if interval.undefined
    ]
    return (
        f"undefined in some resamples, which are left out: {', '.join(shares)}" if shares else None
    )


def undefined_sentences(evaluation: Evaluation) -> list[str]:
    """Return why scores are undefined, one sentence per reason."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in evaluation.undefined().items():
        names_by_reason.setdefault(reason, []).append(name)
    return [
        f"undefined ({', '.join(names)}): {reason}" for reason, names in names_by_reason.items()
    ]


def cached_note(evaluation: Evaluation) -> str | None:
    """Return how many replies came from the cache, in one sentence, or None if none did."""
    replies = evaluation.replies()
    if not replies.get("cached"):
        return None
    return f"{replies['cached']:,} of {replies['all']:,} replies from the cache"


def unscored(evaluation: Evaluation, scores: Mapping[str, Score]) -> str | None:
    """Return why an evaluation has no scores, or None if it has scores."""
    if scores:
        return None
    if evaluation.unscored:
        return evaluation.unscored
    if not evaluation.answered:
        return f"none of the {evaluation.expected} questions was answered"
    return "no answer has a score"


def _numbers(scores: Mapping[str, Score]) -> dict[str, Any]:
    return {
        "scores": {name: score.interval.mean for name, score in scores.items()},
        "intervals": {name: asdict(score.interval) for name, score in scores.items()},
        "n": {name: score.n for name, score in scores.items()},
        "left_out": {name: score.left_out for name, score in scores.items()},
    }


BLUE = "#0072B2"  # of the colors of Okabe and Ito
INCHES_PER_ROW = 0.4


def plot_scores(evaluation: Evaluation, selected: Names, by: str | None, axes: Any) -> Any:
    """Plot scores.

    See ``Evaluation.plot``.
    """
    scores = evaluation.scores()
    metrics = [score.metric for score in scores.values()]
    names = [metric.name for metric in select_scores(metrics, selected, title(evaluation))]
    if by is None:
        intervals = {scores[name].metric.title: scores[name].interval for name in names}
        return plot_intervals(intervals, title(evaluation), axes)
    if by not in evaluation.groupings():
        raise unknown_name("unknown grouping", by, evaluation.groupings())
    groups = {}
    for group, group_scores in evaluation.scores_by_group(by).items():
        if score := group_scores.get(names[0]):
            groups[f"{group} ({score.n})"] = score.interval
    return plot_intervals(
        groups, f"{scores[names[0]].metric.title} by {by}: {title(evaluation)}", axes
    )


def plot_intervals(rows: dict[str, Interval], heading: str, axes: Any) -> Any:
    """Draw points with error bars, one row each, the first on top."""
    if axes is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise MissingExtra("plots need matplotlib: pip install 'qabench[plot]'") from None
        _, axes = pyplot.subplots(figsize=(7, 1 + INCHES_PER_ROW * len(rows)), layout="constrained")
    places = range(len(rows))
    bounds = [(interval.mean, interval.low, interval.high) for interval in rows.values()]
    # A value without bounds has no error bar.
    below = [0.0 if low is None else max(0.0, mean - low) for mean, low, _ in bounds]
    above = [0.0 if high is None else max(0.0, high - mean) for mean, _, high in bounds]
    unbounded = [place for place, (_, low, _) in enumerate(bounds) if low is None]
    axes.errorbar(
        [mean for mean, *_ in bounds], places, xerr=[below, above], fmt="o", color=BLUE, capsize=3
    )
    # A hollow point does not look certain.
    axes.plot(
        [bounds[place][0] for place in unbounded],
        unbounded,
        "o",
        color=BLUE,
        markerfacecolor="white",
    )
    named = [f"{name} (no interval)" if i in unbounded else name for i, name in enumerate(rows)]
    axes.set_yticks(places, labels=named)
    axes.invert_yaxis()
    axes.set_xlabel("value with 95% interval")
    axes.set_title(heading, loc="left", fontsize="medium")
    axes.grid(axis="x", alpha=0.3)
    return axes
