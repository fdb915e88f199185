"""``qabench expertqa attribute``: AutoAIS labels of claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qabench.benchmarks.expertqa.commands.parts import (
    BatchSize,
    Claims,
    Device,
    Dtype,
    Model,
    Out,
    Revision,
    Split,
    label_with_model,
    print_scores,
    questions_of,
)
from qabench.cli.options import ConfigName


def attribute(
    file: Claims = None,
    output: Out = Path("labeled.jsonl"),
    config: ConfigName = None,
    split: Split = None,
    model: Model = None,
    revision: Revision = None,
    dtype: Dtype = None,
    device: Device = None,
    batch_size: BatchSize = None,
    official_quirks: Annotated[
        bool, typer.Option(help="Shorten long evidence exactly as the authors' script does.")
    ] = True,
    sentences: Annotated[
        str, typer.Option(help="How long evidence is split: punkt (NLTK's, as the authors) or spacy.")
    ] = "punkt",
) -> None:
    """Label claims with an NLI model: Y if their evidence entails them, else N; then print AutoAIS.

    Labels in an existing OUTPUT are kept: repeat an interrupted command to continue it. With --config and the annotated
    claims of that config, the agreement with the experts is printed for both classes.
    """
    from qabench.benchmarks.expertqa.claims import splitter_of
    from qabench.benchmarks.expertqa.items import read_items

    split_with = splitter_of(sentences)
    questions = questions_of(config, split, needed=file is None)
    items = read_items(file, questions)
    loading = {"model": model, "revision": revision, "batch_size": batch_size, "device": device, "dtype": dtype}
    marks = ":no-quirks" * (not official_quirks) + ":spacy" * (sentences == "spacy")
    labeled, _ = label_with_model(items, output, loading, marks, split=split_with, official_quirks=official_quirks)
    print_scores(labeled, output, questions, "autoais")
