"""Evaluations for other programs: predictions and records, the schema of Every Eval Ever, experiment trackers.

Every Eval Ever collects evaluation results of many papers and tools. The trackers are trackio,
Weights & Biases and MLflow, each through its own package.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark
from qabench.data.rows import Json, without_none
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.evaluation import Evaluation
from qabench.evaluation.records import PREDICTIONS, Score, item_score
from qabench.evaluation.signature import version
from qabench.io.files import write_json, write_text
from qabench.io.http_error import first_line
from qabench.io.tables import without_folders
from qabench.stats import RESAMPLES

SCHEMA = "0.3.0"
# in the names of metrics that are not between 0 and 1
UNBOUNDED = ("bleurt", "kappa", "correlation")
TRACKERS = ("trackio", "wandb", "mlflow")
PROJECT = "qabench"
DEVELOPERS = ("anthropic", "google", "mistral", "openai")  # providers whose models are their own
# of all intervals (see ``qabench.stats.score_bounds``)
METHOD = (
    "0/1 scores: Clopper-Pearson. Other fractions: Clopper-Pearson at the effective number of questions (Korn and "
    "Graubard). Others: Student's t with the variance of the jackknife"
)
GENERATION = ("temperature", "top_p", "top_k", "max_tokens")


def predictions(run: Evaluation) -> str:
    """Return the answers of the first epoch as JSONL, with the fields that ``qabench score`` reads.

    Records without any of these fields, such as failed ones, are left out. The official scorers
    count them as unanswered.

    Raises:
        InputError: the run has no answers.
    """
    descriptor = benchmark(run.benchmark)
    predictions_by_id = {
        record.id: descriptor.prediction(record) for record in run.records if record.epoch == 1
    }
    rows = [
        {"id": id} | fields
        for id, fields in predictions_by_id.items()
        if any(value is not None and value != [] for value in fields.values())
    ]
    if not rows:
        raise InputError(
            f"{run.path} has no answers: {len(predictions_by_id)} questions, none answered"
        )
    return _lines(rows)


def records(run: Evaluation) -> str:
    """Return everything about each record as JSONL, which ``load_dataset("json", ...)`` reads.

    Scores, groups and detail are JSON text, because they differ between benchmarks and a column has
    one type.
    """
    of_run = {name: getattr(run, name) for name in ("benchmark", "config", "setting", "model")}
    rows = [of_run | asdict(record) for record in run.records]
    for row in rows:
        row |= {
            name: json.dumps(row[name], ensure_ascii=False)
            for name in ("scores", "groups", "detail")
        }
    return _lines(rows)


def _lines(rows: Iterator[Json] | list[Json]) -> str:
    # Escaped: an answer can contain a lone surrogate, which UTF-8 cannot encode.
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_shared(
    run: Evaluation, folder: Path, developer: str | None = None, model_id: str | None = None
) -> Path:
    """Write the scores and the records of an evaluation below ``folder``/data, and return the file of the scores.

    The path and all values but the time of the export are the same each time. No text has a path of
    this machine.

    Args:
        run: the evaluation.
        folder: the output.
        developer: who made the model. By default the organization in the model's id. Left out if
            there is none.
        model_id: such as "org/name". By default from the model's name in the run.
    """
    run = _without_paths(run)
    model_id = model_id or _model_id(run.model)
    organization = model_id.rpartition("/")[0].rpartition("/")[2]
    developer = developer or organization
    parts = (organization or developer or "unknown", model_id.rpartition("/")[2])
    in_path, name = (re.sub(r"[^\w.-]+", "-", part).strip(".") or "unknown" for part in parts)
    model = f"{in_path}/{name}"
    identity = f"{run.benchmark}_{run.config}_{run.setting}/{model}/{run.created or run.path}"
    unique = uuid.UUID(bytes=hashlib.sha256(identity.encode()).digest()[:16], version=4)
    place = Path("data", run.benchmark, in_path, name)
    samples = place / f"{unique}_samples.jsonl"
    scores = run.scores()
    rows = list(_samples(run, list(scores.values()), identity, model))
    text = _lines(rows)
    document: Json = {
        "schema_version": SCHEMA,
        "evaluation_id": identity,
        **({"evaluation_timestamp": run.created} if run.created else {}),
        "retrieved_timestamp": str(int(time.time())),
        "source_metadata": {
            "source_name": f"qabench {version()}",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "qabench", "version": version()},
        "model_info": {
            "name": run.model,
            "id": model,
            **({"developer": developer} if developer else {}),
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": [_result(run, score) for score in scores.values()],
    }
    if rows:
        document["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": samples.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(text.encode()).hexdigest(),
            "total_rows": len(rows),
        }
        write_text(folder / samples, text)
    path = folder / place / f"{unique}.json"
    write_json(path, document)
    return path


def _model_id(model: str) -> str:
    """Return the organization, if a model's name has one, and the name: a server or a provider made no model."""
    provider, *parts = model.split("/")
    if provider in DEVELOPERS or not parts:
        return model
    return "/".join(parts[-2:])


