"""The recipe's own settings, and the record of a run: everything that its result depends on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.io.files import write_json

SEQ2SEQ, CHAT = KINDS = ("seq2seq", "chat")
RECORD = "recipe.json"
# Settings of the trainers and of PEFT that change the trained weights.
TRAINING = (
    *(
        "adam_beta1",
        "adam_beta2",
        "adam_epsilon",
        "bf16",
        "completion_only_loss",
        "data_seed",
        "fp16",
    ),
    *(
        "gradient_accumulation_steps",
        "label_smoothing_factor",
        "learning_rate",
        "lr_scheduler_type",
        "max_grad_norm",
    ),
    *("max_length", "max_steps", "num_train_epochs", "optim", "packing", "packing_strategy"),
    *("per_device_train_batch_size", "seed", "warmup_steps", "weight_decay"),
)
MODEL = (
    *(
        "dtype",
        "load_in_4bit",
        "load_in_8bit",
        "bnb_4bit_quant_type",
        "use_bnb_nested_quant",
        "use_peft",
        "lora_r",
    ),
    *(
        "lora_alpha",
        "lora_dropout",
        "lora_target_modules",
        "lora_modules_to_save",
        "use_rslora",
        "use_dora",
    ),
)
DECODING = ("temperature", "top_p", "max_new_tokens")


@dataclass
class Recipe:
    """The settings of the recipe itself. The trainer, the model and LoRA have the settings of TRL
    and transformers.
    """

    kind: str = field(
        default=CHAT,
        metadata={
            "help": "seq2seq (FLAN-T5) or chat (Llama, Vicuna, Qwen).",
            "choices": list(KINDS),
        },
    )
    prompt: str = field(
        default="",
        metadata={
            "help": "question (default of seq2seq), template (the model's chat template, default of chat), official "
            "(the authors' prompt for Llama 2 and Vicuna), or a file with {question}: text, or TOML with user and "
            "system."
        },
    )
    chat_template_kwargs: str = field(
        default="{}",
        metadata={"help": 'JSON for the chat template, such as {"enable_thinking": false}.'},
    )
    dataset: str = field(default="qabench/expertqa", metadata={"help": "The dataset."})
    dataset_config: str = field(
        default="lfqa_random", metadata={"help": "lfqa_random or lfqa_domain."}
    )
    train_file: str | None = field(
        default=None,
        metadata={
            "help": "Custom questions to train on: JSONL with example_id, context, question, answer."
        },
    )
    validation_file: str | None = field(
        default=None, metadata={"help": "Custom questions for the validation loss."}
    )
    max_source_length: int = field(
        default=512, metadata={"help": "seq2seq: tokens after which a question is cut."}
    )
    max_target_length: int = field(
        default=512, metadata={"help": "seq2seq: tokens after which an answer is cut."}
    )
    temperature: float = field(
        default=0.0, metadata={"help": "For generate.py: 0 means greedy decoding."}
    )
    top_p: float = field(default=1.0, metadata={"help": "For generate.py: nucleus sampling."})
    max_new_tokens: int = field(
        default=1024, metadata={"help": "For generate.py: the longest answer, in tokens."}
    )

    def __post_init__(self) -> None:
        self.prompt = self.prompt or ("question" if self.kind == SEQ2SEQ else "template")
        try:
            self.template_arguments: dict[str, Any] = json.loads(self.chat_template_kwargs)
        except ValueError as error:
            raise InputError(
                f"chat_template_kwargs is {self.chat_template_kwargs!r}; allowed: JSON ({error})"
            ) from None


def settings_of(recipe: Recipe, model: Any, training: Any) -> dict[str, Any]:
    """Return the settings that a run's weights depend on, as JSON values."""
    values = {name: getattr(training, name) for name in TRAINING if hasattr(training, name)}
    values = {
        name: getattr(value, "value", value) for name, value in values.items()
    }  # enums by their values
    return {
        "recipe": {name: value for name, value in asdict(recipe).items() if name not in DECODING},
        "model": {
            name: getattr(model, name) for name in ("model_name_or_path", "model_revision", *MODEL)
        },
        "training": values,
    }


def check_same_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Check that a run to be continued has the settings it was started with.

    Raises:
        InputError: a setting differs; names it with both values.
    """
    path = folder / RECORD
    if not path.is_file():
        return
    before = read_record(folder)["settings"]
    plain = json.loads(json.dumps(settings))
    changed = [
        f"{part}.{name}: {before.get(part, {}).get(name)!r}, now {value!r}"
        for part, values in plain.items()
        for name, value in values.items()
        if before.get(part, {}).get(name) != value
    ]
    if changed:
        raise InputError(
            f"{folder} has checkpoints of a run with other settings ({'; '.join(changed)}). "
            "Give the same settings to continue it, or another --output_dir"
        )


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record of a run. Raises InputError if the folder has none."""
    try:
        record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder} is not the output of train.py: {RECORD} cannot be read ({error})"
        ) from None
    return record


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write the record of a run, with the versions of the packages."""
    names = ("qabench", "torch", "transformers", "trl", "peft", "accelerate", "datasets")
    write_json(
        folder / RECORD, record | {"versions": {name: metadata.version(name) for name in names}}
    )
