# %% [markdown]
# # FELM: how good is an evaluator of factuality?
#
# An evaluator names the segments of a response that contain errors. Here a keyword rule plays the evaluator.

# %%
import qabench

sample = qabench.load_dataset("felm", "sample", split="test")
row = sample[0]
list(zip(row["segmented_response"], row["labels"], strict=True))

# %% [markdown]
# Replies in the format of the authors' prompts: the numbers of the wrong segments, or ALL_CORRECT.

# %%


def reply(row):
    wrong = [i for i, text in enumerate(row["segmented_response"], 1) if any(c.isdigit() for c in text)]
    return f"Answer: {', '.join(map(str, wrong))}" if wrong else "ALL_CORRECT"


predictions = [{"id": row["index"], "reply": reply(row)} for row in sample]
predictions[0]["reply"] = "I cannot say."  # unreadable: counts as "all segments correct", as in the authors' script
evaluation = qabench.evaluate_predictions("felm", "sample", predictions)
scores = qabench.benchmark("felm").scores(evaluation)
for name in ("f1", "balanced_accuracy", "responses_f1", "readable_f1"):
    one = scores[name]
    print(f"{name:18} {one.interval.mean:.3f}, n = {one.n} {one.metric.unit}, left out: {one.left_out}")

# %% [markdown]
# By domain:

# %%
for domain, records in evaluation.by_group("domain").items():
    found = qabench.benchmark("felm").scores(evaluation, records).get("f1")
    print(f"{domain:12} {len(records):2} responses, F1 {found.interval.mean:.3f}" if found else f"{domain}: no F1")
