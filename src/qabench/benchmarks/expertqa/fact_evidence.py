"""Find evidence for atomic claims: the best passages of a corpus, or of web pages from a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from multiprocessing.pool import ThreadPool
from pathlib import Path

from qabench.benchmarks.expertqa import prompts
from qabench.benchmarks.expertqa.passages import BM25, DENSE, PassageSource, load_passages, load_web
from qabench.errors import InputError, QabenchError
from qabench.evaluation.scoring import Progress
from qabench.prompts.prompt import AUTO

# Like the authors, retrieve five passages, although the prompt for a verdict shows only three.
K = 5
# More searches at once would not be polite to a public search server.
SEARCHES_AT_ONCE = 8

Find = Callable[[str], str]
"""A function that returns the evidence of an atomic claim."""


def evidence_from(
    corpus: Path | None, search: str | None, ranker: str
) -> tuple[str | None, Find | None]:
    """Return the name of the evidence source (for labels), and the function that finds evidence.

    Both are None if neither a corpus nor a search engine is named. The arguments are described in
    ``qabench.benchmarks.expertqa.passages``. The ranker "auto" is bm25 for a corpus and dense for
    the web. Raises InputError if both a corpus and a search engine are named, or only a ranker.
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


def passages_for(source: PassageSource) -> Find:
    """Return the function that finds evidence in a corpus or on the web, in the authors' format.

    The atomic claim is the query, and passages are also ranked by it. If nothing is found, the
    function returns "".
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
