"""A file of answers as a run: scored here, for reports beside runs of ``qabench run``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from qabench.answers import UNANSWERED, loads, strings_of, text_of
from qabench.benchmarks.fanoutqa.old_predictions import Evaluation as Scored
from qabench.benchmarks.fanoutqa.old_predictions import evaluate, load_questions
from qabench.evaluation import ANSWERED, EMPTY, FAILED, Evaluation, Message, Record
from qabench.generations import read_generations
from qabench.scoring.accuracy import found_strings
from qabench.text import Normalizer
from qabench.text.cache import NormalizedTextCache


def score_file(path: str | Path, config: str | None = None, normalizer: Normalizer | None = None) -> Evaluation:
    """The answers of a file to FanOutQA's questions, scored as ``qabench score`` does.

    Args:
        path: JSONL, ``{"id", "answer"}`` a line. config: whose questions; by default the benchmark's default config.
        normalizer: by default the "auto" lemmatizer with the user's cache.

    Returns:
        A run whose model is the file's name and whose setting is "answers"; a question without an answer is a failed
        record, and scores 0 as in the official scorer.

    Raises:
        InputError: an unreadable file, or one that belongs to other questions.
    """
    normalizer = normalizer or Normalizer("auto", NormalizedTextCache.default())
    evaluation = evaluate(read_generations(path), load_questions("fanoutqa", config), normalizer=normalizer)
    return Evaluation(
        path=str(path),
        task="answers",
        benchmark=evaluation.questions.benchmark,
        config=evaluation.questions.config,
        setting="answers",
        model=Path(path).stem,
        created=datetime.fromtimestamp(Path(path).stat().st_mtime, UTC).isoformat(timespec="seconds"),
        status="success",
        expected=len(evaluation.joined.ids),
        records=_records(evaluation, normalizer),
        signatures=evaluation.signatures,
        unofficial=evaluation.unofficial,
    )


def _records(evaluation: Scored, normalizer: Normalizer) -> list[Record]:
    rows = [evaluation.questions.by_id[id] for id in evaluation.joined.ids]
    references = [loads(row["answer"]) for row in rows]
    forms = normalizer.batch(text for reference in references for text in strings_of(reference))
    columns = evaluation.columns()
    records = []
    for i, (row, reference) in enumerate(zip(rows, references, strict=True)):
        prediction = evaluation.joined.predictions[i]
        answer = None if prediction is UNANSWERED else str(prediction)
        missing = evaluation.acc.per_question[i].missing if evaluation.acc else ()
        said = [] if answer is None else [Message("assistant", answer)]
        records.append(
            Record(
                id=row["id"],
                epoch=1,
                question=row["question"],
                reference=text_of(reference),
                messages=[Message("user", row["question"]), *said],
                answer=answer,
                status=FAILED if answer is None else ANSWERED if answer.strip() else EMPTY,
                problem="the file has no answer" if answer is None else None,
                scores={name: values[i] for name, values in columns.items()},
                groups=evaluation.questions.groups(row["id"]),
                detail={"found": found_strings(reference, forms, missing), "missing": list(missing)},
            )
        )
    return records
