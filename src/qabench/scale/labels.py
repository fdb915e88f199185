"""Labeling claims by an entailment model (AutoAIS)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.models.entailment import MODEL, Seq2SeqEntailment, Splitter, label_claims, load_entailment, punkt
from qabench.models.loader import ModelSource, locate
from qabench.scale.parts import ROWS_PER_PART, Columns, Progress, Rows, cells, open_source, run


def label(
    source: Any,
    output: str | Path,
    claim: str = "claim",
    evidence: str = "evidence",
    model: str = MODEL,
    revision: str | None = None,
    *,
    batch_size: int | None = None,
    dtype: str | None = None,
    split: Splitter = punkt,
    official_quirks: bool = True,
    rows_per_part: int = ROWS_PER_PART,
    progress: Progress | None = None,
) -> list[Path]:
    """Write "Y" for each claim that its evidence entails, else "N", as the column "label".

    Args:
        source: a ``datasets.Dataset``, or the path of a .jsonl or .parquet file.
        output: the folder of the Parquet files; see ``qabench.scale.parts.run``.
        claim: the column of the claims.
        evidence: the column of their evidence: a list of strings, or null.
        model: see ``qabench.models.entailment.load_entailment``, like the next three arguments.
        revision: a revision of a model on the Hub.
        batch_size: the number of prompts per batch.
        dtype: of the network.
        split: see ``entailment.label_claims``; a function of a module, because it is sent to the processes.
        official_quirks: see ``qabench.models.entailment.label_claims``.
        rows_per_part: the rows of one file. The network's batches are formed in each part, so labels of close cases may
            depend on it.
        progress: called with the number of rows processed and of all rows.

    Returns:
        The files, in the order of the rows.

    Raises:
        InputError: the source cannot be read, or the folder has other results.
        MissingExtra: a package is not installed.
        QabenchError: the model cannot be loaded.
    """
    location = locate(model, revision)
    load = partial(_load, location, batch_size, dtype, partial(_labels, claim, evidence, split, official_quirks))
    what = {
        "job": "label",
        "claim": claim,
        "evidence": evidence,
        "model": location.label,
        "device": location.device,
        "dtype": dtype or "default",
        "batch_size": batch_size or "default",
        "split": getattr(split, "__name__", repr(split)),
        "official_quirks": official_quirks,
    }
    opened = open_source(source, [claim, evidence])
    return run(opened, output, load, {"label": "string"}, what, rows_per_part, progress, gpu=True)


def _load(
    source: ModelSource, batch_size: int | None, dtype: str | None, label: Callable[[Seq2SeqEntailment, Rows], Columns]
) -> Callable[[Rows], Columns]:
    model = load_entailment(source.name, source.commit, batch_size=batch_size, device=source.device, dtype=dtype)
    return partial(label, model)


def _labels(claim: str, evidence: str, split: Splitter, quirks: bool, model: Seq2SeqEntailment, rows: Rows) -> Columns:
    claims = list(zip(cells(rows, claim), map(_pieces, cells(rows, evidence)), strict=True))
    return {"label": label_claims(claims, model, split, official_quirks=quirks)}


def _pieces(evidence: Any) -> list[str] | None:
    if evidence is None or (isinstance(evidence, list) and all(isinstance(piece, str) for piece in evidence)):
        return evidence
    raise InputError(f"the evidence of a claim is {evidence!r:.60}; allowed: a list of strings, or null")
