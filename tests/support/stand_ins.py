"""Stand-ins for the models of metrics, whose weights are gigabytes; tests of ``neural`` use
networks.
"""

from collections.abc import Sequence
from typing import Self

import pytest

from qabench.models.bleurt import BleurtModel
from qabench.models.entailment import Entailed


class Labeler:
    """Labels a claim by the length of its prompt, odd or even; counts the prompts."""

    name = "tiny@0:float32"
    device = "float32 on cpu"
    asked = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def n_tokens(self, prompts: Sequence[str]) -> list[int]:
        return [len(prompt.split()) for prompt in prompts]

    def judge(self, prompts: Sequence[str]) -> list[Entailed]:
        Labeler.asked += len(prompts)
        return [Entailed(len(prompt) % 2 == 1, 0.0, 0.0) for prompt in prompts]


def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels and the metric fanout_bleurt work without weights."""
    scorer = BleurtModel("stand-in", lambda *sides: [len(a + b) / 7 for a, b in zip(*sides, strict=True)])
    monkeypatch.setattr("qabench.models.bleurt.load_bleurt", lambda *args, **kwargs: scorer)
    monkeypatch.setattr("qabench.models.entailment.load_entailment", lambda *args, **kwargs: Labeler())
