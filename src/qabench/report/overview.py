"""The overview of a report on several configs: models by configs, with the headline score and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qabench.report.analysis import Analysis
from qabench.report.sections import Section


def overview(sections: Sequence[Section], analyses: Sequence[Analysis]) -> dict[str, Any] | None:
    """The table of headline scores; None for a single section.

    Returns:
        {"columns": [{"key", "title", "config", "metric"}], "rows": [{"model", "cells"}]}; a cell is a list with one
        {"label", "setting", "score", "best"} per run of the model on the config.
    """
    if len(sections) < 2:
        return None
    models = dict.fromkeys(run.model for section in sections for run in section.runs.values())
    columns = [
        {
            "key": section.key,
            "title": section.benchmark.title,
            "config": section.config,
            "metric": section.headline.title if section.headline else "",
        }
        for section in sections
    ]
    rows = [
        {"model": model, "cells": [_cell(*pair, model) for pair in zip(sections, analyses, strict=True)]}
        for model in models
    ]
    return {"columns": columns, "rows": rows}


def _cell(section: Section, analysis: Analysis, model: str) -> list[dict[str, Any]]:
    headline = section.headline
    name = headline.name if headline else ""
    values = [of[name].interval.mean for of in analysis.scores.values() if name in of]
    best = max(values, default=None) if headline and headline.higher_is_better else min(values, default=None)
    cell = []
    for label, run in section.runs.items():
        if run.model == model:
            score = analysis.scores[label].get(name)
            is_best = score is not None and len(values) > 1 and score.interval.mean == best
            cell.append({"label": label, "setting": run.setting, "score": score, "best": is_best})
    return cell
