"""Fine-tunes a model on ExpertQA's long-form questions: ``python train.py --config
configs/qwen_lora.yaml``.

Every setting of the YAML file can be changed on the command line. A killed run continues when the
same command is given again. Several GPUs: ``accelerate launch --config_file accelerate/fsdp.yaml
train.py --config ...``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from card import write_card
from data import digest_of, load_rows
from prompting import Prompting, prompting_of
from settings import CHAT, DECODING, SEQ2SEQ, Recipe, check_same_settings, settings_of, write_record
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
    TrainerState,
    set_seed,
)
from trl import (
    ModelConfig,
    SFTConfig,
    SFTTrainer,
    TrlParser,
    get_peft_config,
    get_quantization_config,
)

from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.models.loader import locate

IGNORED = -100  # the label of a token that the loss does not count
ARGUMENTS = {SEQ2SEQ: Seq2SeqTrainingArguments, CHAT: SFTConfig}


def main(argv: Sequence[str] | None = None, callbacks: Sequence[TrainerCallback] = ()) -> Path:
    """Trains, and writes model, tokenizer, record and card to ``--output_dir``.

    Args:
        argv: the command line; None means ``sys.argv``.
        callbacks: added to the trainer's.

    Returns:
        The output folder.

    Raises:
        InputError: a setting is not allowed, or differs from the run to be continued.
        MissingExtra: 4-bit or 8-bit weights are asked for without bitsandbytes.
        SourceError: the data or the official prompt is not available.
    """
    recipe, model, training = parsed(argv)
    folder = Path(training.output_dir)
    name = model.model_name_or_path
    source = locate(name if Path(name).is_dir() else f"{name}@{model.model_revision}")
    model.model_revision = source.commit or "main"  # of a folder, where it is not used
    checkpoint = (
        last_checkpoint(folder)
        if training.resume_from_checkpoint is None
        else training.resume_from_checkpoint
    )
    settings = settings_of(recipe, model, training)
    if checkpoint:
        check_same_settings(folder, settings)
    trainer, prompting, data = trainer_of(recipe, model, training)
    for callback in callbacks:
        trainer.add_callback(callback)
    record = {
        "model": model.model_name_or_path,
        "revision": source.version,
        "settings": settings,
        "prompt": {"label": prompting.label, "user": None, "system": None},
        "decoding": {name: getattr(recipe, name) for name in DECODING},
        "data": data,
    }
    if Path(
        recipe.prompt
    ).is_file():  # a custom prompt; the official one is read from its pinned file
        record["prompt"] |= {"user": prompting.prompt.user, "system": prompting.prompt.system}
    if trainer.is_world_process_zero():
        write_record(folder, record)
    start = time.monotonic()
    trainer.train(resume_from_checkpoint=checkpoint)
    _save(trainer)
    if trainer.is_world_process_zero():
        result = {
            "seconds": round(time.monotonic() - start, 1),
            "continued_from": checkpoint and Path(checkpoint).name,
        }
        write_record(folder, record | {"result": result | _result(trainer)})
        write_card(folder)
    return folder


def parsed(argv: Sequence[str] | None) -> tuple[Recipe, ModelConfig, Any]:
    """Return the settings of recipe, model with LoRA, and trainer, from YAML file and command line."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    # The kind of model decides which trainer's settings are allowed.
    (recipe, *_) = TrlParser(Recipe).parse_args_and_config(arguments, return_remaining_strings=True)
    parser = TrlParser((Recipe, ModelConfig, ARGUMENTS[recipe.kind]))
    recipe, model, training = parser.parse_args_and_config(arguments)
    if not model.model_name_or_path:
        raise InputError(
            "no model is given; use --model_name_or_path with a name on the Hub or a folder"
        )
    if (model.load_in_4bit or model.load_in_8bit) and not find_spec("bitsandbytes"):
        raise MissingExtra(
            "4-bit and 8-bit weights (QLoRA) need bitsandbytes: pip install bitsandbytes"
        )
    if (model.load_in_4bit or model.load_in_8bit) and not model.use_peft:
        raise InputError(
            "4-bit and 8-bit weights cannot be trained themselves; add --use_peft true"
        )
    return recipe, model, training


def last_checkpoint(folder: Path) -> str | None:
    """Return the newest checkpoint that was written completely; None if there is none.

    A process that is killed while it saves leaves a checkpoint without the trainer's state, which
    is written last.
    """
    numbered = sorted(
        folder.glob("checkpoint-*"),
        key=lambda path: int(path.name.rpartition("-")[2]),
        reverse=True,
    )
    for path in numbered:
        try:
            TrainerState.load_from_json(str(path / "trainer_state.json"))
        except (OSError, ValueError, TypeError):
            continue
        return str(path)
    return None


