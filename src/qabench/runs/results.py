"""A run's figures as JSON data, in the shape of ``qabench score``'s report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from qabench.evaluation import Evaluation
from qabench.runs.figures import by_group, figures


def as_dict(run: Evaluation, by: Sequence[str] = ()) -> dict[str, Any]:
    """The report of a run.

    Args:
        run: as ``read_run`` gives it. by: groupings to report, too.

    Returns:
        benchmark, config, setting, model, created, log, status; ``scores`` {figure: value}, ``intervals`` {figure:
        {"mean", "low", "high", ...}}, ``counts`` by status, ``problems`` (a sentence each), ``signatures``; only where
        it is so ``unofficial`` and ``unscored``; with ``by`` {grouping: {group: {"records", figure: value}}}.
    """
    of_all = figures(run)
    report: dict[str, Any] = {
        name: getattr(run, name) for name in ("benchmark", "config", "setting", "model", "created", "status")
    }
    report |= {
        "log": run.path,
        "scores": {name: one.mean for name, one in of_all.items()},
        "intervals": {name: asdict(one) for name, one in of_all.items()},
        "counts": run.counts(),
        "problems": [f"{r.id}: {r.status}: {r.problem}" for r in run.records if r.problem],
        "signatures": dict(run.signatures),
    }
    report |= {name: why for name in ("unofficial", "unscored") if (why := getattr(run, name))}
    if by:
        report["by"] = {grouping: _groups(run, grouping) for grouping in by}
    return report


def _groups(run: Evaluation, grouping: str) -> dict[str, dict[str, float]]:
    return {
        group: {"records": len(records)} | {name: one.mean for name, one in figures(run, records).items()}
        for group, records in by_group(run, grouping).items()
    }
