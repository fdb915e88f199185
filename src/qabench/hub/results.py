"""Scores as entries of ``.eval_results/*.yaml``, which the Hub shows on a model's page.

The format is the Hub's (https://huggingface.co/docs/hub/eval-results), with the classes of
huggingface_hub. An entry has one number, so each score is a separate task. The Hub shows it on a
leaderboard if its ``task_id`` is the id of a task in the dataset's ``eval.yaml`` (see
``qabench.hub.leaderboards``). The entry's notes contain n, the interval, the deviations from the
official score, and the signature.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
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

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
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
from qabench.runs.file_kinds import is_log
from qabench.runs.sources import read_evaluations

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
# Counts of records that need no remark in the notes of an entry.
UNREMARKABLE = (ANSWERED, "records")
ALLOWED = (
    "; allowed: a log of `qabench run`, a folder of logs, or the output of `qabench score` or `qabench run` with "
    "--output FILE or --json"
)
# The Git SHA of a commit, in the form in which the Hub shows it.
COMMIT = re.compile(r"[0-9a-f]{40}")
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
        """Raise InputError for a revision that is not a commit, or a source that is not a link."""
        revision = self.dataset_revision
        if revision is not None and not COMMIT.fullmatch(revision):
            raise InputError(
                f"the revision of the dataset is {revision!r:.80}; allowed: a whole commit, which has 40 digits from 0 "
                "to 9 and a to f, as on the dataset's page on the Hub. Branches and tags can move"
            )
        if self.source_url is None:
            return
        url = urlsplit(self.source_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise InputError(
                f"the source {self.source_url!r} is not a link; allowed: a URL that starts with https:// or http://, "
                "such as the log on the Hub"
            )


def read_reports(path: Path) -> list[Report]:
    """Return the evaluations of a file or of a folder of logs, without logs that a newer one resumes."""
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
    # The document of ``qabench score``, one of its evaluations, or a list of them.
    if isinstance(document, dict) and "evaluations" in document:
        document = document["evaluations"]
    reports = document if isinstance(document, list) else [document]
    for report in reports:
        missing = list(NEEDED)
        if isinstance(report, dict):
            missing = [name for name in NEEDED if name not in report]
        if missing:
            raise InputError(
                f"{path} is not a report of scores (it has no {', '.join(missing)}){ALLOWED}"
            )
    return reports


def chosen(report: Report, names: Names = None) -> list[str]:
    """Return the names of the scores to publish, by default all that the authors report.

    Raises:
        InputError: a score that does not exist, or scores of a task that is not a benchmark's.
        QabenchError: the report has no scores.
    """
    if not report["benchmark"]:
        raise InputError(
            f"{report.get('path')} has scores of the task {report['config']!r}, which is not a qabench benchmark; "
            "score its answers with a benchmark, and convert these scores: qabench score LOG --benchmark NAME "
            "--output FILE, then: qabench results FILE"
        )
    scores = [name for name, value in report["scores"].items() if value is not None]
    if not scores:
        raise QabenchError(
            f"{report.get('path')} has no scores: {report.get('unscored', 'nothing was scored')}"
        )
    specs = list(map(benchmark_of(report["benchmark"]).score_spec, scores))
    if names is None:
        # A custom benchmark may have no scores that authors report. Then all scores are published.
        return [spec.name for spec in specs if spec.official] or scores
    return [spec.name for spec in select_scores(specs, names, str(report.get("path")))]


def deviations_of(report: Report, name: str) -> list[str]:
    """Return sentences that say how a score differs from the official one, or [] if it is official.

    They come from the report. A saved report can be old, so its signature is also compared with
    today's declarations.
    """
    sentences = list(report["deviations"].get(name, ["its deviations are not recorded"]))
    benchmark = benchmark_of(report["benchmark"])
    spec = benchmark.score_spec(name)
    if line := report["signatures"].get(spec.group):
        declaration = with_facts_declared(
            benchmark.declaration(signature_name(line)), parse(line)[1]
        )
        recorded = "\n".join(sentences)
        for sentence in deviations(line, declaration, spec.needs[0].partition("@")[2]):
            # The report's sentence about a field may be more detailed: it may name the harness.
            field, _, _ = sentence.partition(":")
            if f"{field}:" not in recorded:
                sentences.append(sentence)
    return sentences


def entries(report: Report, about: About, scores: Names = None) -> list[EvalResultEntry]:
    """Return one entry for each score of a report (see ``chosen``).

    Raises:
        InputError: a score is unofficial and this is not allowed, or is not a finite number.
    """
    names = chosen(report, scores)
    setting = setting_of(report, about)
    path = report.get("path")
    dataset = about.dataset or f"qabench/{report['benchmark']}"
    check_name("the dataset", dataset, f"qabench/{report['benchmark']}")

    # Check all scores before an entry is made.
    deviating = {}
    for name in names:
        sentences = deviations_of(report, name)
        if sentences:
            deviating[name] = sentences
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
            raise InputError(
                f"the score {name} of {path} is {value!r}; an entry needs a finite number"
            )

    # Make one entry per score.
    new_entries = []
    for name, value in values.items():
        entry = EvalResultEntry(
            dataset_id=dataset,
            dataset_revision=about.dataset_revision,
            # The format has one number per entry and task, so each score is a task.
            task_id=task_id(report["config"], setting, name),
            value=value,
            date=str(report["created"]),
            source_url=about.source_url,
            source_name="Evaluation" if about.source_url else None,
            notes=_notes(report, name, setting, deviating.get(name, [])),
        )
        new_entries.append(entry)
    return new_entries


def setting_of(report: Report, about: About) -> str:
    """Return how the model answered.

    Raises:
        InputError: this is unknown, differs from the report, or is not a setting.
    """
    recorded = report["setting"]
    if recorded == PREDICTIONS:
        # A file of predictions has no setting: it does not say how the model was asked.
        recorded = None
    if recorded and about.setting and recorded != about.setting:
        raise InputError(
            f"{report.get('path')} is a run in the setting {recorded}, not {about.setting}: omit --setting"
        )
    benchmark = benchmark_of(report["benchmark"])
    if not (setting := recorded or about.setting):
        names = ", ".join(declared.name for declared in benchmark.settings)
        raise InputError(
            f"{report.get('path')} does not have the setting of the run: add --setting, such as {names}"
        )
    if setting not in (recorded, AGENT) and benchmark.settings:
        # A setting can be followed by the value of an option, such as "rag bm25".
        benchmark.setting(setting.partition(" ")[0])
    return str(setting)


def other_model(report: Report, model: str) -> str | None:
    """Return the name of the model that a report is about, or None if it can be ``model``.

    A run has Inspect AI's name for its model, such as openai-api/qabench/NAME, and the name that
    was passed as ``--name``. A file of predictions does not name its model.
    """
    if report["setting"] == PREDICTIONS:
        return None
    names = [str(report[key]) for key in ("name", "model") if report.get(key)]
    if not names or any(name.endswith(model) for name in names):
        return None
    return names[0]


def path_of(report: Report, about: About) -> str:
    """Return the file in a model's repository for the benchmark, config and setting of a report."""
    name = task_id(report["benchmark"], report["config"], setting_of(report, about))
    return f"{FOLDER}/{name}.yaml"


