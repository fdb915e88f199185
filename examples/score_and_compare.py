# %% [markdown]
# # Score predictions and compare systems
#
# Everything here runs on the sample that is part of qabench, without a network.

# %%
import json
from pathlib import Path

import matplotlib.pyplot as plt

import qabench
from qabench.data.answers import loads, text_of

sample = qabench.load_dataset("fanoutqa", "sample", split="validation")
sample[0]["question"], loads(sample[0]["answer"])

# %% [markdown]
# Two synthetic systems: one answers every second question correctly, the other writes half of each
# reference.

# %%
folder = Path("predictions")
folder.mkdir(exist_ok=True)


def write(name, answers):
    lines = [json.dumps({"id": i, "answer": a}) for i, a in zip(sample["id"], answers, strict=True)]
    (folder / f"{name}.jsonl").write_text("\n".join(lines))


references = [text_of(loads(answer)) for answer in sample["answer"]]
write("every-second", [text if i % 2 else "I do not know." for i, text in enumerate(references)])
write("first-half", [text[: len(text) // 2] for text in references])

# %% [markdown]
# Score them. An `Evaluation` has one record per question, with the numbers that the scores are
# computed from. It shows itself as a table of scores, with what distinguishes them from the
# official ones: here also the lemmatizer, because official accuracy needs spaCy's model.

# %%
systems = {
    name: qabench.evaluate_predictions(
        "fanoutqa", "sample", folder / f"{name}.jsonl", lemmatizer="simplemma"
    )
    for name in ("every-second", "first-half")
}
systems["first-half"]

# %% [markdown]
# One row per question, as a data frame:

# %%
columns = ["question", "answer", "acc.loose", "acc.strict", "category"]
systems["first-half"].to_pandas()[columns].head()

# %% [markdown]
# Scores by group:

# %%
for group, scores in systems["every-second"].scores_by_group("type").items():
    print(group, scores["acc.loose"])

# %% [markdown]
# Intervals that overlap are not a test. The paired test asks whether the difference on the same
# questions could be chance.

# %%
from qabench.evaluation.comparison import compare

comparison = compare(systems, qabench.benchmark("fanoutqa").score_spec("acc.loose"))
comparison

# %%
metrics = ["acc.loose", "acc.strict", "rouge1.fscore", "rougeL.fscore"]
figure, axes = plt.subplots(figsize=(7, 3))
for offset, (name, evaluation) in enumerate(systems.items()):
    scores = evaluation.scores()
    means = [scores[metric].interval.mean for metric in metrics]
    low = [scores[metric].interval.mean - scores[metric].interval.low for metric in metrics]
    high = [scores[metric].interval.high - scores[metric].interval.mean for metric in metrics]
    at = [i + 0.15 * offset for i in range(len(metrics))]
    axes.errorbar(at, means, yerr=[low, high], fmt="os"[offset], capsize=4, label=name)
axes.set_xticks(range(len(metrics)), metrics)
axes.set_ylim(0, 1)
axes.set_ylabel("score, 95% interval")
axes.legend()
figure.tight_layout()
