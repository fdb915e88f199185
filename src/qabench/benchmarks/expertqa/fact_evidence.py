"""Evidence of atomic claims: the best passages of a corpus, or of the web pages that a search finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from multiprocessing.pool import ThreadPool
from pathlib import Path

from qabench.benchmarks.expertqa import prompts
from qabench.benchmarks.expertqa.passages import BM25, DENSE, Evidence, load_passages, load_web
from qabench.errors import InputError, QabenchError
from qabench.evaluation.scoring import Progress
from qabench.prompts.prompt import AUTO

# As the authors: they retrieve five passages, of which the verdict's prompt shows three.
K = 5
# More would not be polite to a public search server.
SEARCHES_AT_ONCE = 8

Find = Callable[[str], str]
"""Return the evidence of an atomic claim."""


def evidence_from(
    corpus: Path | None, search: str | None, ranker: str
) -> tuple[str | None, Find | None]:
    """Return the name of the source of evidence, for labels, and the function that finds it.

    Both are None without a corpus and a search engine. See ``qabench.benchmarks.expertqa.passages``
    for the arguments. The ranker "auto" is bm25 for a corpus, dense for the web. Raises InputError
    if both are named, or a ranker without either.
    """
    if (corpus and search) or (ranker != AUTO and not (corpus or search)):
        raise InputError("give either --corpus or --search, and --ranker only with one of them")
    if corpus:
        corpus_ranker = BM25 if ranker == AUTO else ranker
        passages = load_passages(str(corpus), corpus_ranker)
        return f"{passages.name}:{passages.ranker}", passages_for(passages)
    if search:
        web_ranker = DENSE if ranker == AUTO else ranker
        web = load_web(search, web_ranker)
        return "{web}:{page_ranker}".format(**web.signature()), passages_for(web)
    return None, None


def passages_for(source: Evidence) -> Find:
    """Return the function that finds evidence in a corpus or on the web, in the authors' format.

    The atomic claim is the query, and passages are ranked by it. Without evidence, the function
    returns "".
    """

    def find(claim: str) -> str:
        passages = source.find(claim, claim, K).passages
        return "\n\n".join(prompts.numbered([passage.text for passage in passages]))

    return find


def find_all(
    claims: Iterable[str], find: Find, progress: Progress
) -> dict[str, str | QabenchError]:
    """Return the evidence of each distinct claim, or the error of its search.

    Searches are requests to a server, so several run at once. After an interrupt, no further search
    starts.
    """

    def attempt(claim: str) -> str | QabenchError:
        try:
            return find(claim)
        except QabenchError as error:
            return error

    evidence: dict[str, str | QabenchError] = {}
    distinct = list(dict.fromkeys(claims))
    with ThreadPool(SEARCHES_AT_ONCE) as pool:
        # ``imap`` returns results in the order of the claims, and each one when it is ready.
        for claim, text in zip(distinct, pool.imap(attempt, distinct), strict=True):
            evidence[claim] = text
            progress(len(evidence), len(distinct))
    return evidence
