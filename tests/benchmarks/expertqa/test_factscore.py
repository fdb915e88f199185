"""ExpertQA's scores: all rules by hand, and real rows against scikit-learn and a second
implementation.

The available rows have the experts' labels but no labels of a model, which are generated from a
seed.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_results import metric_result

import qabench
from qabench.benchmarks.expertqa.agreement import ABSTENTIONS
from qabench.benchmarks.expertqa.factscore import (
    MAX_CHARACTERS,
    VOID_PHRASES,
    entities_of,
    first_sentence,
    is_void,
    post_processed,
    reply_is_true,
    states_facts,
)
from qabench.benchmarks.expertqa.lfqa import LFQA_ROUGE_TYPES
from qabench.data.answers import UNANSWERED
from qabench.errors import InputError

Row = dict[str, Any]
autoais = partial(metric_result, "expertqa_autoais")
autoais_agreement = partial(metric_result, "expertqa_autoais_agreement")
factscore_agreement = partial(metric_result, "expertqa_factscore_agreement")
lfqa_rouge = partial(metric_result, "expertqa_lfqa")


def claim(**fields: Any) -> Row:
    """A claim that counts in every score."""
    counted = {
        "claim_string": "It is so.", "evidence": ["[1] a page"], "support": "Complete", "worthiness": "Yes",
        "correctness": "Probably correct",
    }  # fmt: skip
    return counted | fields


def answer(*claims: Row, system: str = "bing_chat", text: str = "It is so [1].") -> Row:
    return {"system": system, "answer_string": text, "claims": list(claims)}


def row(*answers: Row) -> Row:
    return {"question": "Is it so?", "answers": list(answers)}


class TestAutoAIS:
    @pytest.mark.parametrize("phrase", ABSTENTIONS)
    def test_abstaining_answers(self, phrase: str) -> None:
        rows = [row(answer(claim(), text=f"Well: {phrase} ...")), row(answer(claim(), text=phrase.upper() + "?"))]
        result = autoais(rows, [["Y"], ["N"]])
        assert (result["abstaining_answers"], result["answers"]) == (1, 2)
        assert (result["macro"], result["macro_without_abstentions"]) == (0.5, 0.0)
        assert (result["micro"], result["micro_without_abstentions"]) == (0.5, 0.0)

    def test_claims_without_label(self) -> None:
        rows = [row(answer(claim(), claim())), row(answer(claim(), claim(support="Partial")))]
        labels = [["Y", None], [None, None]]
        official = autoais(rows, labels)
        assert (official["macro"], official["micro"], official["counted_claims"]) == (0.25, 1 / 3, 3)
        excluded = autoais(rows, labels, on_unlabeled="exclude")
        assert (excluded["macro"], excluded["micro"], excluded["counted_claims"]) == (1.0, 1.0, 1)
        assert official["unlabeled"] == excluded["unlabeled"] == 2

    def test_rows_with_several_answers_or_none(self) -> None:
        rows = [row(answer(claim()), answer(claim(), claim(), system="gpt4")), row(), row(answer() | {"claims": None})]
        score = autoais(rows, [["Y", "N", "Y"], None, []])
        result = score
        assert {system: part["macro"] for system, part in result["by_system"].items()} == {"bing_chat": 1, "gpt4": 0.5}
        assert [len(answers) for answers in score["per_question"]] == [2, 0, 1]
        assert (result["macro"], result["answers"]) == (0.75, 3)


class TestAutoAISAgreement:
    def test_claims_not_worth_a_citation_are_skipped(self) -> None:
        score = autoais_agreement([row(answer(claim(worthiness="No"), claim()))], [["N", "Y"]])
        assert (score["accuracy"], score["skipped"]) == (1.0, {"not worth a citation": 1})
        assert score["per_question"][0] == [
            {"predicted": None, "gold": None, "skipped": "not worth a citation"},
            {"predicted": True, "gold": True, "skipped": None},
        ]

    def test_claims_without_label(self) -> None:
        rows = [row(answer(claim(), claim(evidence=[], support="Missing"), claim()))]
        official = autoais_agreement(rows, [[None, None, "Y"]])
        assert (official["accuracy"], official["claims"], official["unlabeled"]) == (2 / 3, 3, 1)
        excluded = autoais_agreement(rows, [[None, None, "Y"]], on_unlabeled="exclude")
        assert (excluded["accuracy"], excluded["claims"], excluded["unlabeled"]) == (1.0, 2, 1)
        assert excluded["skipped"] == {"unlabeled": 1}

    def test_what_is_undefined_is_none(self) -> None:
        result = autoais_agreement([row(answer(claim(support="Partial")))], [["N"]])
        assert result["accuracy"] == 1.0
        assert result["complete"] == {"precision": None, "recall": None, "f1": None, "support": 0}
        result = autoais_agreement([row(answer(claim(worthiness="No")))], [["N"]])
        assert result["accuracy"] is None


class TestFactScoreAgreement:
    def test_what_is_skipped_and_why(self) -> None:
        rows = [
            row(answer(claim(correctness=None), text="I don't know")),
            row(answer(claim(correctness=None), claim(), claim(claim_string="Hello, this is Bing."), claim())),
        ]
        score = factscore_agreement(rows, [[1.0], [None, None, 1.0, 1.0]])
        result = score
        assert result["skipped"] == {"abstaining answer": 1, "no correctness": 1, "no fact score": 1, "void claim": 1}
        assert (result["claims"], result["accuracy"]) == (1, 1.0)
        assert [len(claims) for claims in score["per_question"]] == [1, 4]

    def test_void_claims(self) -> None:
        assert all(is_void(f"So, {phrase} - yes") for phrase in VOID_PHRASES)
        assert len(VOID_PHRASES) == len(set(VOID_PHRASES)) == 41
        for text in ("hello", "bing", "glad you", "", "The question is settled."):
            assert is_void(text) == (text == "glad you")

    @pytest.mark.parametrize(
        ("reply", "verdict"),
        [
            ("True", True), ("FALSE.", False), ("This is true.", True), ("untrue", True),
            ("False. No, true.", True), ("True, not false.", False), ("false true false", True),
            ("", True), ("It holds.", True), ("It does not hold.", False), ("Cannot say", False),
            ("It is unknown.", False), ("No information!", False), ("nothing known", True), ("n-o-t", False),
            ("can't", True), ("informational", True),
        ],
    )  # fmt: skip
    def test_replies_are_read_as_the_official_script_does(self, reply: str, verdict: bool) -> None:
        assert reply_is_true(reply) is verdict


@pytest.mark.parametrize("score", [autoais, autoais_agreement, factscore_agreement])
class TestInput:
    GOOD = staticmethod(lambda score: [[1.0]] if score is factscore_agreement else [["Y"]])

    def test_three_ways_to_give_verdicts(self, score: Callable[..., Any]) -> None:
        field, values = ("fact_score", [0.2, None]) if score is factscore_agreement else ("autoais_label", ["N", None])
        rows = [row(answer(claim(), claim())), row(answer(claim()))]
        judged = [row(answer(*[claim() | {field: value} for value in values])), row(answer(claim()))]
        for predictions in ([judged[0], None], [values, UNANSWERED], judged, [tuple(values), [None]]):
            assert score(rows, predictions) == score(rows, judged)

    @pytest.mark.parametrize(
        ("references", "message"),
        [
            ([], "nothing to score"),
            ([row(), row()], "1 predictions for 2 references"),
            (["x"], r"references\[0\]: expected an object, got string 'x'; references are rows of the dataset"),
            ([{"answers": {"gpt4": {}}}], r"field 'answers': expected list, got object .* load_dataset returns them"),
            ([{"answers": ["x"]}], r"references\[0\], field 'answers'\[0\]: expected an object, got string 'x'"),
            ([row({"system": "gpt4", "answer_string": "x"})], r"field 'answers'\[0\]: the field 'claims' is missing"),
            ([row(answer("x"))], r"references\[0\], .*\[0\], field 'claims'\[0\]: .* 'x'"),  # type: ignore[arg-type]
        ],
    )
    def test_bad_rows(self, score: Callable[..., Any], references: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            score(references, self.GOOD(score) if references else [])

    @pytest.mark.parametrize(
        ("prediction", "message"),
        [
            (3, r"references\[1\] is 3; allowed: a row of the dataset, a list of 1 verdicts, or None"),
            ([], r"the prediction for references\[1\] is \[\]; allowed: .* a list of 1 verdicts"),
            (["yes"], r"the prediction for references\[1\], field '\w+': expected .* 'yes'"),
            ([float("nan")], r"the prediction for references\[1\], field '\w+': expected .* nan"),
            (row(), r"the prediction for references\[1\] is \[\]; allowed"),
        ],
    )
    def test_bad_verdicts(self, score: Callable[..., Any], prediction: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            score([row(answer(claim()))] * 2, [*self.GOOD(score), prediction])

    def test_no_verdict_at_all_is_an_error(self, score: Callable[..., Any]) -> None:
        with pytest.raises(InputError, match=r"no claim has a verdict: .* need the field (auto|fact_)"):
            score([row(answer(claim()))], [row(answer(claim()))])


@pytest.mark.parametrize(
    ("score", "field", "value", "message"),
    [
        (autoais, "support", "complete", r"'claims'\[1\], field 'support': expected one of Complete, .*'complete'"),
        (autoais, "evidence", "a page", r"field 'evidence': expected list or null, got string 'a page'"),
        (factscore_agreement, "correctness", "Correct", r"'correctness': expected one of Definitely .*'Correct'"),
        (factscore_agreement, "claim_string", None, r"field 'claim_string': expected string, got null"),
    ],
)
def test_bad_fields_of_claims(score: Callable[..., Any], field: str, value: Any, message: str) -> None:
    verdicts = [[1.0, 1.0]] if score is factscore_agreement else [["Y", "Y"]]
    with pytest.raises(InputError, match=message):
        score([row(answer(claim(), claim(**{field: value})))], verdicts)
    if score is not factscore_agreement:
        with pytest.raises(InputError, match="unknown on_unlabeled 'Y'; allowed: N, exclude"):
            score([row(answer(claim()))], [["Y"]], on_unlabeled="Y")
    lacking = {name: kept for name, kept in claim().items() if name != field}
    with pytest.raises(InputError, match=rf"field 'claims'\[1\]: the field '{field}' is missing; references are rows"):
        score([row(answer(claim(), lacking))], verdicts)


# The real rows, with verdicts from a seed.


@pytest.fixture(scope="module", params=["rand_val", "rand_test"])
def raw(mirror: Path, request: pytest.FixtureRequest) -> list[Row]:
    """The rows of the source's file, with synthetic ``autoais_label`` and ``fact_score``."""
    rng = random.Random(request.param)
    with (mirror / f"chaitanyamalaviya/ExpertQA/data/lfqa/{request.param}.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for claim in (claim for _, answer in answers_of(rows) for claim in answer["claims"]):
        likely = 0.75 if claim["support"] == "Complete" else 0.4
        claim["autoais_label"] = ("Y" if rng.random() < likely else "N") if rng.random() < 0.97 else None
        atomic = rng.randrange(5)
        true = sum(rng.random() < (0.8 if claim["correctness"] == "Definitely correct" else 0.5) for _ in range(atomic))
        claim["fact_score"] = true / atomic if atomic else None
    return list(rows)


def answers_of(rows: list[Row]) -> Iterator[tuple[str, Row]]:
    for row in rows:
        yield from row["answers"].items()


def typed(rows: list[Row]) -> list[Row]:
    """The rows of the dataset, with the fields that the scores use."""
    return [row | {"answers": [{"system": s, **answer} for s, answer in row["answers"].items()]} for row in rows]


def computed(name: str, rows: list[Row], **options: Any) -> Any:
    return qabench.load_metric(name).compute(predictions=typed(rows), references=typed(rows), **options)


def test_autoais_of_real_rows(raw: list[Row], compared: Callable[[str], None]) -> None:
    result = computed("expertqa_autoais", raw, per_question=True)
    systems = dict.fromkeys(system for system, _ in answers_of(raw))
    assert list(result["by_system"]) == list(systems)
    for name in systems:
        frames = []
        for system, answer in answers_of(raw):
            if system == name:
                counted = [
                    int(c["autoais_label"] == "Y") for c in answer["claims"]
                    if c["evidence"] and c["support"] == "Complete" and c["worthiness"] == "Yes"
                    and not (name == "gpt4" and "http" in "|".join(c["evidence"]))
                ]  # fmt: skip
                frames.append((any(phrase in answer["answer_string"] for phrase in ABSTENTIONS), counted, answer))
        kept = [frame for frame in frames if not frame[0]]
        expected: dict[str, Any] = {}
        for suffix, chosen in (("", frames), ("_without_abstentions", kept)):
            means = [np.mean(counted) for _, counted, _ in chosen if counted]
            values = [value for _, counted, _ in chosen for value in counted]
            expected["macro" + suffix] = np.mean(means) if means else None
            expected["micro" + suffix] = np.mean(values) if values else None
        expected |= {
            "answers": len(frames),
            "abstaining_answers": len(frames) - len(kept),
            "claims": sum(len(answer["claims"]) for *_, answer in frames),
            "claims_without_evidence": sum(not c["evidence"] for *_, answer in frames for c in answer["claims"]),
            "counted_claims": sum(len(counted) for _, counted, _ in frames),
        }
        part = result["by_system"][name]
        assert {key: part[key] for key in expected} == expected
    assert len(result["per_question"]) == len(raw) and result["unlabeled"] > 0
    # All of gpt4's evidence that experts found complete consists of links, which are skipped.
    assert result["by_system"]["gpt4"]["counted_claims"] == 0
    assert sum(part["macro"] is not None for part in result["by_system"].values()) == len(systems) - 1
    compared(f"{9 * len(systems)} figures of {result['claims']} claims, written down once more")


def check_with_sklearn(part: Row, gold: list[int], predicted: list[int]) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn")
    assert part["accuracy"] == metrics.accuracy_score(gold, predicted)
    figures = metrics.precision_recall_fscore_support(gold, predicted, average=None, labels=[0, 1])
    classes = ("not_complete", "complete") if "complete" in part else ("not_correct", "correct")
    for i, name in enumerate(classes):
        ours = part[name]
        if name in part or i == 1:
            assert [ours[key] for key in ("precision", "recall", "f1", "support")] == [column[i] for column in figures]
    if "micro_f1" in part:
        assert part["micro_f1"] == metrics.f1_score(gold, predicted, average="micro")


def check_agreement(result: Row, judged: list[tuple[str, int, int]], compared: Callable[[str], None]) -> None:
    """Compare the agreement overall and by system; judged: the system, the experts' and the model's
    verdict.
    """
    for name in (None, *dict.fromkeys(system for system, _, _ in judged)):
        part = result if name is None else result["by_system"][name]
        chosen = [claim for claim in judged if name in (None, claim[0])]
        assert part["claims"] == len(chosen)
        check_with_sklearn(part, [gold for _, gold, _ in chosen], [predicted for *_, predicted in chosen])
    compared(f"agreement of {len(judged)} claims, with scikit-learn")


def test_autoais_agreement_of_real_rows(raw: list[Row], compared: Callable[[str], None]) -> None:
    judged = [
        (system, int(c["support"] == "Complete"), int(c["autoais_label"] == "Y"))
        for system, answer in answers_of(raw)
        for c in answer["claims"]
        if c["worthiness"] != "No"
    ]
    check_agreement(computed("expertqa_autoais_agreement", raw), judged, compared)


def test_factscore_agreement_of_real_rows(raw: list[Row], compared: Callable[[str], None]) -> None:
    result = computed("expertqa_factscore_agreement", raw)
    judged = [
        (system, int(" correct" in c["correctness"]), int(c["fact_score"] >= 0.5))
        for system, answer in answers_of(raw)
        if not any(phrase in answer["answer_string"] for phrase in ABSTENTIONS)
        for c in answer["claims"]
        if c["correctness"] and c["fact_score"] is not None
        and not any(phrase in c["claim_string"] for phrase in VOID_PHRASES)
    ]  # fmt: skip
    check_agreement(result, judged, compared)
    assert set(result["skipped"]) == {"abstaining answer", "no correctness", "no fact score", "void claim"}


class TestLfqa:
    TEXTS = (
        st.lists(st.sampled_from(["the", "cats", "cat", "ran", "a b", "\n", "é", "1,234"])).map(" ".join)
        | st.text(max_size=20)
    )  # fmt: skip

    @settings(max_examples=settings.default.max_examples // 6)  # each is four bootstraps, twice
    @given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
    def test_is_what_rouge_score_gives(self, pairs: list[tuple[str, str]]) -> None:
        references, predictions = ([pair[side] for pair in pairs] for side in (0, 1))
        reference = partial(mock.patch, new=lambda: "rouge_score")
        with reference("qabench.text.rouge.backend"):
            ours = lfqa_rouge(references, predictions, seed=3)
        rouge, low, high = evaluates_rouge(references, predictions, 3)
        assert ({kind: ours[kind] for kind in rouge}, ours["interval"]) == (
            rouge,
            {kind: [low[kind], high[kind]] for kind in rouge},
        )

    def test_numpys_global_random_state_is_restored(self) -> None:
        np.random.seed(5)
        expected = np.random.random(3).tolist()
        np.random.seed(5)
        lfqa_rouge(["a"], ["a"], seed=9)
        assert np.random.random(3).tolist() == expected

    def test_unanswered_counts_as_the_empty_text(self) -> None:
        score = lfqa_rouge(["a b", "a b", "a \ud800"], ["a b", None, UNANSWERED])
        assert (score["unanswered"], score["mean"]["rouge1"]) == (2, 1 / 3)

    @pytest.mark.parametrize(
        ("references", "predictions", "options", "message"),
        [
            (["a", None], ["a", "b"], {}, r"references\[1\] is None; allowed: a string"),
            (["a", "b"], ["a", 3], {}, r"predictions\[1\] is 3; allowed: a string"),
            (["a"], ["a"], {"seed": -1}, "[Ss]eed must be between 0 and 2"),
        ],
    )
    def test_bad_input(self, references: Any, predictions: Any, options: Row, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            lfqa_rouge(references, predictions, **options)

    def test_references_that_are_json_by_chance_are_texts(self) -> None:
        metric = qabench.load_metric("expertqa_lfqa")
        assert metric.compute(predictions=["42"], references=["42"])["rouge1"] == 1.0
        assert metric.compute(predictions=["[a]", "b"], references=["[1]", "b"])["mean"]["rouge1"] == 0.5


def evaluates_rouge(references: list[str], predictions: list[str], seed: int) -> tuple[dict[str, float], ...]:
    """The result of ``evaluate``'s metric "rouge" with its defaults, from the package that it
    calls: mid, low, high.
    """
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.scoring import BootstrapAggregator

    scorer, aggregator = RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"]), BootstrapAggregator()
    for reference, prediction in zip(references, predictions, strict=True):
        aggregator.add_scores(scorer.score(reference, prediction))
    np.random.seed(seed)
    bounds = aggregator.aggregate()
    return tuple(
        {kind: getattr(bounds[kind], name).fmeasure for kind in LFQA_ROUGE_TYPES} for name in ("mid", "low", "high")
    )


@pytest.mark.parametrize(
    ("split", "first"),
    [
        ("One is.|Two is.", "One is."),
        ("Oh.|That is it.|Two is.", "Oh. That is it."),
        ("Oh.|No.|That is it.|Two is.", "Oh. No. That is it."),
        ("That is it.|Oh.|Two is.", "That is it. Oh."),
        ("That is it.|so it is.|Two is.", "That is it. so it is."),
        ("That is it.|2 is even.", "That is it."),
        ("By J.|R. Tolkien, a book.|Two is.", "By J. R. Tolkien, a book."),
        # the initials are together elsewhere
        ("By J.|K. Rowling, a book.|See J. K. now.", "By J."),
        ("By J.|R. Tolkien, a book.", "By J. R. Tolkien, a book."),
        ("By J.|R.|Two is.", "By J. R."),
        ("By J.|R.|R.|Tolkien, a book.|And one more.", "By J. R. R."),
        ("By J.|Kay wrote.|See J.|K. now.", "By J."),
        ("", ""),
    ],
)
def test_wrong_splits_are_repaired(split: str, first: str) -> None:
    assert first_sentence(split.replace("|", " "), lambda _: split.split("|")) == first


def test_the_first_paragraph_that_is_not_blank() -> None:
    assert first_sentence(" \n\n One is. \nTwo is.", lambda paragraph: [paragraph]) == "One is."


def test_replies_of_an_assistant_state_no_facts() -> None:
    for start in ("This sentence does not contain any facts.", "Sure, it is.", "Please ask.", "Here are", ""):
        assert not states_facts(start) and states_facts(f"It is. {start}")


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


@pytest.mark.parametrize(
    ("sentence", "claims", "kept"),
    [
        ("Born in 1990.", ["He was born.", "He was born in 1990."], ["He was born in 1990."]),
        ("Born in 1990.", ["He was born.", "She sang in 1990."], ["He was born.", "She sang in 1990."]),
        (
            "A founder.",
            ["A founding member.", "A founding member of it."],
            ["A founding member.", "A founding member of it."],
        ),
        ("Born.", ["He was born."], ["He was born."]),
        ("5 rows.", ["5 rows.", "7 rows.", "5 rows."], ["5 rows."]),
        ("1234 rows, 5 columns.", ["12 rows.", "5 columns."], ["1234 rows.", "5 columns."]),
        # 6 is missing: all are kept
        ("5 rows, 6 columns.", ["5 rows.", "7 rows."], ["5 rows.", "7 rows."]),
    ],
)
def test_atomic_claims_that_are_kept(sentence: str, claims: list[str], kept: list[str]) -> None:
    assert post_processed(sentence, claims, numbers) == kept


@pytest.mark.parametrize(
    ("text", "spans", "entities"),
    [
        ("On the 3rd, 4 May 2010", [("the 4 May 2010", "DATE")], ["the 4 May 2010"]),
        ("about 10-12 people", [("about 10-12", "CARDINAL")], ["10", "12"]),
        ("Channel 7 of May", [("7", "ORG"), ("May", "PERSON")], ["7"]),
        ("12 of 345", [("345", "CARDINAL")], ["345", "12"]),
        ("5 and 5", [("5", "CARDINAL"), ("5", "CARDINAL")], ["5"]),
    ],
)
def test_dates_and_numbers(text: str, spans: list[tuple[str, str]], entities: list[str]) -> None:
    assert entities_of(text, lambda _: spans) == entities


def test_the_longest_sentence() -> None:
    longest = "a" * MAX_CHARACTERS
    assert first_sentence(longest, lambda paragraph: [paragraph]) == longest
    assert post_processed(longest[:-1], ["b"], numbers) == ["b"]
    for call in (lambda: first_sentence(longest + "a", str.split), lambda: post_processed(longest, ["b"], numbers)):
        with pytest.raises(InputError, match="20,001 characters; allowed: 20,000"):
            call()