def _without_paths(run: Evaluation) -> Evaluation:
    """Return the evaluation without folders of this machine in its texts, except in questions and answers."""
    records = [
        replace(each, problem=each.problem and without_folders(each.problem))
        for each in run.records
    ]
    arguments = {
        name: without_folders(str(value)) if isinstance(value, str | Path | list | dict) else value
        for name, value in run.arguments.items()
    }
    folder = hashlib.sha256(run.path.encode("utf-8", "replace")).hexdigest()[:8]
    path = f"{Path(run.path).name}-{folder}"  # files of the same name in several folders differ
    model = (
        f"hf/{Path(run.model).name}" if run.model.startswith("hf//") else without_folders(run.model)
    )
    signatures = {name: without_folders(line) for name, line in run.signatures.items()}
    return replace(
        run, records=records, arguments=arguments, path=path, model=model, signatures=signatures
    )


def _result(run: Evaluation, score: Score) -> Json:
    spec, interval = score.spec, score.interval
    bounds = {"lower": interval.low, "upper": interval.high, "method": METHOD}
    uncertainty: Json = {
        "standard_error": {"value": interval.standard_error, "method": "bootstrap"},
        "num_samples": score.n,
        "num_bootstrap_samples": RESAMPLES,
    }
    if interval.low is not None:
        uncertainty["confidence_interval"] = bounds | {"confidence_level": interval.confidence}
    bounded = not any(word in spec.name for word in UNBOUNDED)
    counts = {f"questions {status}": str(n) for status, n in run.counts().items() if n}
    replies = {f"replies {name}": str(n) for name, n in run.replies().items()}
    arguments = without_none(run.arguments)
    return {
        "evaluation_result_id": spec.name,
        "evaluation_name": _name(run),
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
            "metric_unit": "proportion" if bounded else "points",
            "lower_is_better": not spec.higher_is_better,
            "score_type": "continuous",
            "min_score": 0 if bounded else "-Infinity",
            "max_score": 1 if bounded else "Infinity",
        },
        "score_details": {
            "score": interval.mean,
            "details": {
                "signature": run.signatures.get(spec.group, ""),
                "n": score.size,
                "left out": str(score.left_out),
                "deviations from the official score": "; ".join(run.deviations(score)) or "none",
                **counts,
                **replies,
            },
            "uncertainty": uncertainty,
        },
        "generation_config": {
            "generation_args": {name: arguments[name] for name in GENERATION if name in arguments},
            "additional_details": {
                "setting": run.setting,
                **{name: str(value) for name, value in arguments.items() if name not in GENERATION},
            },
        },
    }


def _name(run: Evaluation) -> str:
    setting = "" if run.setting == PREDICTIONS else run.setting
    return f"{benchmark(run.benchmark).title} {run.config} {setting}".strip()


