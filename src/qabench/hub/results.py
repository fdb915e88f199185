"""Scores as entries of ``.eval_results/*.yaml``, which the Hub shows on a model's page.

The format is the Hub's (https://huggingface.co/docs/hub/eval-results), with the classes of
huggingface_hub. An entry has one number, so each score is a separate task. The Hub shows it on a
leaderboard if its ``task_id`` is the id of a task in the dataset's ``eval.yaml`` (see
``qabench.hub.leaderboards``). The entry's notes contain n, the interval, the deviations from the official
score, and the signature.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from huggingface_hub import (
    CommitOperationAdd,
    Discussion,
    EvalResultEntry,
    HfApi,
    eval_result_entries_to_yaml,
    parse_eval_result_entries,
)
from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

from qabench.benchmarks import benchmark
from qabench.data.rows import Row
from qabench.errors import InputError, QabenchError, unreadable
from qabench.evaluation import ANSWERED
from qabench.evaluation.records import AGENT, PREDICTIONS
from qabench.evaluation.score_spec import Names, select_scores
from qabench.evaluation.signature import deviations, parse, signature_name
from qabench.hub.build import MANIFEST
from qabench.hub.client import bounded_answers, check_name, hub_errors, require_token
from qabench.hub.leaderboards import task_id
from qabench.io.limits import json_of, yaml_of
from qabench.runs.facts import with_facts_declared
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
        dataset_revision: the commit of the dataset on the Hub with the data that was scored. None
            leaves it out (``with_revisions`` adds it).
        source_url: an http(s) link to the evaluation: its log, job or record. None leaves the
            source out.
        allow_unofficial: publish unofficial scores, with their deviations in the notes.
    """

    setting: str | None = None
    dataset: str | None = None
    dataset_revision: str | None = None
    source_url: str | None = None
    allow_unofficial: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for a source that the Hub cannot link to."""
        if self.source_url is None:
            return
        parts = urlsplit(self.source_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                f"the source {self.source_url!r} is not a link; allowed: a URL that starts with https:// or http://, "
                "such as the log on the Hub"
            )


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

    The sentences are the report's. A report in a file can be old, so the fields of its signature are
    compared with today's declarations as well.
    """
    sentences = list(report["deviations"].get(name, ["its deviations are not recorded"]))
    scorer = benchmark(report["benchmark"])
    spec = scorer.score_spec(name)
    if line := report["signatures"].get(spec.group):
        declaration = with_facts_declared(scorer.declaration(signature_name(line)), parse(line)[1])
        today = deviations(line, declaration, spec.needs[0].partition("@")[2])
        # The report can say more of a field, such as which harness ran with it.
        sentences += [
            sentence
            for sentence in today
            if not any(f"{sentence.partition(':')[0]}:" in recorded for recorded in sentences)
        ]
    return sentences


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
            dataset_revision=about.dataset_revision,
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
    """Open a pull request on a model's repository with entries by path, or update the open one.

    Other entries in these files are kept. A pull request is updated if it is open, has the title of
    the new one, and was opened by the same user.

    Returns:
        The URL of the pull request. None if the repository already has these results.
    """
    check_name("the model", model, "ORG/NAME")
    api = HfApi()
    require_token(api)
    title = f"Add evaluation results: {', '.join(Path(path).stem for path in files)}"
    with bounded_answers(), hub_errors(api):
        changes = _changes(api, model, files, api.model_info(model).sha)
        if not changes:
            return None
        pull_request = _open_pull_request(api, model, title)
        if pull_request is None:
            commit = api.create_commit(
                model, changes, commit_message=title, commit_description=DESCRIPTION, create_pr=True
            )
            return str(commit.pr_url)
        branch = pull_request.git_reference
        if changes := _changes(api, model, files, branch):
            api.create_commit(model, changes, commit_message=title, revision=branch)
        return str(pull_request.url)


def _changes(
    api: HfApi, model: str, files: Mapping[str, Sequence[EvalResultEntry]], revision: str | None
) -> list[CommitOperationAdd]:
    """Return the files that have to change in a revision of the model's repository."""
    changes = []
    for path, entries in files.items():
        old = _content(api, model, path, revision)
        new = to_yaml(entries, old, path).encode()
        if new != old:
            changes.append(CommitOperationAdd(path, new))
    return changes


def _open_pull_request(api: HfApi, model: str, title: str) -> Discussion | None:
    """Return the open pull request of the token's user with this title, or None."""
    user = api.whoami()["name"]
    opened = api.get_repo_discussions(
        model, author=user, discussion_type="pull_request", discussion_status="open"
    )
    return next((discussion for discussion in opened if discussion.title == title), None)


def published_revision(dataset: str, digests: Collection[str]) -> str | None:
    """Return the current commit of a dataset on the Hub, or None if its data is not known to be the scored data.

    Args:
        dataset: its id, such as "qabench/fanoutqa".
        digests: the digests of the scored files, as in signatures: the first hexadecimal digits.

    Raises HubError if the Hub cannot be reached.
    """
    api = HfApi()
    with bounded_answers(), hub_errors(api):
        try:
            commit = api.dataset_info(dataset).sha
            path = api.hf_hub_download(dataset, MANIFEST, repo_type="dataset", revision=commit)
            manifest = json_of(Path(path).read_bytes())
        except (RepositoryNotFoundError, EntryNotFoundError, ValueError):
            return None
    sources = manifest.get("sources") if isinstance(manifest, dict) else None
    published = [
        str(source.get(name) or "") for source in sources or () for name in ("sha256", "git_blob_sha1")
    ]
    for digest in digests:
        if not any(full.startswith(digest) for full in published):
            return None
    return commit if digests else None


def with_revisions(entries: Sequence[EvalResultEntry], report: Report) -> list[EvalResultEntry]:
    """Return the entries of a report with the commit of their dataset on the Hub, where it has the scored data."""
    digests = set()
    for line in report["signatures"].values():
        fields = parse(line)[1]
        if "data" in fields:
            digests.add(fields["data"])
    for dataset in {entry.dataset_id for entry in entries if entry.dataset_revision is None}:
        revision = published_revision(dataset, digests)
        entries = [
            replace(entry, dataset_revision=revision) if entry.dataset_id == dataset else entry
            for entry in entries
        ]
    return list(entries)


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
