# %% [markdown]
# # FELM: how good is an evaluator of factuality?
#
# An evaluator names the segments of a response that contain errors. Here a keyword rule plays the
# evaluator.

# %%
import qabench

sample = qabench.load_dataset("felm", "sample", split="test")
row = sample[0]
list(zip(row["segmented_response"], row["labels"], strict=True))

# %% [markdown]
# Replies in the format of the authors' prompts: the numbers of the wrong segments, or ALL_CORRECT.

# %%


def reply(row):
    wrong = [
        i for i, text in enumerate(row["segmented_response"], 1) if any(c.isdigit() for c in text)
    ]
    return f"Answer: {', '.join(map(str, wrong))}" if wrong else "ALL_CORRECT"


predictions = [{"id": row["index"], "reply": reply(row)} for row in sample]
# unreadable: counts as "all segments correct", as in the authors' script
predictions[0]["reply"] = "I cannot say."
evaluation = qabench.evaluate_predictions("felm", "sample", predictions)
evaluation

# %% [markdown]
# By domain, with the number of segments; a domain without an F1, such as one without errors, is
# left out:

# %%
for domain, scores in evaluation.scores_by_group("domain").items():
    if "f1" in scores:
        print(domain, scores["f1"])
