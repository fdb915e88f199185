"""``qabench expertqa attribute``: AutoAIS labels of claims."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from qabench.benchmarks.expertqa.commands.parts import (
    INTERRUPTED,
    BatchSize,
    Claims,
    Device,
    Dtype,
    Model,
    Out,
    Revision,
    Split,
    label_items,
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
    from qabench.cli.output import progress_bar, say_on_stderr
    from qabench.neural.nli import label_claims
    from qabench.neural.seq2seq import load_entailment

    split_with = splitter_of(sentences)
    questions = questions_of(config, split, needed=file is None)
    items = read_items(file, questions)
    with load_entailment(model, revision, batch_size=batch_size, device=device, dtype=dtype) as chosen:
        labels_by = chosen.name + ":no-quirks" * (not official_quirks) + ":spacy" * (sentences == "spacy")
        say_on_stderr(f"labels by {labels_by}, {chosen.devices}")
        label = partial(label_claims, model=chosen, split=split_with, official_quirks=official_quirks)
        try:
            with progress_bar("Labeling answers") as progress:
                labeled = label_items(items, label, labels_by, output, progress)
        except KeyboardInterrupt:
            say_on_stderr(f"stopped; the labels so far are in {output}: repeat the command to continue")
            raise typer.Exit(INTERRUPTED) from None
    print_scores(labeled, output, questions, "autoais")
