"""The fine-tuning recipe as its user runs it, on tiny models: train, kill, continue, answer, score."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from qabench.cli import app
from qabench.errors import InputError

KINDS = ("seq2seq", "chat")
CONFIGS = {"seq2seq": ("flan_t5_base.yaml", "flan"), "chat": ("qwen_lora.yaml", "qwen")}
STEPS = 24
KILL_AT_STEP = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import torch, train
from transformers import TrainerCallback
torch.set_num_threads(1)
class Kill(TrainerCallback):
    def on_step_end(self, args, state, control, **options):
        if state.global_step == 11:
            os.kill(os.getpid(), signal.SIGKILL)
train.main(sys.argv[2:], [Kill()])
"""


def command(kind: str, recipe: SimpleNamespace, models: SimpleNamespace, questions: Path, folder: Path) -> list[str]:
    """The command line of a training run: a config of the recipe, and what makes it small."""
    config, model = CONFIGS[kind]
    given = {
        "config": recipe.folder / "configs" / config, "model_name_or_path": getattr(models, model), "dtype": "float32",
        "bf16": False, "train_file": questions, "validation_file": questions, "max_steps": STEPS, "eval_strategy": "no",
        "save_steps": 5, "logging_steps": 4, "learning_rate": 0.02, "warmup_steps": 0, "gradient_accumulation_steps": 1,
        "chat_template_kwargs": "{}", "max_new_tokens": 30, "disable_tqdm": True, "output_dir": folder,
    }  # fmt: skip
    return [part for name, value in given.items() for part in (f"--{name}", str(value))]


def weights(folder: Path) -> dict[str, object]:
    from safetensors.torch import load_file

    (path,) = folder.glob("*.safetensors")
    return load_file(path)


@pytest.fixture(scope="module", params=KINDS)
def trained(
    request: pytest.FixtureRequest,
    recipe: SimpleNamespace,
    models: SimpleNamespace,
    questions: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> SimpleNamespace:
    """An undisturbed run."""
    folder = tmp_path_factory.mktemp(request.param) / "undisturbed"
    recipe.train.main(command(request.param, recipe, models, questions, folder))
    return SimpleNamespace(kind=request.param, folder=folder)


def test_loss_falls(trained: SimpleNamespace) -> None:
    result = json.loads((trained.folder / "recipe.json").read_text())["result"]
    assert result["steps"] == STEPS and result["last_loss"] < 0.7 * result["first_loss"]


def test_killed_run_ends_with_same_weights(
    trained: SimpleNamespace, recipe: SimpleNamespace, models: SimpleNamespace, questions: Path
) -> None:
    import torch

    folder = trained.folder.parent / "killed"
    argv = command(trained.kind, recipe, models, questions, folder)
    killed = subprocess.run([sys.executable, "-c", KILL_AT_STEP, str(recipe.folder), *argv], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert recipe.train.last_checkpoint(folder) == str(folder / "checkpoint-10")
    (folder / "checkpoint-15").mkdir()  # as if it had been killed while saving
    recipe.train.main(argv)
    record = json.loads((folder / "recipe.json").read_text())
    assert record["result"]["continued_from"] == "checkpoint-10"
    expected, found = weights(trained.folder), weights(folder)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_answers_are_scored(trained: SimpleNamespace, recipe: SimpleNamespace, questions: Path) -> None:
    path = trained.folder.parent / "predictions.jsonl"
    argv = ["--model", str(trained.folder), "--output", str(path), "--questions", str(questions)]
    recipe.generate.main(argv)
    assert "It is a number" in path.read_text()
    options = ["score", "expertqa", str(path), "--config", "lfqa_random", "--questions", str(questions), "--json"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    assert "rougeL" in done.stdout
    card = (trained.folder / "README.md").read_text()
    for said in ("base_model:", "rougeLsum", "24 questions", "Decoding: temperature 0.0", "digest"):
        assert said in card


def test_killed_generation_has_same_answers(trained: SimpleNamespace, recipe: SimpleNamespace, questions: Path) -> None:
    folder = trained.folder.parent
    argv = ["--model", str(trained.folder), "--questions", str(questions), "--temperature", "0.9", "--top_p", "0.9"]
    whole = recipe.generate.main([*argv, "--output", str(folder / "whole.jsonl")])
    lines = whole.read_bytes().splitlines(keepends=True)
    part = folder / "part.jsonl"
    part.write_bytes(b"".join(lines[:11]) + lines[11][:9])  # one batch of 8, and a part of the next
    recipe.generate.main([*argv, "--output", str(part)])
    assert len(lines) == 24
    assert sorted(part.read_bytes().splitlines()) == sorted(whole.read_bytes().splitlines())


def test_other_settings_do_not_continue_a_run(
    trained: SimpleNamespace, recipe: SimpleNamespace, models: SimpleNamespace, questions: Path
) -> None:
    argv = command(trained.kind, recipe, models, questions, trained.folder)
    with pytest.raises(InputError, match=r"training.learning_rate: 0.02, now 0.03"):
        recipe.train.main([*argv, "--learning_rate", "0.03"])


def test_two_processes(recipe: SimpleNamespace, models: SimpleNamespace, questions: Path, tmp_path: Path) -> None:
    argv = command("chat", recipe, models, questions, tmp_path / "out")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = [*launch, str(recipe.folder / "train.py"), *argv, "--max_steps", "2", "--use_cpu", "true"]
    done = subprocess.run(run, capture_output=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert json.loads((tmp_path / "out" / "recipe.json").read_text())["result"]["processes"] == 2


def test_four_bit_weights(recipe: SimpleNamespace, models: SimpleNamespace, questions: Path, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes", reason="needs bitsandbytes")
    argv = command("chat", recipe, models, questions, tmp_path / "out")
    argv[argv.index("--config") + 1] = str(recipe.folder / "configs" / "qwen_qlora.yaml")
    recipe.train.main([*argv, "--max_steps", "8", "--logging_steps", "2"])
    result = json.loads((tmp_path / "out" / "recipe.json").read_text())["result"]
    assert result["last_loss"] < 0.8 * result["first_loss"]
