"""Evaluations in the schema of Every Eval Ever (https://evalevalai.com), a collection of results.

An evaluation is two files: its scores with intervals, signatures and deviations, and one line per
record and score. ``every_eval_ever validate`` accepts both.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from qabench.benchmarks import benchmark
from qabench.data.rows import Json, without_none
from qabench.evaluation.records import ANSWERED, PREDICTIONS, item_score
from qabench.evaluation.signature import version
from qabench.io.files import write_json, write_text
from qabench.io.redaction import without_folders
from qabench.llm.endpoint import ADDRESSED

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.records import Score

SCHEMA_VERSION = "0.3.0"
# Providers in Inspect's model names that develop the models they serve.
DEVELOPERS = ("anthropic", "google", "mistral", "openai")
GENERATION_OPTIONS = ("temperature", "top_p", "top_k", "max_tokens")
# See ``qabench.stats.intervals.score_bounds``.
INTERVAL_METHOD = (
    "0/1 scores: Clopper-Pearson. Other fractions: Clopper-Pearson at the effective number of questions (Korn and "
    "Graubard). Others: Student's t with the variance of the jackknife"
)


def write_evaluation(
    run: Evaluation, folder: Path, developer: str | None = None, model_id: str | None = None
) -> Path:
    """Write scores and records under ``folder``/data, and return the file of the scores.

    The path and all values but the time of the export are the same each time. No text contains a path of
    this machine, except questions and answers.

    Args:
        run: the evaluation.
        folder: the output.
        developer: who made the model. By default the organization in the model's id. Left out if
            there is none.
        model_id: the model's id, such as "org/name". By default, the name that was given to the run
            if it has this form, else an id from the model's name in the run.
    """
    # Find the ids of the model and of the evaluation, which determine the paths.
    run = _without_paths(run)
    if model_id is None and re.fullmatch(r"[\w.-]+/[\w.-]+", run.given_name or ""):
        model_id = run.given_name
    model_id = model_id or _model_id(run.model)
    organization, _, model_name = model_id.rpartition("/")
    organization = organization.rpartition("/")[2]
    developer = developer or organization
    owner_folder = _as_folder(organization or developer)
    model = f"{owner_folder}/{_as_folder(model_name)}"
    evaluation_id = f"{run.benchmark}_{run.config}_{run.setting}/{model}/{run.created or run.path}"
    # Every Eval Ever names files by UUIDs. This one is a digest, so that each export of a run
    # writes the same file.
    unique = uuid.UUID(bytes=hashlib.sha256(evaluation_id.encode()).digest()[:16], version=4)
    folder_in_output = Path("data", run.benchmark, model)

    # Describe the run and its scores.
    scores = list(run.scores().values())
    document: Json = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "retrieved_timestamp": str(int(time.time())),
        "source_metadata": {
            "source_name": f"qabench {version()}",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "qabench", "version": version()},
        "model_info": {
            "name": run.name,
            "id": model,
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": [_result(run, score) for score in scores],
    }
    if run.created:
        document["evaluation_timestamp"] = run.created
    if developer:
        document["model_info"]["developer"] = developer

    # Write the file of the records first, because the other file contains its digest.
    rows = list(_instances(run, scores, evaluation_id, model))
    if rows:
        # JSON in ASCII, because an answer can contain a lone surrogate, which UTF-8 cannot encode.
        text = "".join(json.dumps(row) + "\n" for row in rows)
        samples = folder_in_output / f"{unique}_samples.jsonl"
        document["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": samples.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(text.encode()).hexdigest(),
            "total_rows": len(rows),
        }
        write_text(folder / samples, text)
    path = folder / folder_in_output / f"{unique}.json"
    write_json(path, document)
    return path


def _model_id(model: str) -> str:
    """Return ORGANIZATION/NAME, or NAME. A provider that only serves the model is left out."""
    provider, *parts = model.split("/")
    if provider in DEVELOPERS or not parts:
        return model
    if model.startswith(ADDRESSED):
        # The form is openai-api/SERVICE/NAME, where NAME can be ORGANIZATION/NAME.
        parts = parts[1:]
    return "/".join(parts[-2:])


def _as_folder(name: str) -> str:
    """Return a name for a folder: characters that are not allowed in it become hyphens."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".") or "unknown"


def _without_paths(run: Evaluation) -> Evaluation:
    """Return the evaluation without folders of this machine, except in questions and answers."""
    records = []
    for record in run.records:
        problem = record.problem and without_folders(record.problem)
        records.append(replace(record, problem=problem))
    arguments = {}
    for name, value in run.arguments.items():
        if isinstance(value, str | Path | list | dict):
            value = without_folders(str(value))
        arguments[name] = value
    # The digest tells files with the same name in different folders apart.
    digest = hashlib.sha256(run.path.encode("utf-8", "replace")).hexdigest()[:8]
    model = without_folders(run.model)
    # Inspect's name for a model in a local folder is hf//FOLDER/NAME.
    if run.model.startswith("hf//"):
        model = f"hf/{Path(run.model).name}"
    signatures = {name: without_folders(line) for name, line in run.signatures.items()}
    return replace(
        run,
        records=records,
        arguments=arguments,
        path=f"{Path(run.path).name}-{digest}",
        model=model,
        signatures=signatures,
    )


