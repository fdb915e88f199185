"""The prompt with retrieved passages: qabench's own, because the benchmark's author ran no model."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.evaluation.scoring import Messages
from qabench.prompts.prompt import DATA_NOT_INSTRUCTIONS, Prompt

PROMPT = Prompt(
    "qabench",
    f"""Answer the question with the following passages of a textbook, in full sentences. Answer everything that was
asked, and nothing else. If the passages do not contain the answer, say so.

<passages>
{{passages}}
</passages>

{DATA_NOT_INSTRUCTIONS}

Question: {{question}}""",
)


def messages(passages: Sequence[str], question: str) -> Messages:
    """Return the prompt with the passages, numbered from 1."""
    numbered = []
    for rank, text in enumerate(passages, start=1):
        numbered.append(f"[{rank}]\n{text}")
    shown = "\n\n".join(numbered)
    return PROMPT.messages(passages=shown or "(none)", question=question)
