"""Scores as entries of ``.eval_results/*.yaml``, which the Hub shows on a model's page.

The format is the Hub's (https://huggingface.co/docs/hub/eval-results), with the classes of
huggingface_hub. An entry has one number, so each score is a separate task. The Hub shows it on a
leaderboard if its ``task_id`` is the id of a task in the dataset's ``eval.yaml``. The entry's notes
contain n, the interval, the deviations from the official score, and the signature.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import (
    CommitOperationAdd,
    EvalResultEntry,
    HfApi,
    eval_result_entries_to_yaml,
    parse_eval_result_entries,
)
from huggingface_hub.errors import EntryNotFoundError

from qabench.benchmarks import benchmark
from qabench.data.rows import Row
from qabench.errors import InputError, QabenchError, unreadable
from qabench.evaluation import ANSWERED
from qabench.evaluation.records import AGENT, PREDICTIONS
from qabench.evaluation.score_spec import Names, select_scores
from qabench.evaluation.signature import deviations, signature_name
from qabench.hub.client import bounded_answers, check_name, hub_errors, require_token
from qabench.io.limits import json_of, yaml_of
from qabench.runs.sources import is_log, read_evaluations

Report = Mapping[str, Any]
"""An evaluation as JSON data."""

FOLDER = ".eval_results"

NEEDED = (
    "benchmark",
    "config",
    "setting",
    "created",
    "scores",
    "intervals",
    "n",
    "deviations",
    "counts",
    "signatures",
)
UNREMARKABLE = (ANSWERED, "records")  # counts without a remark
ALLOWED = (
    "; allowed: a log of `qabench run`, a folder of logs, or the output of `qabench score` or `qabench run` with "
    "--output FILE or --json"
)
DESCRIPTION = """\
Scores of this model, computed by [qabench](https://github.com/qabench/qabench). The notes of each entry contain n, the
95% interval, the deviations from the official score (if any) and the signature: everything that the score depends on.
"""


@dataclass(frozen=True)
class About:
    """What a publisher adds to a report.

    Attributes:
        setting: how the model answered, such as "closed-book". Required if the report is about a
            file of predictions.
        dataset: the id of the dataset on the Hub. None for qabench/BENCHMARK.
        source_url: a link to the evaluation: its log, job or record. None leaves the source out.
        allow_unofficial: publish unofficial scores, with their deviations in the notes.
    """

    setting: str | None = None
    dataset: str | None = None
    source_url: str | None = None
    allow_unofficial: bool = False


def read_reports(path: Path) -> list[Report]:
    """Return the evaluations of a file or of a folder of logs, without runs that another one resumed."""
    if path.is_dir() or is_log(path):
        read = read_evaluations([path])
        for note in read.notes:
            warnings.warn(note, stacklevel=2)
        return [evaluation.as_dict() for evaluation in read.evaluations]
    try:
        document = json_of(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise unreadable(f"the report {path}", error) from None
    except ValueError as error:
        raise InputError(f"the report {path} is not JSON ({error}){ALLOWED}") from None
    reports = document if isinstance(document, list) else [document]
    for report in reports:
        if missing := [name for name in NEEDED if not isinstance(report, dict) or name not in report]:
            raise InputError(
                f"{path} is not a report of scores (it has no {', '.join(missing)}){ALLOWED}"
            )
    return reports


def chosen(report: Report, names: Names = None) -> list[str]:
    """Return the names of the scores to publish: the selected ones, else all that the authors report."""
    scores = list(report["scores"])
    if not scores:
        raise QabenchError(
            f"{report.get('path')} has no scores: {report.get('unscored', 'nothing was scored')}"
        )
    specs = list(map(benchmark(report["benchmark"]).score_spec, scores))
    if names is None:
        return [spec.name for spec in specs if spec.official] or scores
    return [spec.name for spec in select_scores(specs, names, str(report.get("path")))]


def deviations_of(report: Report, name: str) -> list[str]:
    """Return what distinguishes a score from the official one, in sentences, or [] if it is official.

    The sentences of the report, and the sentences of the current declarations, because an older
    report may lack some.
    """
    sentences = list(report["deviations"].get(name, ["its deviations are not recorded"]))
    scorer = benchmark(report["benchmark"])
    spec = scorer.score_spec(name)
    if line := report["signatures"].get(spec.group):
        declaration = scorer.declaration(signature_name(line))
        sentences += deviations(line, declaration, spec.needs[0].partition("@")[2])
    return list(dict.fromkeys(sentences))


def entries(report: Report, about: About, scores: Names = None) -> list[EvalResultEntry]:
    """Return one entry for each score of a report (see ``chosen``).

    Raises InputError if a score is unofficial and this is not allowed, or is not a finite number.
    """
    names, setting, path = chosen(report, scores), setting_of(report, about), report.get("path")
    dataset = about.dataset or f"qabench/{report['benchmark']}"
    check_name("the dataset", dataset, f"qabench/{report['benchmark']}")
    deviating = {name: sentences for name in names if (sentences := deviations_of(report, name))}
    if deviating and not about.allow_unofficial:
        name, sentences = next(iter(deviating.items()))
        raise InputError(
            f"{len(deviating)} of {len(names)} scores of {path} are not official. {name}: {'; '.join(sentences)}. Use "
            "the official settings, choose other scores (--scores), or publish them as unofficial (--allow-unofficial; "
            "their notes list the deviations)"
        )
    values = {name: report["scores"][name] for name in names}
    for name, value in values.items():
        if not isinstance(value, int | float) or not isfinite(value):
            raise InputError(f"the score {name} of {path} is {value!r}; an entry needs a finite number")
    return [
        EvalResultEntry(
            dataset_id=dataset,
            task_id=task_id(report["config"], setting, name),
            value=value,
            date=str(report["created"]),
            source_url=about.source_url,
            source_name="Evaluation" if about.source_url else None,
            notes=_notes(report, name, setting, deviating.get(name, [])),
        )
        for name, value in values.items()
    ]


def setting_of(report: Report, about: About) -> str:
    """Return how the model answered.

    Raises InputError if this is unknown, differs from the report, or is not a setting.
    """
    recorded = None if report["setting"] == PREDICTIONS else report["setting"]
    if recorded and about.setting and recorded != about.setting:
        raise InputError(
            f"{report.get('path')} is a run in the setting {recorded}, not {about.setting}: omit --setting"
        )
    scorer = benchmark(report["benchmark"])
    if not (setting := recorded or about.setting):
        names = ", ".join(each.name for each in scorer.settings)
        raise InputError(
            f"{report.get('path')} does not have the setting of the run: add --setting, such as {names}"
        )
    if setting not in (recorded, AGENT) and scorer.settings:
        # A setting can be followed by the value of an option, such as "rag bm25".
        scorer.setting(setting.partition(" ")[0])
    return str(setting)


def task_id(config: str, setting: str, score: str) -> str:
    """Return the task that a score belongs to: ("dev", "closed-book", "acc.loose") -> dev_closed_book_acc_loose."""
    return re.sub(r"\W+", "_", "_".join(filter(None, [config, setting, score])), flags=re.ASCII)


def path_of(report: Report, about: About) -> str:
    """Return the file in a model's repository with the entries of a report's benchmark, config and setting."""
    return f"{FOLDER}/{task_id(report['benchmark'], report['config'], setting_of(report, about))}.yaml"


def to_yaml(
    new: Sequence[EvalResultEntry], old: bytes = b"", name: object = "the file of results"
) -> str:
    """Return the content of a file: the entries of ``old``, replaced if in ``new``, then the other new ones."""
    try:
        rows = yaml_of(old.decode()) or []
        parse_eval_result_entries(rows)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{name} exists and is not a list of entries ({type(error).__name__}: {error}); fix or remove it"
        ) from None
    added = {_key(row): row for row in eval_result_entries_to_yaml(list(new))}
    rows = [added.pop(_key(row), row) for row in rows]
    # Notes are not wrapped, so that signatures can be searched.
    return str(
        yaml.safe_dump([*rows, *added.values()], sort_keys=False, allow_unicode=True, width=float("inf"))
    )


def push(model: str, files: Mapping[str, Sequence[EvalResultEntry]]) -> str | None:
    """Open a pull request on a model's repository with entries by path.

    Other entries in these files are kept.

    Returns:
        The URL of the pull request. None if the repository already has these results.
    """
    check_name("the model", model, "ORG/NAME")
    api = HfApi()
    require_token(api)
    with bounded_answers(), hub_errors(api):
        head = api.model_info(model).sha
        old = {path: _content(api, model, path, head) for path in files}
        new = {path: to_yaml(entries, old[path], path).encode() for path, entries in files.items()}
        changed = [CommitOperationAdd(path, new[path]) for path in files if new[path] != old[path]]
        if not changed:
            return None
        commit = api.create_commit(
            model,
            changed,
            commit_message=f"Add evaluation results: {', '.join(Path(path).stem for path in files)}",
            commit_description=DESCRIPTION,
            create_pr=True,
        )
    return str(commit.pr_url)


def _key(row: Row) -> tuple[str, str]:
    return row["dataset"]["id"], row["dataset"]["task_id"]


def _notes(report: Report, name: str, setting: str, deviations: Sequence[str]) -> str:
    """Return the notes of an entry: deviations, the number of items, those left out, the interval, the signature."""
    spec, left_out = benchmark(report["benchmark"]).score_spec(name), report.get("left_out", {})
    counts = [
        f"{count} {kind}"
        for kind, count in report["counts"].items()
        if count and kind not in UNREMARKABLE
    ]
    interval, line = report["intervals"].get(name), report["signatures"].get(spec.group)
    parts = [f"UNOFFICIAL: {'; '.join(deviations)}"] if deviations else []
    parts += [f"{name}, {setting}", f"n {report['n'][name]} {spec.unit}"]
    for column, text in ((name, "left out"), (spec.readable, "without a readable reply")):
        parts += [f"{left_out[column]} {text}"] if left_out.get(column) else []
    parts += [f"answers: {', '.join(counts)}"] if counts else []
    if interval and interval["low"] is not None:
        parts.append(f"95% interval {interval['low']:.4f} to {interval['high']:.4f}")
    return "; ".join([*parts, f"signature {line}"] if line else parts)


def _content(api: HfApi, model: str, path: str, revision: str | None) -> bytes:
    """Return the content of a file of the repository.

    Nothing if it does not exist.
    """
    try:
        return Path(api.hf_hub_download(model, path, revision=revision)).read_bytes()
    except EntryNotFoundError:
        return b""
