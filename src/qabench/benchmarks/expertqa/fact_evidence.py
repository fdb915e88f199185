"""Evidence for atomic claims: the best passages of a corpus, or of the web pages that a search engine finds.

Source: ``retrieve_evidence_for_claims.py`` below ``modeling/fact_score`` of
https://github.com/chaitanyamalaviya/ExpertQA, which searches Google for each atomic claim; see
``qabench.benchmarks.expertqa.web`` for the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from qabench.benchmarks.expertqa.passages import Evidence, load_passages
from qabench.benchmarks.expertqa.rankers import AUTO, BM25, DENSE
from qabench.errors import InputError, QabenchError
from qabench.io.workers import DaemonPool
from qabench.llm.client import Progress

K = 5  # passages that the authors retrieve; the verdict's prompt shows three of them
AT_ONCE = 8  # atomic claims

Find = Callable[[str], str]
"""Finds the evidence of an atomic claim."""


def passages_for(source: Evidence, k: int = K) -> Find:
    """Evidence as the authors wrote it: "Passage ID 1: ..." without line breaks, joined by blank lines; "" if none.

    Args:
        source: a corpus or the web; the atomic claim is the query, and passages are ranked by it.
        k: the number of passages.
    """

    def find(claim: str) -> str:
        found = enumerate(source.find(claim, claim, k).passages, start=1)
        return "\n\n".join(f"Passage ID {n}: " + passage.text.replace("\n", "") for n, passage in found)

    return find


def evidence_from(
    corpus: str | None = None, search: str | None = None, ranker: str = AUTO, encoder: str | None = None
) -> tuple[str, Find] | None:
    """The name, for labels, and the function that finds evidence; None if neither a corpus nor the web is given.

    Args:
        corpus: see ``qabench.benchmarks.expertqa.passages.load_passages``.
        search: a search engine; see ``qabench.benchmarks.expertqa.web.load_web``.
        ranker: "bm25", "dense", "api", or "auto" (bm25 for a corpus, dense for the web).
        encoder: see ``encoder_of``.

    Raises:
        InputError: both are given, a ranker without either, or one that cannot be used.
        MissingExtra: an extra is not installed; names it.
    """
    if corpus and search:
        raise InputError("give a corpus or a search engine, not both")
    if corpus:
        passages = load_passages(corpus, ranker=BM25 if ranker == AUTO else ranker, encoder=encoder)
        return f"{Path(corpus).name}:{passages.ranker}", passages_for(passages)
    if search:
        from qabench.benchmarks.expertqa.web import load_web

        web = load_web(search, DENSE if ranker == AUTO else ranker, encoder)
        about = web.signature()
        return f"{about['web']}:{about['page_ranker']}", passages_for(web)
    if ranker != AUTO or encoder:
        raise InputError("a ranker has no effect without --corpus or --search")
    return None


def found_for(claims: Iterable[str], find: Find, progress: Progress | None = None) -> dict[str, str | QabenchError]:
    """The evidence of each distinct claim, or why it could not be found. Several claims are searched for at once."""
    pool = DaemonPool(AT_ONCE, "qabench-evidence")
    asked = {claim: pool.submit(find, claim) for claim in dict.fromkeys(claims)}
    found: dict[str, str | QabenchError] = {}
    try:
        for claim, future in asked.items():
            try:
                found[claim] = future.result()
            except QabenchError as error:
                found[claim] = error
            if progress:
                progress(len(found), len(asked))
        return found
    finally:
        for future in asked.values():
            future.cancel()  # after an interrupt, nothing more is searched for
        pool.close()
