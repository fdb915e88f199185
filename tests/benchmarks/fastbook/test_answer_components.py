"""Answer Component MRR@k and Recall@k against the official implementation, which repairs both
strings of each pair.
"""

import itertools
import random
from functools import partial
from pathlib import Path
from typing import Any

import ftfy
import pandas as pd
import pytest
from ftfy.badness import BADNESS_RE
from hypothesis import given
from hypothesis import strategies as st
from official_retrieval import official

from qabench import Evaluation, evaluate_predictions, load_dataset
from qabench.benchmarks import benchmark
from qabench.benchmarks.fastbook.answer_components import AnswerComponentScores, answer_component_scores
from qabench.benchmarks.fastbook.retrieval import chapter_chunks
from qabench.data.answers import UNANSWERED
from qabench.errors import InputError
from qabench.loading_scripts.fastbook.chunks import cut
from qabench.text import NOT_PLAIN

# Whole, damaged, and damaged by ftfy: quotes, mojibake, entities, markup, line ends, escapes,
# halves of a character.
PIECES = [
    "a", "b", " ", "\n", "\r\n", "\u2019", "\u201c", "\u2014", "\u2026", "caf\u00e9", "cafe\u0301", "caf\u00c3\u00a9",
    "\u00e2\u20ac\u2122", "&amp;", "&lt;", "<", "&", ";", "\x00", "\x1b[31m", "\x85", "\ufb01", "\uff2c", "\ud83d",
    "\u2028", "\u00a0", "\u00c3 ", "\ud800",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
components = st.lists(st.fixed_dictionaries({"context": st.lists(texts, max_size=3)}), min_size=1, max_size=4)


@given(st.lists(st.tuples(components, st.lists(texts, max_size=6)), min_size=1, max_size=3), st.integers(1, 5))
def test_any_question_scores_as_the_official_code(questions: list[Any], k: int) -> None:
    references, predictions = map(list, zip(*questions, strict=True))
    score = answer_component_scores(references, predictions, [1, k, 9])
    assert score.cutoffs == tuple(sorted({1, k, 9}))
    for cutoff in score.cutoffs:
        expected = [official(question, passages, cutoff) for question, passages in questions]
        got = zip(score.per_question("mrr", cutoff), score.per_question("recall", cutoff), strict=True)
        assert list(got) == expected
        assert score.mean("mrr", cutoff) == pd.Series([mrr for mrr, _ in expected]).mean()
        assert score.mean("recall", cutoff) == pd.Series([recall for _, recall in expected]).mean()


@pytest.mark.parametrize("seed", range(3))
def test_the_real_questions_on_random_rankings(mirror: Path, seed: int) -> None:
    size = (500, 200, 1000)[seed]
    corpus = chapter_chunks("questions", partial(cut, size=size, overlap=min(size // 4, 64)))
    rows = [question.row for question in benchmark("fastbook").load("questions").rows]
    references = [row["answer_context"] for row in rows]
    rng = random.Random(seed)
    chapters = [corpus[row["chapter"]] for row in rows]
    rankings = [rng.sample(chunks, k=min(12, len(chunks))) for chunks in chapters]
    score = answer_component_scores(references, rankings, [1, 5, 10])
    for k in score.cutoffs:
        expected = [official(*pair, k) for pair in zip(references, rankings, strict=True)]
        got = zip(score.per_question("mrr", k), score.per_question("recall", k), strict=True)
        assert list(got) == expected
        columns = pd.DataFrame(expected)
        assert (score.mean("mrr", k), score.mean("recall", k)) == (columns[0].mean(), columns[1].mean())
    assert len(rankings) == 191
    assert 0 < score.mean("mrr", 1) < score.mean("mrr", 10) < score.mean("recall", 10) < 1


@pytest.mark.parametrize("nothing", [None, UNANSWERED, [], ()])
def test_nothing_retrieved(nothing: Any) -> None:
    score = answer_component_scores([[{"context": ["x"]}]], [nothing])
    assert (score.mean("mrr", 10), score.mean("recall", 10)) == (0, 0)


def test_a_question_without_components() -> None:
    score = answer_component_scores([[{"context": ["x"]}], []], [["x"], ["x"]])
    assert score.per_question("mrr", 10) == [1, 0]
    with pytest.raises(InputError, match=r"references\[1\] has no components, so its recall is undefined"):
        score.mean("recall", 10)


def test_options_leave_components_out_and_are_named() -> None:
    said = {"explicit_context": True, "extraneous_answer": False}
    references = [
        [{"context": ["x"], **said}, {"context": [], **said, "explicit_context": False}],
        [{"context": ["y"], **said, "extraneous_answer": True}],
    ]
    predictions = [["x"], ["-"]]

    def score(**options: bool) -> AnswerComponentScores:
        return answer_component_scores(references, predictions, **options)

    assert score().per_question("mrr", 10) == [0, 0]
    assert score().signature() == {
        "k": (10,), "repair": f"ftfy-{ftfy.__version__}", "options": "official", "longest": 500,
    }  # fmt: skip
    whole_chapter = answer_component_scores(references, [["word, " * 1000], ["-"]])
    assert whole_chapter.signature()["longest"] == 2000
    assert score(skip_empty_contexts=True).per_question("mrr", 10) == [1, 0]
    assert score(explicit_only=True).per_question("recall", 10) == [1, 0]
    left = score(skip_extraneous=True, explicit_only=True)
    assert left.per_question("mrr", 10) == [1, None]
    assert (left.mean("mrr", 10), left.mean("recall", 10), left.skipped) == (1, 1, 1)
    assert left.signature()["options"] == "skip_extraneous+explicit_only"
    with pytest.raises(InputError, match="leave out all components"):
        answer_component_scores(references[1:], predictions[1:], skip_extraneous=True).mean("mrr", 10)


@pytest.mark.parametrize(
    ("references", "predictions", "options", "message"),
    [
        ([[]], ["x"], {}, r"predictions\[0\] is 'x'; allowed: a list of passages"),
        (["x"], [[]], {}, r"references\[0\] is 'x'; allowed: the answer_context"),
        ([["x"]], [[]], {}, r"references\[0\] is .'x'.; allowed: the answer_context"),
        ([[]], [[]], {"k": 0}, "k is 0; allowed: an integer of at least 1"),
        ([[]], [[]], {"k": [10, True]}, r"k is \[10, True\]"),
        ([[]], [[]], {"k": "1,x"}, r"k is '1,x'"),
        ([[]], [[]], {"k": []}, r"k is \[\]"),
        (
            [[{"context": [], "explicit_context": "false"}]],
            [[]],
            {"explicit_only": True},
            "explicit_context is 'false'; allowed: True",
        ),
    ],
)
def test_bad_input_is_named(references: Any, predictions: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        answer_component_scores(references, predictions, **options)


def test_no_plain_characters_look_damaged_together() -> None:
    plain = [character for character in map(chr, range(0x11000)) if not NOT_PLAIN.search(character)]
    assert {"\u2013", "\u2014", "\u2026", "~", "\n"} < set(plain)
    assert BADNESS_RE.search("".join(map("".join, itertools.product(plain, repeat=3)))) is None
    everything = "".join(plain) * 2
    assert ftfy.fix_text(everything) == everything


def test_a_score_at_another_cutoff_says_how_to_compute_it() -> None:
    predictions = [{"id": row["id"], "passages": ["x"]} for row in load_dataset("fastbook", "sample", split="test")]

    def scored(*names: str) -> Evaluation:
        return evaluate_predictions("fastbook", "sample", predictions, names, k="5,10")

    said = "no score mrr@3: computed is mrr@5, mrr@10; to compute it, add --k 3"
    assert scored("mrr@3").unscored == said and not scored("mrr@3").scores()
    both = scored("mrr@3", "mrr@5")
    assert both.problems == [said] and list(both.scores()) == ["mrr@5"]
    assert not scored("mrr@10", "retrieval").problems
