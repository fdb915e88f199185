"""Answer Component MRR@k and Recall@k: the ranks at which parts of the answer are retrieved.

Source: Bakshi, fastbook-benchmark (https://github.com/vishalbakshi/fastbook-benchmark).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from qabench.data.answers import UNANSWERED, check_pairs, is_list_of
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.io.environment import package_version
from qabench.loading_scripts.fastbook.chunks import CHUNK_SIZE, TOKEN
from qabench.text import repaired

# A longer passage cannot be a chunk of the official size. There is a margin, because the author
# counts tokens with cl100k, and this module counts words and punctuation marks.
MAX_TOKENS = 1.25 * CHUNK_SIZE
OPTIONS = ("skip_empty_contexts", "skip_extraneous", "explicit_only")

Component = Mapping[str, Any]
Ranks = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class AnswerComponentScores:
    """The ranks at which the components of each answer were retrieved, which determine the scores.

    Attributes:
        cutoffs: the requested values of k.
        ranks: for each question, the first rank (from 1) at which each component that counts was
            retrieved, or None for a component that is not within the largest cutoff. If the options
            leave out all components of a question, its entry is None instead of a tuple.
        options: the options that were on. Scores are official only if there are none.
        longest: the number of tokens (words and punctuation marks) of the longest passage.
    """

    cutoffs: tuple[int, ...]
    ranks: tuple[Ranks | None, ...]
    options: tuple[str, ...]
    longest: int = 0

    @property
    def skipped(self) -> int:
        """Return how many questions the means leave out, because none of their components counts."""
        return sum(ranks is None for ranks in self.ranks)

    def per_question(self, name: str, k: int) -> list[float | None]:
        """Return the "mrr" or "recall" of each question at a cutoff, or None if skipped.

        MRR is 1 / the largest of the components' ranks if all are in the top k, else 0. Recall is
        the share of the components in the top k. Raises InputError for the recall of a question
        without components.
        """
        values: list[float | None] = []
        for i, ranks in enumerate(self.ranks):
            if ranks is None:
                values.append(None)
                continue
            retrieved = [rank for rank in ranks if rank is not None and rank <= k]
            if name == "mrr":
                reciprocal = 0.0
                if ranks and len(retrieved) == len(ranks):
                    reciprocal = 1.0 / max(retrieved)
                values.append(reciprocal)
            elif ranks:
                values.append(len(retrieved) / len(ranks))
            else:
                raise InputError(
                    f"references[{i}] has no components, so its recall is undefined (the official code divides by "
                    "zero); leave the question out"
                )
        return values

    def mean(self, name: str, k: int) -> float:
        """Return Answer Component MRR@k or Recall@k: the mean of ``per_question``, a fraction."""
        counted = [value for value in self.per_question(name, k) if value is not None]
        if not counted:
            raise InputError(
                "the options leave out all components of all questions: the mean is undefined"
            )
        return mean_of(counted)

    def columns(self, *names: str) -> list[Json]:
        """Return each question's scores at every cutoff: {"mrr@10": ..., "recall@10": ...}."""
        rows: list[Json] = [{} for _ in self.ranks]
        for k in self.cutoffs:
            for name in names:
                for row, value in zip(rows, self.per_question(name, k), strict=True):
                    row[f"{name}@{k}"] = value
        return rows

    def signature(self) -> Json:
        """Return the signature fields that describe the scoring."""
        # If all passages can be chunks of the official size, that size is signed.
        longest = CHUNK_SIZE
        if self.longest > MAX_TOKENS:
            longest = self.longest
        return {
            "k": self.cutoffs,
            "repair": f"ftfy-{package_version('ftfy')}",
            "options": "+".join(self.options) or "official",
            "longest": longest,
        }


