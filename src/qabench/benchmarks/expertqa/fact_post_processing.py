"""FActScore's post-processing: removes atomic claims that repeat others or have dates that the sentence has not."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.benchmarks.expertqa.fact_entities import Entities

# "He was born." says nothing if another claim says where.
INCOMPLETE = (
    *("born.", " appointed.", " characterized.", " described.", " known.", " member.", " advocate."),
    *("served.", "elected."),
)
COMPLETE = "founding member."


def post_processed(sentence: str, claims: Sequence[str], entities: Entities) -> list[str]:
    """The atomic claims of a sentence that the authors' script keeps, in order, each once.

    Left out are claims that end in one of ``INCOMPLETE`` and are the beginning or another part of a longer one, and
    claims with a date or number that is not in the sentence. A number that begins one of the sentence is completed.
    If the remaining claims do not have all dates and numbers of the sentence, nothing is left out.

    Args:
        sentence: the sentence that was broken down.
        claims: its atomic claims.
        entities: finds dates and numbers; see ``load_entities``.
    """
    wanted = entities(sentence.strip())
    covered: set[str] = set()
    kept: list[str] = []
    for i, claim in enumerate(claims):
        if _is_incomplete(claim) and any(claim[:-1] in other for j, other in enumerate(claims) if j != i):
            continue
        own = entities(claim)
        covered.update(entity for entity in own if entity in wanted)
        completed = {new: _completed(new, wanted) for new in own if new not in wanted}
        for new, whole in completed.items():
            if whole is None:
                break
            claim = claim.replace(new, whole)
            covered.add(whole)
        else:
            if claim not in kept:
                kept.append(claim)
    return kept if covered == set(wanted) else list(claims)


def _is_incomplete(claim: str) -> bool:
    return claim.endswith(INCOMPLETE) and not claim.endswith(COMPLETE)


def _completed(entity: str, wanted: Sequence[str]) -> str | None:
    """The first of the wanted ones that begins with the entity."""
    return next((one for one in wanted if one.startswith(entity)), None)
