"""Answers ExpertQA's long-form questions.

Run ``python generate.py --model OUTPUT_DIR --output predictions.jsonl``. The file is what ``qabench
score expertqa --config lfqa_random`` reads. Prompt and decoding are as in the training run's
record. A model that was not trained here, for a baseline, needs ``--kind``. A killed run continues
when the same command is given again, and ends with the same answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from card import scores_table, write_card
from data import load_rows
from prompting import Prompting, prompting_of
from settings import DECODING, KINDS, RECORD, SEQ2SEQ, Recipe, read_record
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    HfArgumentParser,
    set_seed,
)

import qabench
from qabench.data.rows import read_json_lines
from qabench.errors import InputError, QabenchError
from qabench.models.loader import buckets, default_device
from qabench.prompts.prompt import Prompt

Batch = list[tuple[str, list[int]]]
"""Ids of questions with the tokens of their prompts."""


@dataclass
class Generation:
    """The command line."""

    model: str = field(
        metadata={"help": "The output folder of train.py, or any model (then give --kind)."}
    )
    output: str = field(metadata={"help": "The file of predictions, JSONL."})
    split: str = field(default="test", metadata={"help": "train, validation or test."})
    dataset_config: str | None = field(
        default=None, metadata={"help": "lfqa_random or lfqa_domain."}
    )
    questions: str | None = field(
        default=None, metadata={"help": "Custom questions instead of the dataset's."}
    )
    limit: int | None = field(default=None, metadata={"help": "Only the first questions."})
    batch_size: int = field(
        default=8, metadata={"help": "Questions per batch. With sampling it changes the answers."}
    )
    seed: int = field(default=0, metadata={"help": "Seed of sampling."})
    temperature: float | None = field(
        default=None, metadata={"help": "0 means greedy. Default: the record's."}
    )
    top_p: float | None = field(
        default=None, metadata={"help": "Nucleus sampling. Default: the record's."}
    )
    max_new_tokens: int | None = field(default=None, metadata={"help": "Default: the record's."})
    dtype: str = field(default="auto", metadata={"help": "auto, float32, bfloat16 or float16."})
    device_map: str | None = field(
        default=None, metadata={"help": "auto spreads a large model over several GPUs."}
    )
    kind: str | None = field(
        default=None, metadata={"help": "Of a model not trained here.", "choices": list(KINDS)}
    )
    prompt: str = field(
        default="", metadata={"help": "Of a model not trained here; as for train.py."}
    )
    chat_template_kwargs: str = field(
        default="{}", metadata={"help": "Of a model not trained here."}
    )


def main(argv: Sequence[str] | None = None) -> Path:
    """Write one line per question, and print the scores.

    They are also written into the card of a model that was trained here.

    Raises:
        InputError: a setting is not allowed, or the output file belongs to another command.
        SourceError: the data or the official prompt is not available.
    """
    (options,) = HfArgumentParser(Generation).parse_args_into_dataclasses(
        None if argv is None else list(argv)
    )
    recipe, stored, label = recipe_of(options)
    # A chat model continues its prompt, which must not end with padding.
    padding_side = "right" if recipe.kind == SEQ2SEQ else "left"
    tokenizer = AutoTokenizer.from_pretrained(options.model, padding_side=padding_side)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    prompting = prompting_of(recipe, tokenizer, stored)
    if label not in (None, prompting.label):
        raise InputError(
            f"the model was trained with the prompt {label}; this is {prompting.label}"
        )
    rows = load_rows(recipe, options.split, options.questions)
    if options.limit is not None:
        rows = rows.select(range(min(options.limit, len(rows))))
    path = Path(options.output)
    done = answered(path, {str(id) for id in rows["example_id"]})
    if len(done) < len(rows):
        network = load_network(options, recipe)
        todo = batches(prompting, rows, options.batch_size)

        texts = {str(row["example_id"]): row["question"] for row in rows}

        # The ids of lfqa_* start at 0 in each split, so that the text tells which split was answered.
        def answer(batch: Batch) -> Iterator[dict[str, Any]]:
            for line in answers(network, prompting, batch, options.seed):
                yield {"id": line["id"], "question": texts[line["id"]], **line}

        write_answers(path, todo, done, answer)
    report(options, recipe, path)
    return path


def recipe_of(options: Generation) -> tuple[Recipe, Prompt | None, str | None]:
    """Return the settings of the training run, or those of the command line without one.

    Returns:
        The settings, the text of a custom prompt, and the label of the prompt in training; the
        latter may be None.
    """
    if (Path(options.model) / RECORD).is_file():
        record = read_record(Path(options.model))
        recipe = Recipe(**record["settings"]["recipe"], **record["decoding"])
        text = record["prompt"]
        stored = None
        if text["user"]:
            name = f"file:{Path(recipe.prompt).name}"
            stored = Prompt(name, text["user"], text["system"])
        label = text["label"]
    elif options.kind is None:
        raise InputError(
            f"{options.model} is not the output of train.py; give --kind ({' or '.join(KINDS)})"
        )
    else:
        recipe = Recipe(
            kind=options.kind,
            prompt=options.prompt,
            chat_template_kwargs=options.chat_template_kwargs,
        )
        stored = label = None
    for name in ("dataset_config", "temperature", "top_p", "max_new_tokens"):
        if getattr(options, name) is not None:
            setattr(recipe, name, getattr(options, name))
    return recipe, stored, label


def batches(prompting: Prompting, rows: Any, size: int) -> list[Batch]:
    """Return all questions in batches of similar length; the same for every run of a command."""
    encoded = [(str(row["example_id"]), prompting.prompt_ids(row["question"])) for row in rows]
    lengths = [len(ids) for _, ids in encoded]
    in_batches = []
    for positions in buckets(lengths, size):
        in_batches.append([encoded[i] for i in positions])
    return in_batches


def answered(path: Path, ids: set[str]) -> set[str]:
    """Return the ids that the output file already has.

    A line that a killed process left unfinished is removed. Raises InputError if the file has
    answers to other questions.
    """
    if not path.is_file():
        return set()
    whole, newline, unfinished = path.read_bytes().rpartition(b"\n")
    if unfinished:
        with path.open("r+b") as file:
            file.truncate(len(whole + newline))
    done = {str(row.fields["id"]) for row in read_json_lines(path)}
    if done - ids:
        raise InputError(
            f"{path} has answers to other questions, such as {min(done - ids)}; give another --output"
        )
    return done


def write_answers(
    path: Path, todo: list[Batch], done: set[str], answer: Callable[[Batch], Iterable[Any]]
) -> None:
    """Append the answers batch by batch, so that a killed run loses one batch at most.

    A partly answered batch is answered again as a whole, since sampling draws for a whole batch.
    """
    total = sum(map(len, todo))
    path.parent.mkdir(parents=True, exist_ok=True)
    for count, batch in enumerate(todo, start=1):
        if all(id in done for id, _ in batch):
            continue
        lines = []
        for row in answer(batch):
            if row["id"] not in done:
                lines.append(json.dumps(row, ensure_ascii=False) + "\n")
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write("".join(lines))
        status = f"\rbatch {count} of {len(todo)}, {total} questions"
        print(status, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def answers(
    network: Any, prompting: Prompting, batch: Batch, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield the lines of the output for one batch."""
    recipe, tokenizer = prompting.recipe, prompting.tokenizer
    encoded = {"input_ids": [ids for _, ids in batch]}
    inputs = tokenizer.pad(encoded, return_tensors="pt").to(network.device)
    # Each batch has its own seed, so that a run that is continued draws the same numbers.
    first_id, _ = batch[0]
    set_seed(seed + int(first_id))
    decoding: dict[str, Any] = {"do_sample": False, "num_beams": 1}
    if recipe.temperature:
        # top_k is what transformers added to the authors' settings.
        decoding = {
            "do_sample": True,
            "temperature": recipe.temperature,
            "top_p": recipe.top_p,
            "top_k": 50,
        }
    stop = prompting.stop_ids()
    with torch.inference_mode():
        output = network.generate(
            **inputs,
            max_new_tokens=recipe.max_new_tokens,
            eos_token_id=stop,
            pad_token_id=tokenizer.pad_token_id,
            **decoding,
        )
    # A seq2seq model's output begins with its start token, a chat model's with the prompt.
    start = 1 if recipe.kind == SEQ2SEQ else inputs.input_ids.shape[1]
    new = output[:, start:]
    for (id, _), tokens in zip(batch, new.tolist(), strict=True):
        answer = tokenizer.decode(tokens, skip_special_tokens=True).strip()
        yield {"id": id, "answer": answer, "cut": not set(stop) & set(tokens)}


