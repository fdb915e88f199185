# %% [markdown]
# # Fine-tuning on ExpertQA's long-form questions
#
# The recipe in `recipes/expertqa_lfqa` trains, answers and scores. Here it does so with a tiny
# random model on a CPU and 24 invented questions, to show the steps and their outputs; the scores
# mean nothing. With a real model the commands are the same, without the options that make the run
# small:
#
# ```text
# python train.py --config configs/qwen_lora.yaml
# python generate.py --model outputs/qwen_lora --output qwen_lora.jsonl
# qabench score expertqa qwen_lora.jsonl --config lfqa_random
# ```

# %%
import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # small networks run fastest in one thread
ROOT = Path(
    os.environ.get("QABENCH_CHECKOUT", "..")
).resolve()  # the checkout, in whose folder examples this is
RECIPE = ROOT / "recipes" / "expertqa_lfqa"
questions = Path("questions.json")  # in the authors' format
rows = [
    {"example_id": i, "context": "", "question": f"Why is {i}?", "answer": f"It is a number, {i}."}
    for i in range(24)
]
questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
rows[7]

# %% [markdown]
# A model of Qwen's architecture with random weights takes the place of `Qwen/Qwen3-8B`.

# %%
sys.path.append(str(ROOT / "tests" / "support"))
from tiny_language_models import save_tiny_qwen

os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
with contextlib.redirect_stderr(io.StringIO()):  # progress bars
    save_tiny_qwen(Path("tiny"))


def run(script, **options):
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-W", "ignore", str(RECIPE / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# %% [markdown]
# Training with LoRA, from the same configuration as the real model. The loss falls.

# %%
run(
    "train.py",
    config=RECIPE / "configs" / "qwen_lora.yaml",
    model_name_or_path="tiny",
    dtype="float32",
    bf16=False,
    chat_template_kwargs="{}",
    train_file=questions,
    eval_strategy="no",
    max_steps=24,
    logging_steps=4,
    learning_rate=0.02,
    warmup_steps=0,
    gradient_accumulation_steps=1,
    max_new_tokens=30,
    output_dir="tuned",
)
record = json.loads(Path("tuned/recipe.json").read_text())
result = record["result"]
print(f"{result['steps']} steps, loss {result['first_loss']:.0f} to {result['last_loss']:.0f}")

# %% [markdown]
# Answers, before and after training. `generate.py` writes the file that `qabench score` reads.

# %%
run(
    "generate.py",
    model="tiny",
    kind="chat",
    questions=questions,
    output="before.jsonl",
    max_new_tokens=30,
)
run("generate.py", model="tuned", questions=questions, output="after.jsonl")
json.loads(Path("after.jsonl").read_text().splitlines()[0])

# %%
import qabench

before, after = (
    qabench.evaluate_predictions("expertqa", "lfqa_random", path, questions=questions)
    for path in ("before.jsonl", "after.jsonl")
)
for evaluation in (before, after):
    score = evaluation.scores()["rougeL"]
    print(f"{evaluation.model:7} ROUGE-L {score.interval.mean:.1f}, n = {score.n}")

# %% [markdown]
# The model card holds data, prompt, settings and scores.

# %%
card = Path("tuned/README.md").read_text()
[line for line in card.splitlines() if line.startswith("#")]
