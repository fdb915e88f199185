"""Evaluations for reports: scored answers of synthetic models, on the samples or on real questions."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from answer_styles import STYLES, answers

from qabench.answers import loads
from qabench.benchmarks import benchmark as benchmark_of
from qabench.benchmarks.fanoutqa import BENCHMARK
from qabench.benchmarks.fanoutqa.questions import Questions, read_questions
from qabench.benchmarks.fastbook.retrieval import parse_method
from qabench.benchmarks.fastbook.study import load_study
from qabench.benchmarks.fastbook.study import run as retrieve
from qabench.benchmarks.felm.scores import felm_scores
from qabench.data.predictions import Predictions, read_predictions
from qabench.data.rows import read_json_lines
from qabench.evaluation import ANSWERED, FAILED, Evaluation, Message, Record
from qabench.loading_scripts import dataset_table, open_path
from qabench.loading_scripts.expertqa.parse import parse_annotated
from qabench.loading_scripts.felm.parse import read_rows

INSTRUCTION = "Answer the question with what you know. Give the answer only, one item a line. The date is 11-20-2023."


def run_of(benchmark: str, config: str, setting: str, model: str, records: Sequence[Record], **more: Any) -> Evaluation:
    """A finished run with these records, but for what ``more`` says otherwise."""
    about: dict[str, Any] = {
        "path": f"logs/{model.rpartition('/')[2]}.eval",
        "task": f"{benchmark}_{setting.replace('-', '_')}",
        "created": "2026-03-01T10:00:00+00:00",
        "status": "success",
        "expected": len(records),
        "signatures": {benchmark: f"{benchmark}|config:{config}|qabench:0"},
        "arguments": {"config": config, "temperature": 0.0, "max_tokens": 520},
    }
    about |= benchmark_of(benchmark).scoring()
    return Evaluation(config=config, setting=setting, model=model, records=records, **about | more)


def conversation(prompt: str, reply: str | None) -> list[Message]:
    """A model's prompt and reply."""
    said = [Message("system", INSTRUCTION), Message("user", prompt)]
    return [*said, Message("assistant", reply)] if reply is not None else said


def mixed_answers(questions: Questions, skill: float, seed: int) -> Predictions:
    """Correct answers with probability ``skill``, else answers in a wrong style; some are missing."""
    plain = [{"question": row["question"], "answer": loads(row["answer"])} for row in questions.rows]
    by_style = [answers(plain, style, seed) for style in STYLES]
    made = []
    for i, row in enumerate(questions.rows):
        rng = random.Random(f"{seed}/{i}")
        style = rng.choice((0, 1)) if rng.random() < skill else rng.randrange(len(STYLES))
        if rng.random() > 0.02:
            made.append({"id": row["id"], "answer": by_style[style][i]})
    return read_predictions(made)


def fanoutqa_run(
    config: str = "sample",
    model: str = "openai/imaginary-1",
    skill: float = 0.5,
    seed: int = 0,
    questions: Questions | None = None,
    **more: Any,
) -> Evaluation:
    """FanOutQA, closed-book, scored as ``qabench score`` does it, with simplemma's lemmas."""
    questions = questions or read_questions(config)
    scored = BENCHMARK.evaluate(questions.config, mixed_answers(questions, skill, seed), lemmatizer="simplemma")
    records = [
        replace(
            record,
            messages=conversation(record.question, record.answer),
            problem="the server closed the connection 5 times" if record.status == FAILED else None,
            input_tokens=60 + len(record.question) // 4,
            output_tokens=len(record.answer or "") // 4,
            seconds=0.4 + len(record.answer or "") / 500,
        )
        for record in scored.records
    ]
    given: dict[str, Any] = {"signatures": scored.signatures} | more
    return run_of("fanoutqa", questions.config, "closed-book", model, records, **given)


def felm_run(
    config: str = "sample", model: str = "openai/imaginary-1", skill: float = 0.7, seed: int = 0, **more: Any
) -> Evaluation:
    """FELM with a synthetic evaluator that gives each segment's label with probability ``skill``."""
    ((file,),) = dataset_table("felm").config(config).splits.values()
    records = []
    for row in read_rows(open_path("felm", file), config):
        rng = random.Random(f"{seed}/{row['index']}")
        verdicts = [label if rng.random() < skill else not label for label in row["labels"]]
        wrong = [str(i) for i, verdict in enumerate(verdicts, 1) if not verdict]
        reply = f"Answer: {', '.join(wrong)}" if wrong else "ALL_CORRECT"
        segments = felm_scores([row["labels"]], [verdicts]).per_question[0].segments
        types = row["type"] or [None] * len(verdicts)
        texts = row["segmented_response"]
        shown = "\n".join(f"{i}. {text}" for i, text in enumerate(texts, 1))
        parts = zip(texts, row["labels"], verdicts, types, row["comment"], strict=True)
        keys = ("text", "label", "verdict", "type", "comment")
        records.append(
            Record(
                id=row["index"],
                epoch=1,
                question=row["prompt"],
                reference="",
                messages=conversation(f"{row['prompt']}\n\n{shown}", reply),
                answer=reply,
                status=ANSWERED,
                scores={name: float(getattr(segments, name)) for name in ("tp", "tn", "fp", "fn")},
                groups={"domain": (row["domain"],)},
                detail={"segments": [dict(zip(keys, part, strict=True)) for part in parts], "replies": [reply]},
                input_tokens=300,
                output_tokens=8,
                seconds=0.5,
            )
        )
    return run_of("felm", config, "raw", model, records, **more)


