"""Reports of evaluations as figures for the Hub: what ``qabench score``, ``evaluate-felm`` and ``run`` write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.hub.results.eval_results import Figure

FELM_FIGURES = ("f1", "precision", "recall", "balanced_accuracy")
# Of other things than the benchmark's own items, or of these in another way: only where they are asked for.
ON_REQUEST = ("responses_", "official_")
ALLOWED = (
    "; allowed: what `qabench score ... --output FILE` writes, what `qabench evaluate-felm ... --json` prints, or a "
    "run's log"
)
# Counts that a reader of the score must know of, of all that reports have.
TOLD = ("missing", "null", "empty", "not_text", "bad_lines", "refused", "failed", "cut off", "unscored")


def log_of(path: Path) -> Path | None:
    """The log of a run that a file is, or is the printed report of; None where it is neither.

    The log knows more than the report, such as whether all questions were asked.
    """
    if path.suffix == ".eval":
        return path
    report = _load(path)
    if isinstance(report, dict) and isinstance(report.get("log"), str):
        return Path(report["log"])
    return path if isinstance(report, dict) and {"eval", "version"} <= report.keys() else None


def read_report(path: Path) -> dict[str, Any]:
    """A report of one evaluation, as JSON data with a "date".

    Args:
        path: what ``qabench score --output FILE`` or ``qabench evaluate-felm --json`` wrote.

    Raises:
        InputError: it cannot be read, or is no such report.
    """
    report = _load(path)
    try:
        usable = bool(report["benchmark"] and report["config"] and figures(report))
    except (AttributeError, KeyError, TypeError, ValueError):
        usable = False
    if not usable:
        raise InputError(f"{path} is no report of scores{ALLOWED}")
    return {**report, "date": datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()}


def figures(report: Mapping[str, Any]) -> list[Figure]:
    """The figures of a report, those that are undefined (null) left out."""
    if "intervals" not in report:
        return list(_of_felm(report))
    n = report["n"] if "n" in report else report["counts"]["scored"]
    exact = dict(_numbers(report["scores"]))
    signed = partial(_signature, report["benchmark"], report.get("signatures", {}))
    return [
        # A report of `qabench score` has ROUGE's scores one level deeper than its intervals.
        Figure(name, exact.get(name, exact.get(f"rouge.{name}", one["mean"])), one["low"], one["high"], n, signed(name))
        for name, one in report["intervals"].items()
    ]


def chosen(of_report: list[Figure], names: list[str], path: Path) -> list[Figure]:
    """The figures of these names; where there are none named, all but those ``ON_REQUEST``.

    Raises:
        InputError: the report has no figure of that name, or none at all.
    """
    by_name = {figure.name: figure for figure in of_report}
    if unknown := [name for name in names if name not in by_name]:
        raise InputError(f"{path} has no figure {unknown[0]!r}; allowed: {', '.join(by_name)}")
    if names:
        return [by_name[name] for name in names]
    if main := [figure for figure in of_report if not figure.name.startswith(ON_REQUEST)]:
        return main
    raise InputError(f"{path} has no figure that is defined: was nothing scored?")


def setting(report: Mapping[str, Any]) -> str | None:
    """In which setting the model answered; None where the report does not say."""
    if "setting" in report or "method" not in report:
        return report.get("setting")
    return f"{report['method']} by claims" if report.get("by") == "claims" else str(report["method"])


def unofficial(report: Mapping[str, Any]) -> str | None:
    """Why no figure of a report is official; reasons that its signatures hold are not repeated here."""
    if report.get("status", "success") != "success":
        return f"the run did not end ({report['status']})"
    if report.get("partial"):
        return "only some of the questions were asked"
    signed = any("UNOFFICIAL" in line for line in report.get("signatures", {}).values())
    return None if signed else report.get("unofficial")


def remarks(report: Mapping[str, Any]) -> list[str]:
    """What went wrong with how many items, in one remark; nothing where all went well."""
    counts = report.get("counts", {})
    told = [f"{counts[name]} {name.replace('_', ' ')}" for name in TOLD if counts.get(name)]
    return [f"with {', '.join(told)}"] if told else []


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read the report {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"the report {path} is not JSON ({error}){ALLOWED}") from None


def _of_felm(report: Mapping[str, Any]) -> Iterator[Figure]:
    # No verdict at all: "official" is null.
    parts = {"": report, "responses_": report["responses"], "official_": report["official"] or {}}
    for prefix, part in parts.items():
        for name in FELM_FIGURES:
            if part.get(name) is not None:
                n = sum(part[cell] for cell in ("tp", "tn", "fp", "fn"))
                yield Figure(prefix + name, part[name], n=n, signature=report.get("signature"))


def _signature(benchmark: str, signatures: Mapping[str, str], figure: str) -> str | None:
    """The signature that holds for a figure: its family's ("rouge" for rouge1.fscore), else the benchmark's own."""
    if figure.startswith("official_"):
        return signatures.get(f"{benchmark}_official")
    family = next((name for name in signatures if figure.startswith(name)), benchmark)
    # fastbook's own scores are those of its ranking.
    return signatures.get(family, signatures.get("retrieval"))


def _numbers(scores: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    for name, value in scores.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{before}{name}.")
        else:
            yield before + name, value
