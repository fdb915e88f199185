"""``qabench expertqa faithfulness``: claims of answers against the reference answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qabench.benchmarks.expertqa.commands.parts import (
    BatchSize,
    Device,
    Dtype,
    Model,
    Revision,
    Split,
    label_with_model,
    questions_of,
)
from qabench.cli.options import ConfigName


def faithfulness(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help='Lines {"id", "answer"}. Default: validate on the annotated claims.'),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write, as JSONL.")] = Path(
        "faithfulness.jsonl"
    ),
    config: ConfigName = None,
    split: Split = None,
    model: Model = None,
    revision: Revision = None,
    dtype: Dtype = None,
    device: Device = None,
    batch_size: BatchSize = None,
    sentences: Annotated[str, typer.Option(help="How long references are split: punkt (NLTK's) or spacy.")] = "punkt",
) -> None:
    """Label claims of answers by the reference answers: Y if the reference answer entails the claim, else N.

    This score is this project's own; the authors used QAFactEval, which cannot be installed. Without FILE, it is
    validated: the annotated claims of --config are labeled by the experts' revised answers, and the labels' correlation
    with the experts' correctness judgments is printed, next to the correlation of plain containment.
    Labels in an existing OUTPUT are kept: repeat an interrupted command to continue it.
    """
    from qabench.benchmarks.expertqa import faithfulness as measure
    from qabench.benchmarks.expertqa.claims import splitter_of
    from qabench.cli.output import print_table, say
    from qabench.data.predictions import read_predictions
    from qabench.errors import InputError

    split_with = splitter_of(sentences)
    questions = questions_of(config, split, needed=True)
    if questions is None or (file is None and not questions.annotated):
        raise InputError("give a FILE with answers, or --config with annotated answers, such as random")
    given = None if file is None else read_predictions(file, ("answer",))
    items = measure.annotated_to_check(questions) if given is None else measure.claims_to_check(given, questions)
    if not items:
        raise InputError(f"no answer has a reference answer in {questions.config} {questions.split}")
    loading = {"model": model, "revision": revision, "batch_size": batch_size, "device": device, "dtype": dtype}
    marks = ":spacy" * (sentences == "spacy")
    labeled, labels_by = label_with_model(items, output, loading, marks, split=split_with)
    correlations = measure.validation(labeled) if given is None else {}
    title = f"expertqa_faithfulness, {questions.config} {questions.split}"
    judged = sum(claim.get("correctness") is not None for item in labeled for claim in item["claims"])
    print_table(measure.table(title, measure.scored(labeled), correlations, judged))
    if given is not None and (absent := len(questions.rows) - len(items)):
        say(
            f"{absent} of {len(questions.rows)} questions have no answer in {file}, or no reference: not scored",
            "yellow",
        )
    for name, value in correlations.items():
        if value is None:
            say(f"{name}: not defined, all claims have the same label, or the same judgment", "yellow")
    say(f"not official: this score is this project's own, not QAFactEval; labels by {labels_by}", "yellow")
