"""The faithfulness of long-form answers to ExpertQA's reference answers as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.adapters.metric import MetricModule
from qabench.answers import text_pairs
from qabench.benchmarks.expertqa.claims import faithfulness_labels, sentence_splitter
from qabench.benchmarks.expertqa.lfqa import faithfulness
from qabench.models.entailment import shared_entailment


class ExpertqaFaithfulness(MetricModule, evaluate.Metric):
    """Faithfulness of long-form answers: the share of an answer's claims that the reference answer
    entails, according to the NLI model of AutoAIS. This project's own metric. The authors report
    QAFactEval, which cannot be installed any more.

    Args:
        predictions: a list with the text of the answer to each question, or None for an unanswered
            question.
        references: the column `answer` of the config `lfqa_random` or `lfqa_domain`, or other
            reference answers.
        model: a sequence-to-sequence model that writes 1 or 0: a name on the Hub, or a folder.
            Google/t5_xxl_true_nli_mixture if neither this nor QABENCH_NLI_MODEL is given.
        revision: a revision of the model on the Hub.
        device: a device name of torch. Default: a GPU if there is one.
        dtype: "float32", "bfloat16" or "float16". Default: bfloat16 for a large model on a GPU,
            otherwise float32.
        per_question: also return the claims of each answer with their labels.
    Returns:
        faithfulness: a float in [0, 1]: the mean over answers of the share of their claims that are
            entailed. An answer without claims, such as an unanswered question, is 0.
        micro: a float in [0, 1]: the share of all claims that are entailed, or None if there are no
            claims.
        interval: the 95% interval of faithfulness, from whole answers drawn with replacement.
        claims, unanswered: the number of claims, and of unanswered questions.
        per_question: with per_question=True, for each answer a list of {"claim", "label"}, the
            label being "Y" or "N".
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, an item that is not
            a string.
        MissingExtra: torch or transformers is not installed, or NLTK for a long reference.
        QabenchError: the model cannot be loaded.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("expertqa_faithfulness")
        >>> result = metric.compute(
        ...     predictions=["Water boils. Ice melts."], references=["Water boils, and ice melts."]
        ... )
        >>> result["claims"], 0 <= result["faithfulness"] <= 1
        (2, True)
    """

    BENCHMARK = "expertqa"
    STRINGS = True
    URLS = ("https://arxiv.org/abs/2309.07852", "https://arxiv.org/abs/2204.04991")
    CITATION = """
@inproceedings{honovich-etal-2022-true,
  title = {{TRUE}: Re-evaluating Factual Consistency Evaluation},
  author = {Honovich, Or and Aharoni, Roee and Herzig, Jonathan and Taitelbaum, Hagai and Kukliansy, Doron and Cohen,
    Vered and Scialom, Thomas and Szpektor, Idan and Hassidim, Avinatan and Matias, Yossi},
  booktitle = {Proceedings of the 2022 Conference of the North American Chapter of the Association for Computational
    Linguistics},
  year = {2022},
  url = {https://arxiv.org/abs/2204.04991},
}
"""

    def score(
        self,
        predictions: list[Any],
        references: list[Any],
        model: str | None = None,
        revision: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        per_question: bool = False,
    ) -> dict[str, Any]:
        targets, answers = text_pairs(references, predictions)
        entailment = shared_entailment(model, revision, device=device, dtype=dtype)
        labeled = faithfulness_labels(answers, targets, entailment)
        result = faithfulness([[claim["label"] for claim in own] for own in labeled])
        result["unanswered"] = answers.count(None)
        result |= self.provenance(targets, labels=entailment.name, claims=sentence_splitter()[0])
        if per_question:
            result["per_question"] = labeled
        return result