def load_network(options: Generation, recipe: Recipe) -> Any:
    """Return the model with its LoRA weights, if it has any, on the GPU if there is one."""
    auto = AutoModelForSeq2SeqLM if recipe.kind == SEQ2SEQ else AutoModelForCausalLM
    network = auto.from_pretrained(
        options.model, dtype=options.dtype, device_map=options.device_map
    )
    if not options.device_map:
        network = network.to(default_device())
    return network.eval()


def report(options: Generation, recipe: Recipe, path: Path) -> None:
    """Print the scores; write them into the card of a model that was trained here."""
    evaluation = qabench.evaluate_predictions(
        "expertqa",
        recipe.dataset_config,
        path,
        ["rouge"],
        questions=options.questions,
        split=options.split,
    )
    cut = sum(row.fields["cut"] for row in read_json_lines(path))
    print(scores_table(evaluation))
    print(
        f"{path}: {len(evaluation.records)} questions, {cut} answers cut at {recipe.max_new_tokens} tokens"
    )
    if (Path(options.model) / RECORD).is_file():
        decoding = {name: getattr(recipe, name) for name in DECODING}
        decoding["seed"] = options.seed
        decoding["cut"] = cut
        write_card(Path(options.model), evaluation, decoding)


if __name__ == "__main__":
    try:
        main()
    except QabenchError as error:
        sys.exit(f"error: {error}")
