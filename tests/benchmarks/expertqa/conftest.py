"""Fixtures of ExpertQA's tests."""

from collections.abc import Sequence

import pytest
from stand_ins import Labeler, no_weights

from qabench.models.entailment import Entailed


@pytest.fixture
def labeler(monkeypatch: pytest.MonkeyPatch) -> type[Labeler]:
    """A model that entails claims with the word red."""

    def judge(self: Labeler, prompts: Sequence[str]) -> list[Entailed]:
        Labeler.asked += len(prompts)
        return [Entailed("red" in prompt.partition("hypothesis:")[2], 0.0, 0.0) for prompt in prompts]

    no_weights(monkeypatch)
    monkeypatch.setattr(Labeler, "asked", 0)
    monkeypatch.setattr(Labeler, "judge", judge)
    return Labeler