def answer_component_scores(
    references: Sequence[Sequence[Component]],
    predictions: Sequence[Any],
    k: int | str | Sequence[int] = 10,
    *,
    skip_empty_contexts: bool = False,
    skip_extraneous: bool = False,
    explicit_only: bool = False,
) -> AnswerComponentScores:
    """Return the ranks at which the components of each question's answer are retrieved.

    A passage retrieves a component if it contains one of the component's contexts, after
    ``ftfy.fix_text`` on both. A component without context is never retrieved. A question without
    components has MRR 0 and no recall. If the options leave out all components of a question, it is
    in no mean, and None in ``ranks``.

    Args:
        references: the ``answer_context`` of each question, a list of components. A component is a
            dict with ``context`` (a list of strings). The last two options also need its
            ``extraneous_answer`` and ``explicit_context`` (booleans).
        predictions: each question's passages, best first: a list of strings. None, ``UNANSWERED``
            and an empty list mean that nothing was retrieved.
        k: the cutoff, or several: a list, or a string such as "1,5,10".
        skip_empty_contexts: (unofficial) leave out components without context, which no system can
            retrieve.
        skip_extraneous: (unofficial) leave out components that go beyond what the question asks.
        explicit_only: (unofficial) leave out components that their contexts only imply.

    Raises:
        InputError: no questions, lists of different lengths, k not a positive integer, or an item
            of another type.
    """
    check_pairs(references, predictions)
    cutoffs = check_cutoffs(k)
    flags = (skip_empty_contexts, skip_extraneous, explicit_only)
    options = tuple(compress(OPTIONS, flags))
    ranks: list[Ranks | None] = []
    texts: set[str] = set()
    for i, (reference, prediction) in enumerate(zip(references, predictions, strict=True)):
        where = f"references[{i}]"
        components = _components(reference, where)
        # Seven questions have a component twice, with different contexts. Both of them count.
        counted = [component for component in components if _counts(component, options, where)]
        # A question for which nothing was retrieved scores 0, as in the source.
        if prediction is None or prediction is UNANSWERED:
            prediction = ()
        if not is_list_of(prediction, str):
            raise InputError(
                f"predictions[{i}] is {prediction!r:.80}; allowed: a list of passages (strings), or None"
            )
        retrieved = prediction[: max(cutoffs)]
        texts.update(retrieved)
        # If the options leave out all components, there is nothing to find, so the question is in
        # no mean.
        if components and not counted:
            ranks.append(None)
            continue
        # Repairing is slow, so a passage is repaired once for all components.
        passages = [repaired(passage) for passage in retrieved]
        ranks_of_components = [_rank(component, passages) for component in counted]
        ranks.append(tuple(ranks_of_components))
    return AnswerComponentScores(cutoffs, tuple(ranks), options, longest_passage(texts))


def longest_passage(texts: Iterable[str]) -> int:
    """Return the number of tokens (words and punctuation marks) of the longest text, or 0."""
    longest = 0
    for text in texts:
        n_tokens = len(TOKEN.findall(text))
        longest = max(longest, n_tokens)
    return longest


def check_cutoffs(k: int | str | Sequence[int]) -> tuple[int, ...]:
    """Return the distinct cutoffs in ascending order.

    Raises:
        InputError: a cutoff is not an integer of at least 1.
    """
    cutoffs: Sequence[Any] = [k]
    if isinstance(k, str):
        cutoffs = k.split(",")
    elif isinstance(k, Sequence):
        cutoffs = k
    texts = [str(cutoff).strip() for cutoff in cutoffs]
    # ``isdecimal`` is False for the text of a boolean, a fraction or a negative number.
    if not texts or not all(text.isdecimal() and int(text) for text in texts):
        raise InputError(
            f"k is {k!r:.80}; allowed: an integer of at least 1, or several in a list or separated by commas"
        )
    return tuple(sorted(set(map(int, texts))))


def mean_of(values: Sequence[float]) -> float:
    """Return the mean as pandas computes it.

    The author's code takes the mean of a pandas column, and the last digit depends on the order of
    additions.
    """
    return float(np.asarray(values, dtype=np.float64).sum() / len(values))


def _rank(component: Component, passages: Sequence[str]) -> int | None:
    """Return the rank of the first passage that contains one of a component's contexts."""
    # The source repairs both sides with ftfy, so that quotes of different encodings are equal.
    contexts = [repaired(context) for context in component.get("context", ())]
    for rank, passage in enumerate(passages, start=1):
        if any(context in passage for context in contexts):
            return rank
    # 30 of the dataset's 357 components can never be retrieved: 25 have no context, and the
    # contexts of 5 are not in the chapters' text.
    return None


def _counts(component: Component, options: tuple[str, ...], where: str) -> bool:
    if "skip_empty_contexts" in options and not component.get("context"):
        return False
    if "skip_extraneous" in options and _flag(component, "extraneous_answer", where):
        return False
    return "explicit_only" not in options or _flag(component, "explicit_context", where)


def _flag(component: Component, name: str, where: str) -> bool:
    value = component.get(name)
    # The source's files have the string "false", which is true in Python.
    if not isinstance(value, bool):
        raise InputError(
            f"{where}: {name} is {value!r:.60}; allowed: True or False, as in the dataset's rows"
        )
    return value


def _components(reference: Any, where: str) -> Sequence[Component]:
    components: Sequence[Component] = ()
    is_usable = is_list_of(reference, Mapping)
    if is_usable:
        components = reference
        is_usable = all(is_list_of(component.get("context"), str) for component in components)
    if not is_usable:
        raise InputError(
            f"{where} is {reference!r:.80}; allowed: the answer_context of a question, a list of dicts with "
            "'context', a list of strings"
        )
    return components
