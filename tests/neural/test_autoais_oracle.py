"""AutoAIS labels of real claims: equal to those of the authors' script, which is executed with the same weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from expertqa_scripts import labeled, punctuation_splitter
from tiny_t5 import save_tiny_t5

from qabench.neural.nli import clean, label_claims, prompt_of

Claims = list[tuple[str, list[str]]]


def claims_of(mirror: Path) -> Claims:
    """All claims of the 436 annotated answers."""
    found = []
    for name in ("rand_val.jsonl", "rand_test.jsonl"):
        text = (mirror / "chaitanyamalaviya/ExpertQA/data/lfqa" / name).read_text(encoding="utf-8")
        for row in map(json.loads, filter(None, text.split("\n"))):
            for answer in row["answers"].values():
                found += [(claim["claim_string"], claim["evidence"] or []) for claim in answer["claims"]]
    return found


def chosen(claims: Claims, n: int) -> Claims:
    """n short claims, and the n // 4 shortest ones whose evidence has more than 512 tokens of 3 characters."""
    size = {i: sum(-(-len(word) // 3) for word in " ".join(evidence).split()) for i, (_, evidence) in enumerate(claims)}
    long = sorted((i for i in size if size[i] > 540), key=size.__getitem__)[: n // 4]
    short = [i for i in size if size[i] < 400][:: max(1, len(size) // (2 * n))][:n]
    return [claims[i] for i in sorted(long + short)]


def test_labels_are_those_of_the_script(mirror: Path, tmp_path: Path, compared: Callable[[str], None]) -> None:
    for package in ("torch", "transformers"):
        pytest.importorskip(package, reason="needs the extra autoais")
    from qabench.neural.seq2seq import load_entailment

    claims = chosen(claims_of(mirror), 32)
    prompts = [prompt_of(" ".join(map(clean, evidence)), clean(text)) for text, evidence in claims]
    folder = save_tiny_t5(tmp_path / "t5", prompts)
    theirs = labeled(mirror, folder, claims, tmp_path / "labels.jsonl")
    model = load_entailment(str(folder), device="cpu", batch_size=8)
    assert label_claims(claims, model, punctuation_splitter) == theirs
    n_long = sum(n > 512 for n in model.n_tokens(prompts))
    assert n_long >= 8 and {"Y", "N"} == set(theirs)
    compared(f"{len(claims)} labels, {theirs.count('Y')} of them Y, {n_long} of long evidence")
