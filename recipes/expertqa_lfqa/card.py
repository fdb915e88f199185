"""The model card: data, prompt, training, decoding and scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from settings import SEQ2SEQ, read_record

from qabench.evaluation import Evaluation

PAPER = "https://arxiv.org/abs/2309.07852"


def write_card(
    folder: Path, evaluation: Evaluation | None = None, decoding: dict[str, Any] | None = None
) -> Path:
    """Write ``README.md`` into the output folder of ``train.py``.

    Args:
        folder: the output folder.
        evaluation: the scores of answers of the model; None if it has not answered yet.
        decoding: how the answers were generated.
    """
    record = read_record(folder)
    card = ModelCard(
        f"---\n{_data(folder, record, evaluation).to_yaml()}\n---\n\n{_text(folder, record)}"
    )
    if evaluation is not None:
        card.text += _scores(evaluation, decoding or {})
    path = folder / "README.md"
    card.save(path)
    return path


def scores_table(evaluation: Evaluation) -> str:
    """Return the scores with 95% intervals, as a Markdown table."""
    lines = ["| score | value | 95% interval | n | not official because |", "|---|--:|--:|--:|---|"]
    for name, score in evaluation.scores().items():
        deviations = "; ".join(evaluation.deviations(score)) or "it is official"
        lines.append(
            f"| {name} | {score.interval.mean:.4f} | {score.interval.bounds()} | {score.n} | {deviations} |"
        )
    return "\n".join(lines)


def _data(folder: Path, record: dict[str, Any], evaluation: Evaluation | None) -> ModelCardData:
    results = []
    if evaluation is not None:
        split = str(evaluation.arguments.get("split"))
        for name, score in evaluation.scores().items():
            result = EvalResult(
                task_type="question-answering",
                dataset_type=record["data"]["dataset"],
                dataset_name="ExpertQA",
                dataset_config=evaluation.config,
                dataset_split=split,
                metric_type="rouge",
                metric_name=name,
                metric_value=round(score.interval.mean, 6),
            )
            results.append(result)
    is_seq2seq = record["settings"]["recipe"]["kind"] == SEQ2SEQ
    pipeline = "text2text-generation" if is_seq2seq else "text-generation"
    library = "peft" if record["settings"]["model"]["use_peft"] else "transformers"
    return ModelCardData(
        base_model=record["model"],
        datasets=[record["data"]["dataset"]],
        language="en",
        library_name=library,
        pipeline_tag=pipeline,
        tags=["expertqa", "long-form-qa"],
        model_name=folder.resolve().name,
        eval_results=results or None,
    )


def _text(folder: Path, record: dict[str, Any]) -> str:
    data, result = record["data"], record.get("result", {})
    settings = record["settings"]["training"] | record["settings"]["model"]
    splits = []
    for name in ("train", "validation"):
        if name in data:
            split = data[name]
            splits.append(f"{name} {split['rows']} rows (digest `{split['digest']}`)")
    versions = [f"{name} {version}" for name, version in record["versions"].items()]
    prompt = record["prompt"]
    return f"""# {folder.resolve().name}

`{record["model"]}` (revision `{record["revision"]}`), fine-tuned on the long-form questions of
[ExpertQA]({PAPER}) with qabench's recipe `expertqa_lfqa`.

## Data

{_data_text(data)}: {", ".join(splits)}.

## Prompt

`{prompt["label"]}`{_prompt_text(prompt)}

## Training

{_table(settings)}

{_table(result)}

Versions: {", ".join(versions)}.

## Limits

The model answers from memory, without sources. Do not use its answers as medical, legal or other professional advice.
"""


def _data_text(data: dict[str, Any]) -> str:
    if "file" in data:
        return f"The custom file `{data['file']}`, in the format of `{data['dataset']}`"
    return (
        "Answers of GPT-4 and Bing Chat that experts revised, which can still contain errors.\n"
        f"`{data['dataset']}`, config `{data['config']}`"
    )


def _prompt_text(prompt: dict[str, Any]) -> str:
    text = ""
    for role in ("system", "user"):
        if prompt[role]:
            text += f"\n\n{role}:\n\n```text\n{prompt[role]}\n```"
    return text


def _scores(evaluation: Evaluation, decoding: dict[str, Any]) -> str:
    options = ", ".join(f"{name} {value}" for name, value in decoding.items())
    signatures = "\n".join(f"- `{line}`" for line in evaluation.signatures.values())
    return f"""
## Scores

{len(evaluation.records)} questions of `{evaluation.config}`, split {evaluation.arguments.get("split")}.
Decoding: {options}.

{scores_table(evaluation)}

{signatures}
"""


def _table(values: dict[str, Any]) -> str:
    rows = [f"| {name} | {value} |" for name, value in values.items() if value is not None]
    return "\n".join(["| setting | value |", "|---|---|", *rows])
