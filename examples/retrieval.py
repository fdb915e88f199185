# %% [markdown]
# # Retrieval over the columns of a dataset
#
# BM25 with the scores of `rank_bm25`, bit for bit, and fastbook's scores: were *all* parts of an
# answer retrieved?

# %%
import matplotlib.pyplot as plt

import qabench
from qabench.retrieval import BM25Index, add_bm25_index

sample = qabench.load_dataset("fanoutqa", "sample", split="validation")
index = BM25Index.from_dataset(sample, column="question")
index

# %%
hits = index.search("density of planets", k=3)
hits

# %%
[(round(score, 2), sample[position]["question"]) for position, score in hits]

# %% [markdown]
# The stock search functions of `datasets` work, too.

# %%
sample = add_bm25_index(sample, "question")
scores, rows = sample.get_nearest_examples("question", "density of planets", k=1)
rows["question"]

# %% [markdown]
# fastbook's sample: paragraphs of two short chapters as passages, and a question's own words as the
# query.

# %%
questions = qabench.load_dataset("fastbook", "sample", split="test")
corpus = qabench.load_dataset("fastbook", "sample_corpus", split="corpus")
passages = {
    row["chapter"]: [part for part in row["text"].split("\n") if part.strip()] for row in corpus
}
indexes = {chapter: BM25Index(parts) for chapter, parts in passages.items()}


def ranked(row, k=10):
    hits = indexes[row["chapter"]].search(row["question_text"], k=k)
    return [passages[row["chapter"]][position] for position in hits.positions]


predictions = [{"id": row["id"], "passages": ranked(row)} for row in questions]
evaluation = qabench.evaluate_predictions("fastbook", "sample", predictions, k=[1, 2, 3, 5, 10])
scores = evaluation.scores()
{name: round(score.interval.mean, 3) for name, score in scores.items()}

# %%
figure, axes = plt.subplots(figsize=(6, 3))
for stem, marker in (("mrr", "o"), ("recall", "s")):
    cutoffs = [1, 2, 3, 5, 10]
    axes.plot(
        cutoffs,
        [scores[f"{stem}@{k}"].interval.mean for k in cutoffs],
        marker=marker,
        label=f"{stem}@k",
    )
axes.set_xlabel("k")
axes.set_ylim(0, 1)
axes.legend()
figure.tight_layout()
