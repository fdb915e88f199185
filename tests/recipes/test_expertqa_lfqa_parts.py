"""The recipe's prompts, settings, configurations and errors."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from qabench.errors import InputError, MissingExtra

CONFIGS = sorted((Path(__file__).parents[2] / "recipes" / "expertqa_lfqa" / "configs").glob("*.yaml"))


def prompting(recipe: SimpleNamespace, model: Path, **options: str) -> object:
    from transformers import AutoTokenizer

    return recipe.prompting.prompting_of(recipe.settings.Recipe(**options), AutoTokenizer.from_pretrained(model))


def test_official_prompt_is_the_authors(
    recipe: SimpleNamespace, models: SimpleNamespace, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from expertqa_scripts import executed, module

    stubs = {name: module(name) for name in ("torch", "data_utils")}
    authors = executed(mirror, "modeling/lfqa/run_sft_qa.py", stubs, __name__)["prepare_sample_text"]
    monkeypatch.setenv("QABENCH_MIRROR", str(mirror))
    ours = prompting(recipe, models.llama, prompt="official")
    question, answer = " Is it [QUESTION] or {question}?", "It is.\nYes."
    ids = ours.prompt_ids(question) + ours.answer_ids(question, answer)
    assert ours.tokenizer.decode(ids) == authors({"question": question, "answer": answer})
    assert [ids.count(ours.tokenizer.convert_tokens_to_ids(token)) for token in ("<s>", "</s>")] == [1, 1]
    assert ours.label.startswith("official-")


def test_chat_template(recipe: SimpleNamespace, models: SimpleNamespace) -> None:
    ours = prompting(recipe, models.qwen)
    decode = ours.tokenizer.decode
    assert decode(ours.prompt_ids("Why?")) == "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
    assert decode(ours.answer_ids("Why?", "So.")) == "So.<|im_end|>\n"
    assert decode(ours.stop_ids()) == "<|im_end|>"


def test_prompt_of_a_file(recipe: SimpleNamespace, models: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('system = "Be brief."\nuser = "Q: {question}"\n')
    ours = prompting(recipe, models.qwen, prompt=str(tmp_path / "p.toml"))
    text = ours.tokenizer.decode(ours.prompt_ids("Why?"))
    assert text.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nQ: Why?<|im_end|>")


def test_seq2seq_reads_the_question_alone(recipe: SimpleNamespace, models: SimpleNamespace) -> None:
    ours = prompting(recipe, models.flan, kind="seq2seq", max_source_length=4)
    assert ours.tokenizer.decode(ours.prompt_ids("  Why?")) == "Why</s>"
    assert ours.tokenizer.decode(ours.answer_ids("", "So.")) == "So.</s>"


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("llama", {}, "no chat template"),
        ("qwen", {"prompt": "official"}, "does not have its token <s>"),
        ("qwen", {"prompt": "question"}, "does not fit kind 'chat'"),
        ("flan", {"kind": "seq2seq", "prompt": "official"}, "does not fit kind 'seq2seq'"),
        ("flan", {"kind": "seq2seq", "prompt": "template"}, "does not fit kind 'seq2seq'"),
        ("qwen", {"chat_template_kwargs": "{"}, "allowed: JSON"),
    ],
)
def test_unfit_prompts(
    recipe: SimpleNamespace, models: SimpleNamespace, model: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        prompting(recipe, getattr(models, model), **options)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_configurations_are_read(recipe: SimpleNamespace, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # as if bitsandbytes were installed
    monkeypatch.setattr(recipe.train, "find_spec", lambda name: object())
    found, model, training = recipe.train.parsed(["--config", str(path), "--bf16", "false"])
    given = yaml.safe_load(path.read_text())
    assert (found.kind, model.model_name_or_path) == (given["kind"], given["model_name_or_path"])
    assert training.output_dir == f"outputs/{path.stem}" and training.seed == 42
    assert recipe.settings.settings_of(found, model, training)["training"]["learning_rate"] == given["learning_rate"]


@pytest.mark.parametrize("name", ["fsdp", "deepspeed_zero3", "multi_gpu"])
def test_accelerate_reads_its_configurations(recipe: SimpleNamespace, name: str) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    found = load_config_from_file(str(recipe.folder / "accelerate" / f"{name}.yaml"))
    assert (found.num_processes, found.mixed_precision) == (8, "bf16")


def test_quantization_needs_bitsandbytes(recipe: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe.train, "find_spec", lambda name: None)
    argv = ["--config", str(recipe.folder / "configs" / "qwen_qlora.yaml"), "--bf16", "false"]
    with pytest.raises(MissingExtra, match="pip install bitsandbytes"):
        recipe.train.parsed(argv)


def test_quantized_weights_are_not_trained(recipe: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe.train, "find_spec", lambda name: object())
    argv = ["--config", str(recipe.folder / "configs" / "qwen_qlora.yaml"), "--bf16", "false", "--use_peft", "false"]
    with pytest.raises(InputError, match="--use_peft true"):
        recipe.train.parsed(argv)


def test_fallback_to_verified_files(recipe: SimpleNamespace, mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(mirror))  # the tests' datasets library is offline
    rows = recipe.data.load_rows(recipe.settings.Recipe(), "test")
    assert (len(rows), rows.column_names) == (219, ["example_id", "question", "answer"])
    with pytest.raises(InputError, match="cannot load someone/else"):
        recipe.data.load_rows(recipe.settings.Recipe(dataset="someone/else"), "test")


def test_generation_checks_its_output(recipe: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({"id": "1", "answer": "a"}) + '\n{"id": "2", "ans')
    assert recipe.generate.answered(path, {"1", "2"}) == {"1"} and path.read_text().count("\n") == 1
    with pytest.raises(InputError, match="answers to other questions, such as 1"):
        recipe.generate.answered(path, {"2"})