def _result(run: Evaluation, score: Score) -> Json:
    """Return a score with its interval, its signature and what deviates from the official score."""
    spec, interval = score.spec, score.interval
    uncertainty: Json = {
        "num_samples": score.n,
        "standard_error": {"value": interval.standard_error, "method": "jackknife"},
    }
    if interval.low is not None:
        uncertainty["confidence_interval"] = {
            "lower": interval.low,
            "upper": interval.high,
            "method": INTERVAL_METHOD,
            "confidence_level": interval.confidence,
        }
    deviations = run.deviations(score)
    details = {
        "signature": run.signatures.get(spec.group, ""),
        "n": score.size,
        "left out": str(score.left_out),
        "official": "no" if deviations else "yes",
        "deviations from the official score": "; ".join(deviations) or "none",
    }
    for status, count in run.counts().items():
        if count:
            details[f"questions {status}"] = str(count)
    for kind, count in run.replies().items():
        details[f"replies {kind}"] = str(count)
    arguments = without_none(run.arguments)
    generation = {}
    other = {"setting": run.setting}
    for name, value in arguments.items():
        if name in GENERATION_OPTIONS:
            generation[name] = value
        else:
            other[name] = str(value)
    return {
        "evaluation_result_id": spec.name,
        "evaluation_name": _evaluation_name(run),
        "source_data": {
            "dataset_name": benchmark(run.benchmark).title,
            "source_type": "hf_dataset",
            "hf_repo": f"qabench/{run.benchmark}",
            "samples_number": len({record.id for record in run.records}),
            "additional_details": {"config": run.config},
        },
        "metric_config": {
            "evaluation_description": spec.about,
            "metric_id": spec.name,
            "metric_name": spec.title,
            "metric_unit": "proportion" if spec.share else "points",
            "lower_is_better": not spec.higher_is_better,
            "score_type": "continuous",
            "min_score": 0 if spec.share else "-Infinity",
            "max_score": 1 if spec.share else "Infinity",
        },
        "score_details": {"score": interval.mean, "details": details, "uncertainty": uncertainty},
        "generation_config": {"generation_args": generation, "additional_details": other},
    }


def _evaluation_name(run: Evaluation) -> str:
    """Return the title of the benchmark, the config, and the setting if a model was run."""
    setting = "" if run.setting == PREDICTIONS else run.setting
    return f"{benchmark(run.benchmark).title} {run.config} {setting}".strip()


def _instances(
    run: Evaluation, scores: list[Score], evaluation_id: str, model: str
) -> Iterator[Json]:
    """Yield a row for each record and each official score that the record has."""
    official = [score.spec for score in scores if score.spec.official]
    for record in run.records:
        common = _instance(run, record, evaluation_id, model)
        turns = [message for message in record.messages if message.role != "system"]
        for spec in official:
            value = item_score(spec, record)
            if value is None:
                continue
            judgment = {"score": value, "is_correct": value == 1, "num_turns": len(turns) or None}
            yield common | {"evaluation_result_id": spec.name, "evaluation": judgment}


def _instance(run: Evaluation, record: Record, evaluation_id: str, model: str) -> Json:
    """Return the part of a record's rows that does not depend on the score."""
    turns = [message for message in record.messages if message.role != "system"]
    is_conversation = len(turns) > 2
    messages = []
    for turn, message in enumerate(record.messages):
        messages.append({"turn_idx": turn, "role": message.role, "content": message.text})
    answer = record.answer or ""
    # The schema has either the output of a single turn, or all messages of a conversation.
    source = "output.raw"
    turn_of_answer = 0
    if is_conversation:
        turn_of_answer = len(messages) - 1
        source = f"messages[{turn_of_answer}].content"
    error = record.problem
    if not error and record.status != ANSWERED:
        error = record.status
    content = (record.question + record.reference).encode("utf-8", "replace")
    row: Json = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "model_id": model,
        "evaluation_name": _evaluation_name(run),
        "sample_id": record.id,
        "sample_hash": hashlib.sha256(content).hexdigest(),
        "interaction_type": "multi_turn" if is_conversation else "single_turn",
        "input": {"raw": record.question, "reference": [record.reference]},
        "output": None if is_conversation else {"raw": [answer]},
        "messages": messages if is_conversation else None,
        "answer_attribution": [
            {
                "turn_idx": turn_of_answer,
                "source": source,
                "extracted_value": answer,
                "extraction_method": "the answer of the run",
                "is_terminal": True,
            }
        ],
        "error": error or None,
        "metadata": {"epoch": str(record.epoch), "status": record.status},
    }
    if record.input_tokens is not None and record.output_tokens is not None:
        row["token_usage"] = {
            "input_tokens": record.input_tokens,
            "output_tokens": record.output_tokens,
            "total_tokens": record.input_tokens + record.output_tokens,
        }
    if record.seconds is not None:
        row["performance"] = {"latency_ms": record.seconds * 1000}
    return row