def _samples(run: Evaluation, scores: list[Score], identity: str, model: str) -> Iterator[Json]:
    """Yield a row for each record and each score that the benchmark's authors report and the record has."""
    for record in run.records:
        turns = [message for message in record.messages if message.role != "system"]
        several = len(turns) > 2
        messages = [
            {"turn_idx": i, "role": m.role, "content": m.text}
            for i, m in enumerate(record.messages)
        ]
        answer = {
            "turn_idx": len(messages) - 1 if several else 0,
            "source": f"messages[{len(messages) - 1}].content" if several else "output.raw",
            "extracted_value": record.answer or "",
            "extraction_method": "the answer of the run",
            "is_terminal": True,
        }
        for score in scores:
            value = item_score(score.spec, record) if score.spec.official else None
            if value is None:
                continue
            content = (record.question + record.reference).encode("utf-8", "replace")
            row: Json = {
                "schema_version": SCHEMA,
                "evaluation_id": identity,
                "model_id": model,
                "evaluation_name": _name(run),
                "evaluation_result_id": score.spec.name,
                "sample_id": record.id,
                "sample_hash": hashlib.sha256(content).hexdigest(),
                "interaction_type": "multi_turn" if several else "single_turn",
                "input": {"raw": record.question, "reference": [record.reference]},
                "output": None if several else {"raw": [record.answer or ""]},
                "messages": messages if several else None,
                "answer_attribution": [answer],
                "evaluation": {
                    "score": value,
                    "is_correct": value == 1,
                    "num_turns": len(turns) or None,
                },
                "error": record.problem or (None if record.status == "answered" else record.status),
                "metadata": {"epoch": str(record.epoch), "status": record.status},
            }
            if record.input_tokens is not None and record.output_tokens is not None:
                total = record.input_tokens + record.output_tokens
                usage = {"input_tokens": record.input_tokens, "output_tokens": record.output_tokens}
                row["token_usage"] = usage | {"total_tokens": total}
            if record.seconds is not None:
                row["performance"] = {"latency_ms": record.seconds * 1000}
            yield row


def check_tracker(target: str) -> tuple[Any, str]:
    """Return the package and the project that TRACKER[:PROJECT] names.

    Raises:
        InputError: another tracker, or an empty project.
        MissingExtra: its package is not installed.
        QabenchError: its package cannot be imported.
    """
    name, colon, project = target.partition(":")
    if name not in TRACKERS or (colon and not project):
        raise InputError(
            f"--track is {target!r}; allowed: {', '.join(TRACKERS)}, each also with :PROJECT"
        )
    try:
        return importlib.import_module(name), project or PROJECT
    except ImportError:
        raise MissingExtra(f"--track {name} needs its package: pip install {name}") from None
    except (Exception, SystemExit) as error:
        why = first_line(f"{type(error).__name__}: {error}")
        raise QabenchError(f"--track {name}: its package cannot be imported ({why})") from error


def send(evaluations: Sequence[Evaluation], target: str) -> None:
    """Send one run per evaluation to a tracker: scores with intervals and n, counts, parameters and signatures.

    Args:
        evaluations: the systems.
        target: see ``check_tracker``.

    Raises:
        QabenchError: the tracker failed.
    """
    package, project = check_tracker(target)
    with redirect_stdout(sys.stderr):  # trackers print messages
        for number, evaluation in enumerate(evaluations):
            try:
                _send(package, project, evaluation, is_mlflow=target.startswith("mlflow"))
            except (Exception, SystemExit) as error:
                why = first_line(f"{type(error).__name__}: {error}")
                raise QabenchError(
                    f"--track {target} failed ({why}); {number} of {len(evaluations)} runs were sent, all scores were "
                    "printed and written"
                ) from error


def _send(package: Any, project: str, evaluation: Evaluation, is_mlflow: bool) -> None:
    names = ("benchmark", "config", "setting", "model", "created", "status")
    parameters = {name: str(getattr(evaluation, name)) for name in names}
    parameters |= {"path": os.path.abspath(evaluation.path), "qabench": version()}
    parameters |= {f"argument {name}": str(value) for name, value in evaluation.arguments.items()}
    parameters |= {f"signature {group}": line for group, line in evaluation.signatures.items()}
    values: dict[str, float] = {
        f"count/{status}": count for status, count in evaluation.counts().items()
    }
    for name, score in evaluation.scores().items():
        key = name.replace("@", "_at_")  # MLflow does not allow @
        interval = score.interval
        values |= {
            key: interval.mean,
            f"{key}/n": score.n,
        }
        if interval.low is not None and interval.high is not None:
            values |= {f"{key}/low": interval.low, f"{key}/high": interval.high}
        parameters[f"deviations {key}"] = "; ".join(evaluation.deviations(score)) or "none"
    run_name = f"{evaluation.model} {evaluation.benchmark} {evaluation.config} {evaluation.setting}"
    if is_mlflow:
        package.set_experiment(project)
        with package.start_run(run_name=run_name):
            package.set_tags(parameters)
            package.log_metrics(values)
    else:
        package.init(project=project, name=run_name, config=parameters)
        package.log(values)
        package.finish()
