"""Train a sequence-to-sequence model and keep the checkpoint with the best ROUGE-1 of a qabench
metric.

``flat=True`` makes the metric return only numbers, by names such as "rouge1", so that a Trainer can
log them and choose a checkpoint by one of them (``metric_for_best_model``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from datasets import Dataset, load_dataset
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    HfArgumentParser,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)

import qabench

DEFAULTS = {
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "predict_with_generate": True,
    "load_best_model_at_end": True,
    "metric_for_best_model": "rouge1",
    "greater_is_better": True,
}


@dataclass
class Data:
    """The model and the questions."""

    model: str = field(
        default="google/flan-t5-base", metadata={"help": "A name on the Hub, or a folder."}
    )
    train_file: str | None = field(
        default=None, metadata={"help": "JSONL with question and answer, instead of ExpertQA's."}
    )
    validation_file: str | None = field(
        default=None, metadata={"help": "The same for the questions that are scored."}
    )
    max_length: int = field(
        default=512, metadata={"help": "Tokens of a question, and of an answer."}
    )


def metric_function(tokenizer: Any, references: Sequence[str]) -> Callable[[Any], dict[str, float]]:
    """Return ``compute_metrics`` for a Trainer.

    Args:
        tokenizer: decodes the generated tokens.
        references: the whole reference answers, in the order of the evaluated questions. The
            Trainer's labels are cut at the maximum length, which would change the scores.
    """
    metric = qabench.load_metric("expertqa_lfqa")

    def compute(evaluated: Any) -> dict[str, float]:
        """Return the scores of the generated tokens. -100 is the Trainer's padding."""
        tokens = np.where(evaluated.predictions < 0, tokenizer.pad_token_id, evaluated.predictions)
        answers = tokenizer.batch_decode(tokens, skip_special_tokens=True)
        scores: dict[str, float] = metric.compute(
            predictions=answers, references=references, flat=True
        )
        return scores

    return compute


def questions(data: Data, split: str) -> Dataset:
    """Return the questions of a split, or of a custom file."""
    file = data.train_file if split == "train" else data.validation_file
    if file:
        return load_dataset("json", data_files=file, split="train")
    return qabench.load_dataset("expertqa", "lfqa_random", split=split)


def main(arguments: Sequence[str] | None = None) -> Seq2SeqTrainer:
    """Train, and return the trainer, whose model is the best checkpoint."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = HfArgumentParser((Data, Seq2SeqTrainingArguments))
    parser.set_defaults(**DEFAULTS)
    data, settings = parser.parse_args_into_dataclasses(given)
    tokenizer = AutoTokenizer.from_pretrained(data.model)
    model = AutoModelForSeq2SeqLM.from_pretrained(data.model)

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        """Return the tokens of a question and its answer."""
        options = {"truncation": True, "max_length": data.max_length}
        return {
            "input_ids": tokenizer(row["question"], **options)["input_ids"],
            "labels": tokenizer(text_target=row["answer"], **options)["input_ids"],
        }

    parts = {split: questions(data, split) for split in ("train", "validation")}
    encoded = {
        split: rows.map(encode, remove_columns=rows.column_names) for split, rows in parts.items()
    }
    trainer = Seq2SeqTrainer(
        model=model,
        args=settings,
        train_dataset=encoded["train"],
        eval_dataset=encoded["validation"],
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        processing_class=tokenizer,
        compute_metrics=metric_function(tokenizer, list(parts["validation"]["answer"])),
    )
    trainer.train()
    return trainer


if __name__ == "__main__":
    main()