def expertqa_run(model: str = "openai/imaginary-1", seed: int = 0, **more: Any) -> Evaluation:
    """ExpertQA's sample, with labels of a synthetic judge for all claims."""
    rows = [parse_annotated(row) for row in read_json_lines(open_path("expertqa", "./sample/answers.jsonl"))]
    records = []
    for i, row in enumerate(rows):
        answer = row["answers"][0]
        rng = random.Random(f"{seed}/{i}")
        claims = [
            {"text": claim["claim_string"], "evidence": claim["evidence"], "label": rng.choice(("Y", "N", None))}
            for claim in answer["claims"]
        ]
        records.append(
            Record(
                id=f"q{i}",
                epoch=1,
                question=row["question"],
                reference=answer["revised_answer_string"] or "",
                messages=conversation(row["question"], answer["answer_string"]),
                answer=answer["answer_string"],
                status=ANSWERED,
                scores=_of_claims(claims),
                groups={
                    "field": (row["metadata"]["field"],),
                    "question_type": tuple(row["metadata"]["question_type"]),
                },
                detail={
                    "claims": claims,
                    "passages": [{"id": str(n), "text": text} for n, text in enumerate(answer["attribution"], 1)],
                },
            )
        )
    return run_of("expertqa", "sample", "retrieve-and-read", model, records, **more)


def _of_claims(claims: Sequence[dict[str, Any]]) -> dict[str, float]:
    labels = [claim["label"] for claim in claims if claim["label"]]
    counts = {
        "claims": len(claims),
        "claims_with_evidence": sum(bool(claim["evidence"]) for claim in claims),
        "claims_counted": len(labels),
        "claims_supported": labels.count("Y"),
    }
    scores = {name: float(count) for name, count in counts.items()}
    return scores | ({"autoais_macro": labels.count("Y") / len(labels)} if labels else {})


def fastbook_run(
    config: str = "sample", model: str = "openai/imaginary-1", method: str = "bm25", k: int = 10, **more: Any
) -> Evaluation:
    """fastbook with the results of a method of ``qabench fastbook retrieve``."""
    study = load_study(config, 100 if config == "sample" else 500)
    outcome = retrieve(study, parse_method(method, None, "", ""), k)
    records = []
    for row, hits, ranks, *scores in zip(
        study.questions, outcome.hits, outcome.scores.ranks, *outcome.columns.values(), strict=True
    ):
        texts = [study.corpus[row["chapter"]][position] for position in hits.positions]
        components = [
            {"text": component["answer_component"], "contexts": list(component["context"]), "rank": rank}
            for component, rank in zip(row["answer_context"], ranks or (), strict=True)
        ]
        passages = [
            {"id": f"{row['chapter']}-{position}", "text": text, "score": float(score)}
            for position, text, score in zip(hits.positions, texts, hits.scores, strict=True)
        ]
        records.append(
            Record(
                id=row["id"],
                epoch=1,
                question=row["question_text"],
                reference=row["gold_standard_answer"],
                messages=conversation("\n\n".join([*texts[:3], row["question_text"]]), texts[0][:300]),
                answer=texts[0][:300],
                status=ANSWERED,
                scores=dict(zip(outcome.columns, scores, strict=True)),
                groups={"chapter": (f"chapter {row['chapter']}",)},
                detail={"passages": passages, "components": components, "k": k},
            )
        )
    return run_of("fastbook", config, "rag", model, records, **more)


def hostile_run(texts: Sequence[str], **more: Any) -> Evaluation:
    """A run with these texts in all fields, including the model's name."""
    records = [
        Record(
            id=f"id {text[:40]}",
            epoch=1,
            question=text,
            reference=text,
            messages=[Message(text[:20], text)],
            answer=text,
            status=ANSWERED,
            problem=text,
            scores={"acc.loose": 0.5},
            groups={"category": (text[:60],)},
            detail={"found": [text[:60]], "missing": [text]},
        )
        for text in texts
    ]
    about: dict[str, Any] = {"signatures": {texts[0]: texts[0]}, "arguments": {"a": texts[0]}}
    return run_of("fanoutqa", "dev", "closed-book", texts[0], records, **about | more)


def enlarged(run: Evaluation, size: int) -> Evaluation:
    """The run with its records repeated, under other ids, until there are ``size``."""
    many = [replace(run.records[i % len(run.records)], id=f"{i:04}") for i in range(size)]
    return replace(run, records=many, expected=size)


def three_systems() -> list[Evaluation]:
    """Three systems on FanOutQA's sample: large, medium, small."""
    skills = {"openai/large": 0.9, "org/medium": 0.5, "org/small": 0.1}
    return [fanoutqa_run(model=model, skill=skill, seed=i) for i, (model, skill) in enumerate(skills.items(), 1)]


def many_systems(number: int, config: str = "sample") -> list[Evaluation]:
    """A number of systems on FanOutQA, with unordered skills."""
    questions = read_questions(config)
    sizes = ("1b", "3b", "8b", "14b", "32b", "70b")
    return [
        fanoutqa_run(
            model=f"org/{'abcdefghij'[i % 10] * 3}{i // 10 + 1}-{sizes[i % 6]}-instruct",
            skill=0.15 + 0.7 * ((i * 7) % number) / number,
            seed=i,
            questions=questions,
        )
        for i in range(number)
    ]


def everything() -> list[Evaluation]:
    """Evaluations on all four benchmarks."""
    return [*three_systems(), felm_run(), felm_run(model="org/other", seed=1), expertqa_run(), fastbook_run()]


def written(page: Path) -> Any:
    """The numbers next to a report's page."""
    return json.loads(page.with_name("report.json").read_text(encoding="utf-8"))
