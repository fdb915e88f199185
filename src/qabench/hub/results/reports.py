"""Reports to publish: logs of runs, and the JSON of ``qabench score`` and ``qabench run``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark
from qabench.errors import InputError, QabenchError
from qabench.evaluation import ANSWERED
from qabench.io.limits import json_of
from qabench.official import deviations, signature_name

Report = Mapping[str, Any]
"""An evaluation as JSON data; see ``qabench.evaluation.results.as_dict``."""

NEEDED = ("benchmark", "config", "setting", "created", "scores", "intervals", "n", "deviations", "counts", "signatures")
NOT_TOLD = (ANSWERED, "records")  # counts without a remark
ALLOWED = (
    "; allowed: a log of `qabench run`, a folder of logs, or the output of `qabench score` or `qabench run` with "
    "--output FILE or --json"
)


def read_reports(path: Path) -> list[Report]:
    """The evaluations of a file or of a folder of logs, without runs that another one resumed.

    Raises:
        InputError: it cannot be read, or is not a log or a report of this version.
        MissingExtra: a log needs the extra ``run``.
    """
    if path.is_dir() or path.suffix == ".eval":
        return _of_logs(path)
    document = _load(path)
    if isinstance(document, dict) and {"eval", "version"} <= document.keys():
        return _of_logs(path)
    reports = document if isinstance(document, list) else [document]
    for report in reports:
        if not isinstance(report, dict) or not {"benchmark", "scores"} <= report.keys():
            raise InputError(f"{path} is not a report of scores{ALLOWED}")
        if missing := [name for name in NEEDED if name not in report]:
            raise InputError(
                f"{path} has no {', '.join(missing)}: it was edited, or written by another version of qabench. "
                "Score the predictions again"
            )
    return reports


def chosen(report: Report, names: Sequence[str] = ()) -> list[str]:
    """The names of the metrics to publish.

    Args:
        report: a report.
        names: the requested metrics; () means all metrics that the benchmark's authors report.

    Raises:
        QabenchError: the report has no scores.
        InputError: the report does not have a metric with this name.
    """
    scores = list(report["scores"])
    if not scores:
        raise QabenchError(f"{report.get('path')} has no scores: {report.get('unscored', 'nothing was scored')}")
    if unknown := [name for name in names if name not in scores]:
        raise InputError(f"{report.get('path')} has no metric {unknown[0]!r}; allowed: {', '.join(scores)}")
    known = benchmark(report["benchmark"])
    return list(names) or [name for name in scores if known.metric(name).official] or scores


def signature_of(report: Report, name: str) -> str | None:
    """The signature of a metric's score, or None."""
    signatures: Mapping[str, str] = report["signatures"]
    return signatures.get(benchmark(report["benchmark"]).metric(name).family)


def deviations_of(report: Report, name: str) -> list[str]:
    """What distinguishes a score from the official one, in sentences; [] if it is official.

    The sentences of the report, and those of the current declarations, because an older report may lack some.
    """
    said = list(report["deviations"].get(name, ["its deviations are not recorded"]))
    if line := signature_of(report, name):
        said += deviations(line, benchmark(report["benchmark"]).declaration(signature_name(line)))
    return list(dict.fromkeys(said))


def remarks(report: Report, name: str) -> list[str]:
    """Remarks about the items of a score: the number of items in it, left out, and without an answer."""
    known = benchmark(report["benchmark"]).metric(name)
    said = [f"n {report['n'][name]} {known.unit}"]
    if left_out := report.get("left_out", {}).get(name):
        said.append(f"{left_out} left out")
    if unreadable := report.get("left_out", {}).get(known.readable):
        said.append(f"{unreadable} without a readable reply")
    counts = [f"{count} {kind}" for kind, count in report["counts"].items() if count and kind not in NOT_TOLD]
    return [*said, f"answers: {', '.join(counts)}"] if counts else said


def _of_logs(path: Path) -> list[Report]:
    from qabench.runs.sources import read_evaluations

    read = read_evaluations([path], logs_only=True)
    for note in read.notes:
        warnings.warn(note, stacklevel=2)
    return [one.as_dict() for one in read.evaluations]


def _load(path: Path) -> Any:
    try:
        return json_of(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read the report {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"the report {path} is not JSON ({error}){ALLOWED}") from None
