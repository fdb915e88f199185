"""Evaluations for reports: answers of synthetic models to the samples' questions."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from answer_styles import STYLES, answers

from qabench import evaluate_predictions, load_dataset
from qabench.benchmarks import benchmark as benchmark_of
from qabench.data.answers import loads
from qabench.evaluation import ANSWERED, FAILED, Evaluation, Message, Record
from qabench.loading_scripts.expertqa.parse import question_id

INSTRUCTION = "Answer the question with what you know. Give the answer only, one item a line. The date is 11-20-2023."
MODEL = "openai/imaginary-1"


def run_of(benchmark: str, config: str, setting: str, model: str, records: Sequence[Record], **more: Any) -> Evaluation:
    """Return a finished run with these records, with the fields in ``more`` replaced."""
    path, task = f"logs/{model.rpartition('/')[2]}.eval", f"{benchmark}_{setting.replace('-', '_')}"
    about: dict[str, Any] = {"path": path, "task": task, "created": "2026-03-01T10:00:00+00:00", "status": "success"}
    about |= {"expected": len(records), "arguments": {"config": config, "temperature": 0.0, "max_tokens": 520}}
    about |= {"signatures": {benchmark: f"{benchmark}|config:{config}|qabench:0"}} | benchmark_of(benchmark).scoring()
    return Evaluation(config=config, setting=setting, model=model, records=records, **about | more)


def sample_run(benchmark: str, setting: str, predictions: Sequence[Any], model: str, **options: Any) -> Evaluation:
    """Return a run with the scores of predictions for the sample, and with conversations, tokens
    and times.
    """
    scored = evaluate_predictions(benchmark, "sample", predictions, **options)
    records = []
    for record in scored.records:
        reply = [] if record.answer is None else [Message("assistant", record.answer)]
        messages = [Message("system", INSTRUCTION), Message("user", record.question), *reply]
        problem = "the server closed the connection 5 times" if record.status == FAILED else None
        size = len(record.answer or "")
        spent: dict[str, Any] = {"output_tokens": size // 4, "seconds": 0.4 + size / 500}
        spent["input_tokens"] = 60 + len(record.question) // 4
        records.append(replace(record, messages=messages, problem=problem, **spent))
    return run_of(benchmark, "sample", setting, model, records, signatures=scored.signatures)


def fanoutqa_run(model: str, skill: float, seed: int) -> Evaluation:
    """Return a run with correct answers with probability ``skill``, else in a wrong style; some are
    missing.
    """
    rows = load_dataset("fanoutqa", "sample", split="validation")
    plain = [{"question": row["question"], "answer": loads(row["answer"])} for row in rows]
    by_style = [answers(plain, style, seed) for style in STYLES]
    predictions = []
    for i, row in enumerate(rows):
        rng = random.Random(f"{seed}/{i}")
        style = rng.choice((0, 1)) if rng.random() < skill else rng.randrange(len(STYLES))
        if rng.random() > 0.02:
            predictions.append({"id": row["id"], "answer": by_style[style][i]})
    return sample_run("fanoutqa", "closed-book", predictions, model, lemmatizer="simplemma")


def felm_run(model: str = MODEL, seed: int = 0) -> Evaluation:
    """Return a run of an evaluator that gives each segment's label with probability 0.7."""
    predictions = []
    for row in load_dataset("felm", "sample", split="test"):
        rng = random.Random(f"{seed}/{row['index']}")
        verdicts = [label if rng.random() < 0.7 else not label for label in row["labels"]]
        wrong = [str(i) for i, verdict in enumerate(verdicts, 1) if not verdict]
        predictions.append({"id": row["index"], "answer": f"Answer: {', '.join(wrong)}" if wrong else "ALL_CORRECT"})
    return sample_run("felm", "raw", predictions, model)


def expertqa_run() -> Evaluation:
    """Return a run with the claims of the sample's first answers, and synthetic labels."""
    rng = random.Random(0)
    predictions = []
    for row in load_dataset("expertqa", "sample", split="train"):
        claims = [
            {"claim": claim["claim_string"], "evidence": claim["evidence"], "label": rng.choice("YN")}
            for claim in row["answers"][0]["claims"]
        ]
        answer = row["answers"][0]["answer_string"]
        predictions.append({"id": question_id(row["question"]), "answer": answer, "claims": claims})
    return sample_run("expertqa", "retrieve-and-read", predictions, MODEL)


def fastbook_run() -> Evaluation:
    """Return a run that retrieves the first context of each component of the answer, after another
    passage.
    """
    predictions = []
    for row in load_dataset("fastbook", "sample", split="test"):
        contexts = [component["context"][0] for component in row["answer_context"] if component["context"]]
        predictions.append({"id": row["id"], "answer": "An answer.", "passages": ["Another passage.", *contexts]})
    return sample_run("fastbook", "rag", predictions, MODEL)


def hostile_run(texts: Sequence[str]) -> Evaluation:
    """Return a run with these texts in all fields, including the model's name."""
    records = [
        Record(
            id=f"id {text[:40]}", epoch=1, question=text, reference=text, messages=[Message(text[:20], text)],
            answer=text, status=ANSWERED, problem=text, scores={"acc.loose": 0.5}, groups={"category": (text[:60],)},
            detail={"found": [text[:60]], "missing": [text]},
        )
        for text in texts
    ]  # fmt: skip
    about: dict[str, Any] = {"signatures": {texts[0]: texts[0]}, "arguments": {"a": texts[0]}}
    return run_of("fanoutqa", "dev", "closed-book", texts[0], records, **about)


def three_systems() -> list[Evaluation]:
    """Return three systems on FanOutQA's sample: large, medium, small."""
    skills = {"openai/large": 0.9, "org/medium": 0.5, "org/small": 0.1}
    return [fanoutqa_run(model, skill, seed) for seed, (model, skill) in enumerate(skills.items(), 1)]


def many_systems(number: int) -> list[Evaluation]:
    """Return a number of systems on FanOutQA, with unordered skills."""
    return [fanoutqa_run(f"org/system-{i}-instruct", ((i * 7) % number) / number, i) for i in range(number)]


def everything() -> list[Evaluation]:
    """Return evaluations on all four benchmarks."""
    return [*three_systems(), felm_run(), felm_run("org/other", seed=1), expertqa_run(), fastbook_run()]


def written(page: Path) -> Any:
    """Return the numbers next to a report's page."""
    return json.loads(page.with_name("report.json").read_text(encoding="utf-8"))
