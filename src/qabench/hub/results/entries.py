"""Scores as entries of ``.eval_results/*.yaml``, which the Hub shows on a model's page.

The format is the Hub's (https://huggingface.co/docs/hub/eval-results), with the classes of huggingface_hub. An entry
has one number, so each score is a separate task, whose id consists of config, setting and metric. The entry's notes
contain n, the interval, the deviations from the official score, and the signature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from qabench.errors import InputError
from qabench.hub.results.reports import Report, chosen, deviations_of, remarks, signature_of
from qabench.io.limits import yaml_of
from qabench.signature import version

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

FOLDER = ".eval_results"
SOURCE = "https://github.com/qabench/qabench"
# The Hub's rule for names: no path such as "../x".
REPO_ID = re.compile(r"(?!.*(?:--|\.\.))[A-Za-z0-9_](?:[\w.-]*\w)?/[A-Za-z0-9_](?:[\w.-]*\w)?", re.ASCII)
FROM_A_FILE = "predictions"  # the setting of a file of predictions, for which the real setting is unknown


@dataclass(frozen=True)
class About:
    """What a publisher adds to a report.

    Attributes:
        setting: how the model answered, such as "closed-book"; required if the report is about a file of predictions.
        date: an ISO date, or date and time; None for the report's date.
        dataset: the id of the dataset on the Hub; None for qabench/BENCHMARK.
        revision: the commit or tag of that dataset; None if unknown.
        source_url: a link to the evaluation, such as a repository with its logs.
        source_name: the text of that link.
        allow_unofficial: publish unofficial scores, with their deviations in the notes.
    """

    setting: str | None = None
    date: str | None = None
    dataset: str | None = None
    revision: str | None = None
    source_url: str = SOURCE
    source_name: str = field(default_factory=lambda: f"qabench {version()}")
    allow_unofficial: bool = False


def entries(report: Report, about: About, metrics: Sequence[str] = ()) -> list[EvalResultEntry]:
    """One entry for each metric of a report.

    Args:
        report: see ``qabench.hub.results.reports.read_reports``.
        about: what the publisher adds to it.
        metrics: names of metrics; () means all that the benchmark's authors report.

    Raises:
        QabenchError: the report has no scores.
        InputError: a score is unofficial and this is not allowed, or is not a finite number; or the setting, the date
            or the dataset's id is invalid.
    """
    from huggingface_hub import EvalResultEntry

    names = chosen(report, metrics)
    setting, day, dataset = setting_of(report, about), _date(report, about), _dataset(report, about)
    deviating = {name: said for name in names if (said := deviations_of(report, name))}
    if deviating and not about.allow_unofficial:
        raise InputError(_refusal(report, names, deviating))
    return [
        EvalResultEntry(
            dataset_id=dataset,
            task_id=task_id(report["config"], setting, name),
            value=_value(report, name),
            dataset_revision=about.revision,
            date=day,
            source_url=about.source_url,
            source_name=about.source_name,
            notes=_notes(report, name, setting, deviating.get(name, [])),
        )
        for name in names
    ]


def setting_of(report: Report, about: About) -> str:
    """How the model answered. Raises InputError if this is unknown, or if ``report`` and ``about`` differ."""
    stated = None if report["setting"] == FROM_A_FILE else report["setting"]
    if stated and about.setting and stated != about.setting:
        raise InputError(f"{report.get('path')} is a run in the setting {stated}, not {about.setting}: omit --setting")
    if not (setting := stated or about.setting):
        raise InputError(
            f"{report.get('path')} does not have the setting of the run: add --setting closed-book, open-book, ..."
        )
    return str(setting)


def task_id(config: str, setting: str, metric: str) -> str:
    """The task that a score belongs to: ("dev", "closed-book", "acc.loose") -> dev_closed_book_acc_loose."""
    return re.sub(r"\W+", "_", "_".join(filter(None, [config, setting, metric])), flags=re.ASCII)


def path(report: Report, about: About) -> str:
    """The file in a model's repository with the entries of a report's benchmark, config and setting."""
    return f"{FOLDER}/{task_id(report['benchmark'], report['config'], setting_of(report, about))}.yaml"


def to_yaml(new: Sequence[EvalResultEntry], old: str = "", name: object = "the file of results") -> str:
    """The content of a file: the entries of ``old``, with those of the same dataset and task replaced, then new ones.

    Args:
        new: see ``entries``.
        old: the current content of the file; entries of other tools are not changed.
        name: the file, for the error.

    Raises:
        InputError: ``old`` is not a list of entries.
    """
    import yaml
    from huggingface_hub import eval_result_entries_to_yaml

    added = {_key(row): row for row in eval_result_entries_to_yaml(list(new))}
    kept = [added.pop(_key(row), row) for row in _rows(old, name)]
    # Notes are not wrapped, so that signatures can be searched.
    return str(yaml.safe_dump([*kept, *added.values()], sort_keys=False, allow_unicode=True, width=float("inf")))


def _rows(text: str, name: object) -> list[dict[str, Any]]:
    from huggingface_hub import parse_eval_result_entries

    try:
        rows = yaml_of(text) or []
        parse_eval_result_entries(rows)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{name} exists and is not a list of entries ({type(error).__name__}: {error}); fix or remove it"
        ) from None
    return list(rows)


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["dataset"]["id"], row["dataset"]["task_id"]


def _refusal(report: Report, names: Sequence[str], deviating: Mapping[str, Sequence[str]]) -> str:
    name, said = next(iter(deviating.items()))
    return (
        f"{len(deviating)} of {len(names)} scores of {report.get('path')} are not official. {name}: {'; '.join(said)}. "
        "Use the official settings, choose other scores (--metric), or publish them as unofficial (--allow-unofficial; "
        "their notes list the deviations)"
    )


def _value(report: Report, name: str) -> float:
    value = report["scores"][name]
    if not isinstance(value, int | float) or not isfinite(value):
        raise InputError(f"the score {name} of {report.get('path')} is {value!r}; an entry needs a finite number")
    return value


def _notes(report: Report, name: str, setting: str, deviations: Sequence[str]) -> str:
    parts = [f"UNOFFICIAL: {'; '.join(deviations)}"] if deviations else []
    parts += [f"{name}, {setting}", *remarks(report, name)]
    if interval := report["intervals"].get(name):
        parts.append(f"95% interval {interval['low']:.4f} to {interval['high']:.4f}")
    if line := signature_of(report, name):
        parts.append(f"signature {line}")
    return "; ".join(parts)


def _date(report: Report, about: About) -> str:
    day = str(about.date or report["created"])
    try:
        (datetime if "T" in day else date).fromisoformat(day)
    except ValueError:
        raise InputError(f"the date is {day!r}; allowed: an ISO date or time such as 2026-01-31") from None
    return day


def _dataset(report: Report, about: About) -> str:
    dataset = about.dataset or f"qabench/{report['benchmark']}"
    if not REPO_ID.fullmatch(dataset):
        raise InputError(
            f"the dataset is {dataset!r}; allowed: a name on the Hub such as qabench/{report['benchmark']}"
        )
    return dataset