def trainer_of(
    recipe: Recipe, model: ModelConfig, training: Any
) -> tuple[Any, Prompting, dict[str, Any]]:
    """Return the trainer, the prompting, and what the record says of the data."""
    tokenizer = AutoTokenizer.from_pretrained(
        model.model_name_or_path, revision=model.model_revision
    )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    prompting = prompting_of(recipe, tokenizer)
    rows = {"train": load_rows(recipe, "train", recipe.train_file)}
    if training.eval_strategy != "no":
        rows["validation"] = load_rows(recipe, "validation", recipe.validation_file)
    data: dict[str, Any] = {"dataset": recipe.dataset, "config": recipe.dataset_config}
    if recipe.train_file:
        data["file"] = Path(recipe.train_file).name
    data |= {name: {"rows": len(part), "digest": digest_of(part)} for name, part in rows.items()}
    make, encode = (_seq2seq, _pair) if recipe.kind == SEQ2SEQ else (_chat, _sequence)
    whole = recipe.kind == CHAT and training.completion_only_loss is False
    with training.main_process_first():
        encoded = {
            name: part.map(
                lambda row: encode(prompting, row, whole), remove_columns=part.column_names
            )
            for name, part in rows.items()
        }
    return make(model, training, tokenizer, encoded), prompting, data


def _pair(prompting: Prompting, row: dict[str, Any], whole: bool) -> dict[str, list[int]]:
    answer = prompting.answer_ids(row["question"], row["answer"])
    return {"input_ids": prompting.prompt_ids(row["question"]), "labels": answer}


def _sequence(prompting: Prompting, row: dict[str, Any], whole: bool) -> dict[str, list[int]]:
    prompt = prompting.prompt_ids(row["question"])
    answer = prompting.answer_ids(row["question"], row["answer"])
    return {
        "input_ids": prompt + answer,
        "labels": (prompt if whole else [IGNORED] * len(prompt)) + answer,
    }


def _chat(model: ModelConfig, training: Any, tokenizer: Any, data: dict[str, Any]) -> SFTTrainer:
    training.model_init_kwargs = _model_options(model) | (training.model_init_kwargs or {})
    return SFTTrainer(
        model=model.model_name_or_path,
        args=training,
        train_dataset=data["train"],
        eval_dataset=data.get("validation"),
        processing_class=tokenizer,
        quantization_config=get_quantization_config(model),
        peft_config=get_peft_config(model),
    )


def _seq2seq(
    model: ModelConfig, training: Any, tokenizer: Any, data: dict[str, Any]
) -> Seq2SeqTrainer:
    set_seed(training.seed)  # before LoRA's weights are drawn
    options = _model_options(model)
    if quantization := get_quantization_config(model):
        options["quantization_config"] = quantization
    network = AutoModelForSeq2SeqLM.from_pretrained(model.model_name_or_path, **options)
    if model.use_peft:
        from peft import get_peft_model, prepare_model_for_kbit_training

        model.lora_task_type = "SEQ_2_SEQ_LM"
        if quantization:
            network = prepare_model_for_kbit_training(network, training.gradient_checkpointing)
        network = get_peft_model(network, get_peft_config(model))
        if training.gradient_checkpointing:
            network.enable_input_require_grads()
    return Seq2SeqTrainer(
        model=network,
        args=training,
        train_dataset=data["train"],
        eval_dataset=data.get("validation"),
        processing_class=tokenizer,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=network, label_pad_token_id=IGNORED),
    )


def _model_options(model: ModelConfig) -> dict[str, Any]:
    options = {
        "revision": model.model_revision,
        "dtype": model.dtype,
        "attn_implementation": model.attn_implementation,
    }
    return {name: value for name, value in options.items() if value is not None}


def _save(trainer: Any) -> None:
    if trainer.is_fsdp_enabled:  # one file that from_pretrained reads, whatever the checkpoints are
        trainer.accelerator.state.fsdp_plugin.set_state_dict_type("FULL_STATE_DICT")
    trainer.save_model()


def _result(trainer: Any) -> dict[str, Any]:
    """Steps, losses and devices, from the trainer's log."""
    log = trainer.state.log_history
    losses = [entry["loss"] for entry in log if "loss" in entry]
    validation = [entry["eval_loss"] for entry in log if "eval_loss" in entry]
    return {
        "steps": trainer.state.global_step,
        "epochs": trainer.state.epoch,
        "first_loss": losses[0] if losses else None,
        "last_loss": losses[-1] if losses else None,
        "validation_loss": validation[-1] if validation else None,
        "processes": trainer.accelerator.num_processes,
        "device": trainer.accelerator.device.type,
    }


if __name__ == "__main__":
    try:
        main()
    except QabenchError as error:
        sys.exit(f"error: {error}")
