"""FELM: segment-level factuality labels of model responses in five domains."""

from __future__ import annotations

from qabench.benchmarks import Benchmark, Option, Setting
from qabench.benchmarks.felm.metrics import METRICS
from qabench.benchmarks.needs import Need

_METHODS = {
    "raw": "The response's numbered segments; an answer without reasons.",
    "cot": "Same as raw, with reasons before the answer.",
    "cot-cons": "Same as cot, sampled several times; the majority decides.",
    "link": "Same as raw, with the links of the references.",
    "content": "Same as raw, with the text of the references.",
}
BENCHMARK = Benchmark(
    name="felm",
    title="FELM",
    settings=tuple(Setting(name, "felm", about, {"method": name}) for name, about in _METHODS.items()),
    part="domains",
    metrics=METRICS,
    headline=("f1",),
    prediction_fields=("reply", "labels", "answer"),
    options=(
        Option(
            "reply_format",
            'Where replies name the wrong segments: answer (after "Answer: "), or vicuna (anywhere).',
            default="answer",
            choices=("answer", "vicuna"),
        ),
    ),
    families={"felm": "F1, precision and recall of errors, and balanced accuracy"},
    default_families=("felm",),
    groupings={"domain": "domain", "error type": "type of error"},
    evaluate_with="qabench.benchmarks.felm.predictions:evaluate",
    prediction_with="qabench.benchmarks.felm.prediction:prediction",
    declarations="qabench.benchmarks.felm.official:DECLARATIONS",
    reproduce_with="qabench.benchmarks.felm.reproduce:reproduce",
    needs=(
        Need("F1 and balanced accuracy of predictions"),
        Need("the responses, and the prompts of runs", "qabench fetch felm", files=("eval/all.jsonl", "eval/eval.py")),
    ),
    sections_with="qabench.benchmarks.felm.sections:sections",
)
