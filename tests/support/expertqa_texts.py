"""The texts of ExpertQA, as passages and queries of retrieval."""

import json
import re
from pathlib import Path


def expertqa(mirror: Path) -> tuple[list[str], list[str]]:
    """The distinct answers and pieces of evidence, long ones in paragraphs, and the questions."""
    texts: dict[str, None] = {}
    questions: dict[str, None] = {}
    for name in ("rand_test.jsonl", "rand_val.jsonl"):
        with (mirror / "chaitanyamalaviya/ExpertQA/data/lfqa" / name).open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                questions[row["question"]] = None
                for answer in row["answers"].values():
                    evidence = [piece for claim in answer["claims"] or () for piece in claim["evidence"] or ()]
                    for text in (answer["answer_string"], *evidence):
                        texts |= dict.fromkeys(re.split(r"\n+", text))
    return list(texts), list(questions)