def to_yaml(
    new: Sequence[EvalResultEntry], old: bytes = b"", name: object = "the file of results"
) -> str:
    """Return the content of a file with old and new entries.

    A new entry replaces the old one for the same task, in its place. The other old entries are
    kept, and the other new entries are appended.
    """
    try:
        rows = yaml_of(old.decode()) or []
        parse_eval_result_entries(rows)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{name} exists and is not a list of entries ({type(error).__name__}: {error}); fix or remove it"
        ) from None
    added = {_key(row): row for row in eval_result_entries_to_yaml(list(new))}
    # A new entry replaces the old one in its place, and ``pop`` removes it from those to append.
    merged = [added.pop(_key(row), row) for row in rows]
    merged += added.values()
    # Notes are not wrapped, so that signatures can be searched.
    width = float("inf")
    return str(yaml.safe_dump(merged, sort_keys=False, allow_unicode=True, width=width))


def push(model: str, files: Mapping[str, Sequence[EvalResultEntry]]) -> str | None:
    """Open a pull request that adds entries to a model's repository, or update the open one.

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
        # A second call adds to the open pull request instead of opening another one.
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
    for discussion in opened:
        if discussion.title == title:
            return discussion
    return None


def published_revision(dataset: str, digests: Collection[str]) -> str | None:
    """Return the current commit of a dataset on the Hub, if it has the scored data, else None.

    Args:
        dataset: its id, such as "qabench/fanoutqa".
        digests: the digests of the scored files, as in signatures: the first hexadecimal digits.

    Raises:
        HubError: the Hub cannot be reached.
    """
    api = HfApi()
    with bounded_answers(), hub_errors(api):
        try:
            commit = api.dataset_info(dataset).sha
            path = api.hf_hub_download(dataset, MANIFEST, repo_type="dataset", revision=commit)
            manifest = json_of(Path(path).read_bytes())
        except (RepositoryNotFoundError, EntryNotFoundError, ValueError):
            return None
    if not digests or not isinstance(manifest, dict):
        return None
    published = []
    for source in manifest.get("sources") or ():
        published.append(str(source.get("sha256") or ""))
        published.append(str(source.get("git_blob_sha1") or ""))
    for digest in digests:
        if not any(full.startswith(digest) for full in published):
            return None
    return commit


def with_revisions(entries: Sequence[EvalResultEntry], report: Report) -> list[EvalResultEntry]:
    """Return entries with the commit of their dataset on the Hub, where it has the scored data."""
    digests = set()
    for line in report["signatures"].values():
        fields = parse(line)[1]
        if "data" in fields:
            digests.add(fields["data"])
    # The Hub is asked once for each dataset.
    revisions: dict[str, str | None] = {}
    for entry in entries:
        if entry.dataset_revision is None and entry.dataset_id not in revisions:
            revisions[entry.dataset_id] = published_revision(entry.dataset_id, digests)
    completed = []
    for entry in entries:
        if entry.dataset_id in revisions:
            entry = replace(entry, dataset_revision=revisions[entry.dataset_id])
        completed.append(entry)
    return completed


def _key(row: Row) -> tuple[str, str]:
    return row["dataset"]["id"], row["dataset"]["task_id"]


def _notes(report: Report, name: str, setting: str, deviations: Sequence[str]) -> str:
    """Return the notes of an entry: what the number alone does not say."""
    spec = benchmark_of(report["benchmark"]).score_spec(name)
    notes = []
    if deviations:
        notes.append(f"UNOFFICIAL: {'; '.join(deviations)}")
    notes += [f"{name}, {setting}", f"n {report['n'][name]} {spec.unit}"]
    left_out = report.get("left_out", {})
    for column, text in ((name, "left out"), (spec.readable, "without a readable reply")):
        if left_out.get(column):
            notes.append(f"{left_out[column]} {text}")
    counts = []
    for kind, count in report["counts"].items():
        if count and kind not in UNREMARKABLE:
            counts.append(f"{count} {kind}")
    if counts:
        notes.append(f"answers: {', '.join(counts)}")
    interval = report["intervals"].get(name)
    if interval and interval["low"] is not None:
        notes.append(f"95% interval {interval['low']:.4f} to {interval['high']:.4f}")
    line = report["signatures"].get(spec.group)
    if line:
        notes.append(f"signature {line}")
    return "; ".join(notes)


def described(notes: str, benchmark: Benchmark) -> tuple[str, str, str]:
    """Return the score, config and setting that the notes of an entry name.

    All three are "" if the notes name no score. The config is "" if they have no signature. The Hub's
    leaderboards have no such fields. Entries can come from anybody, so any text is possible.
    """
    config = ""
    with suppress(InputError):
        config = parse(notes.rpartition("signature ")[2])[1].get("config", "")
    for part in notes.split("; "):
        name, _, setting = part.partition(", ")
        try:
            return benchmark.score_spec(name).name, config, setting
        except InputError:
            continue
    return "", "", ""


def _content(api: HfApi, model: str, path: str, revision: str | None) -> bytes:
    """Return the content of a file of the repository, or b"" if it does not exist."""
    try:
        return Path(api.hf_hub_download(model, path, revision=revision)).read_bytes()
    except EntryNotFoundError:
        return b""
