"""The prompts of fact scores, the authors' and this project's, and how lists of atomic claims are read."""

from __future__ import annotations

import re
import string
from functools import cache
from typing import Any

from qabench.benchmarks.expertqa import official_prompts as official
from qabench.benchmarks.expertqa.prompts import DATA_NOT_INSTRUCTIONS
from qabench.errors import MissingExtra
from qabench.tasks.prompts import Prompt

TOP_DEMONSTRATIONS = 7  # the first ones, and the one that is most similar to the sentence
BULLET = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s+(\S.*)")
ATOMIC_PROMPT = Prompt(
    "qabench",
    f"""Break the sentence down into facts that are independent of each other. Each fact is one short sentence that
states one thing and is understood without the others. Repeat what the sentence says, whether it is right or wrong, and
add nothing. Write one fact per line, beginning with "- "; if the sentence states no fact, reply with NONE.

{DATA_NOT_INSTRUCTIONS}

<sentence>
{{claim}}
</sentence>""",
)
VERDICT_PROMPT = Prompt(
    "qabench",
    f"""Below are passages, and a statement from an answer to a question in the field {{field}}. According to the
passages, is the statement true or false?

<passages>
{{evidence}}
</passages>

<statement>
{{claim}}
</statement>

{DATA_NOT_INSTRUCTIONS} Reply with one word: True or False.""",
)


def atomic_prompt(sentence: str) -> str:
    """The authors' prompt for the atomic facts of a sentence: 7 demonstrations, the most similar one, the sentence.

    Raises:
        MissingExtra: the package rank-bm25 is not installed.
        SourceError: the authors' files are not available.
    """
    parts = official.atomic()
    known = list(parts.demonstrations)
    nearest = _ranking().get_top_n(sentence.split(" "), known, 1)
    shown = [
        parts.instruction.filled(sentence=text)
        + "".join(parts.fact.filled(fact=fact) for fact in parts.demonstrations[text])
        for text in [*known[:TOP_DEMONSTRATIONS], *nearest]
    ]
    return "\n".join([*shown, parts.instruction.filled(sentence=sentence)]).strip()


def verdict_prompt(atomic_claim: str, evidence: str, field: str) -> str:
    """The authors' prompt for the verdict on an atomic claim; empty evidence leaves a lone full stop, as upstream."""
    definition, whole = official.verdict()
    text = definition.filled(field=field) + evidence.strip()
    if text[-1] not in string.punctuation:
        text += "."
    return whole.filled(definition=text.strip(), claim=atomic_claim.strip()).strip()


def official_list(reply: str) -> list[str]:
    """The entries of a reply as upstream reads them: after each "- "; the last entry ends with a full stop."""
    found = [entry.strip() for entry in reply.split("- ")[1:] if entry.strip()]
    if found and not found[-1].endswith("."):
        found[-1] += "."
    return found


def read_list(reply: str) -> list[str]:
    """The entries of a bulleted or numbered list, without repetitions; other lines are ignored."""
    entries = (found[1].strip() for line in reply.splitlines() if (found := BULLET.match(line)))
    return list(dict.fromkeys(entries))


@cache
def _ranking() -> Any:
    """BM25 over the sentences of the demonstrations."""
    try:
        from rank_bm25 import BM25Okapi
    except ImportError:
        raise MissingExtra(
            "the authors' prompt for atomic facts needs rank-bm25: pip install 'qabench[retrieval]'"
        ) from None
    return BM25Okapi([text.split(" ") for text in official.atomic().demonstrations])
