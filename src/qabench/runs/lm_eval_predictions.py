"""Samples of qabench's tasks in lm-evaluation-harness, scored as predictions.

The signatures record how the harness ran, and the scores are over the questions that it asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabench.adapters.files import evaluate_systems
from qabench.benchmarks import Benchmark
from qabench.data.joining import WITHOUT_PREDICTION
from qabench.data.predictions import Predictions, read_predictions
from qabench.data.rows import Row, SourceRow
from qabench.errors import InputError, QabenchError
from qabench.evaluation import Evaluation
from qabench.evaluation.records import values_of
from qabench.evaluation.signature import asked_field, parse, with_fields
from qabench.io.limits import MAX_REPLY_CHARACTERS
from qabench.loading_scripts import dataset_table
from qabench.runs.lm_eval_facts import harness_facts
from qabench.runs.lm_eval_samples import (
    answer_in,
    lm_eval_config,
    lm_eval_results,
    lm_eval_task,
)

# JSON in ASCII writes a character beyond 16 bits as two escapes of six characters each.
CHARACTERS_IN_JSON = 12


def evaluate_samples(
    benchmark: Benchmark,
    config: str | None,
    path: Path,
    samples: Sequence[SourceRow],
    questions: Path | None = None,
    **options: Any,
) -> list[Evaluation]:
    """Score the answers in a file's samples with the benchmark's scorer, system by system.

    Args:
        benchmark: the benchmark.
        config: the config's name. None for the config that the harness evaluated.
        path: the file.
        samples: its rows.
        questions: a file of questions, used instead of a config's questions.
        **options: see ``evaluate_systems``.
    """
    predictions = predictions_in_samples(benchmark, path, samples)
    if config is None and questions is None:
        config = config_of_samples(benchmark, path)
    evaluations = []
    for scored in evaluate_systems(benchmark, config, predictions, questions=questions, **options):
        # The samples also say how the model was asked, and which questions the harness left out.
        signed = with_harness_facts(scored, benchmark, path, samples, config, questions)
        evaluations.append(restricted_to_asked(signed, predictions))
    return evaluations


def predictions_in_samples(
    benchmark: Benchmark, path: Path, samples: Sequence[SourceRow]
) -> Predictions:
    """Return the answers in a file's samples as predictions."""
    answers: list[Any] = [_json_if_long(answer_in(sample)) for sample in samples]
    predictions = read_predictions(answers, benchmark.prediction_fields, benchmark.id_fields)
    return replace(predictions, path=str(path))


def _json_if_long(answer: Row) -> Row | bytes:
    """Return a prediction. One that may be too long for a line of a file is returned as JSON.

    The reader of predictions checks the length of lines of JSON, and so reports a long answer here
    in the same way as in any other file.
    """
    characters = sum(len(str(value)) for value in answer.values())
    if characters <= MAX_REPLY_CHARACTERS // CHARACTERS_IN_JSON:
        return answer
    return json.dumps(answer).encode()


def config_of_samples(benchmark: Benchmark, path: Path) -> str | None:
    """Return the config that the harness evaluated, or None if the file does not name it."""
    try:
        configs = list(dataset_table(benchmark.name).configs)
    except QabenchError:
        # A benchmark from outside may have no dataset of this package.
        configs = []
    return lm_eval_config(path, configs)


def with_harness_facts(
    evaluation: Evaluation,
    benchmark: Benchmark,
    path: Path,
    samples: Sequence[SourceRow],
    config: str | None,
    questions: Path | None,
) -> Evaluation:
    """Add to the signatures how the harness ran, according to its samples and results."""
    rows = [row.fields for row in samples]
    loaded = benchmark.load(config, questions).rows
    try:
        facts = harness_facts(benchmark, loaded, lm_eval_task(path), rows, lm_eval_results(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    signatures = {}
    declarations = dict(evaluation.declarations)
    for group, line in evaluation.signatures.items():
        name, own_fields = parse(line)
        added = {}
        for field, value in facts.fields.items():
            # Fields that scoring has signed take precedence, such as the digest of the scored data.
            if field not in own_fields:
                added[field] = value
        signatures[group] = with_fields(line, **added)
        declarations[name] = {**facts.declared, **declarations[name]}
    return replace(evaluation, signatures=signatures, declarations=declarations)


def restricted_to_asked(evaluation: Evaluation, predictions: Predictions) -> Evaluation:
    """Restrict an evaluation to the questions in the file, as the harness does.

    With ``--limit``, the harness asks only some questions. A note states the scores over all
    questions.
    """
    asked = {row.id for row in predictions.rows}
    records = [record for record in evaluation.records if record.id in asked]
    if not records or len(records) == len(evaluation.records):
        return evaluation
    count = len(evaluation.records)
    main_scores = [spec for spec in evaluation.score_specs if spec.main]
    over_all = values_of(main_scores, evaluation.records)
    shown = ", ".join(f"{name} {value:.4f}" for name, value in over_all.items())
    note = (
        f"the file has samples of {len(records)} of {count} questions (was the harness run with --limit?), and the "
        f"scores are over these; over all {count}, with the others counted as missing: {shown}"
    )
    questions = asked_field(record.id for record in records)
    signatures = {}
    for group, line in evaluation.signatures.items():
        signatures[group] = with_fields(line, asked=questions)
    # Questions that were not asked have no prediction, which is not a problem of the file.
    problems = [text for text in evaluation.problems if not text.startswith(WITHOUT_PREDICTION)]
    return replace(
        evaluation,
        records=records,
        expected=len(records),
        signatures=signatures,
        problems=problems,
        notes=[*evaluation.notes, note],
    )
