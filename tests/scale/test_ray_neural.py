"""BLEURT and labels on a Ray cluster: the scores of one process, to the last digit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extras bleurt and autoais")
from tiny_bleurt import WORDS, write_tiny_bleurt
from tiny_t5 import save_tiny_t5

from qabench.models.bleurt import load_bleurt
from qabench.models.entailment import prompt_of
from qabench.scale import Cluster
from qabench.scale.jobs import label

pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture(autouse=True)
def _pickled_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_PICKLED_WEIGHTS", "1")  # of the tiny BLEURT


def test_bleurt_equals_one_process(nodes: Any, tmp_path: Path) -> None:
    write_tiny_bleurt(tmp_path)
    texts = [" ".join(WORDS[: n % 11 + 1]) for n in range(40)]
    one = load_bleurt("torch", str(tmp_path), batch_size=4)(texts, texts[::-1])
    with Cluster():
        scorer = load_bleurt("torch", str(tmp_path), batch_size=4)
        assert scorer(texts, texts[::-1]) == one
    assert len(set(one)) == 11


def test_labels_equal_one_process(nodes: Any, tmp_path: Path) -> None:
    claims = [{"claim": f"the moon number {n}", "evidence": [f"the sea {'e' * (n % 5)}"] * (n % 3)} for n in range(30)]
    model = save_tiny_t5(tmp_path / "model", [prompt_of(" ".join(c["evidence"]), c["claim"]) for c in claims])
    source = tmp_path / "claims.jsonl"
    source.write_text("".join(json.dumps(claim) + "\n" for claim in claims))
    one = label(source, tmp_path / "one", model=str(model), rows_per_part=7)
    with Cluster():
        many = label(source, tmp_path / "many", model=str(model), rows_per_part=7)
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in many]
    assert len(one) == 5
