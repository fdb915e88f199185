"""Label claims with a model for ``qabench expertqa attribute``, and keep existing labels.

Labels of the input and of an earlier output are kept. New labels are written after each batch, so
that an interrupted command can be continued.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from typer import Exit

from qabench.benchmarks.expertqa import kept
from qabench.benchmarks.expertqa.citations import EVIDENCE_LABELS, with_evidence_labels
from qabench.benchmarks.expertqa.claim_lines import ClaimsLine, write_lines
from qabench.benchmarks.expertqa.commands.results import INTERRUPTED, back_up
from qabench.cli.output import progress_bar, say_on_stderr, warn
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.models.entailment import Entailment, label_claims

# The number of lines that are labeled and written together. With more lines, the model's batches
# are fuller, but an interrupt loses more labels.
LINES_AT_ONCE = 32


def labeled(
    lines: Sequence[ClaimsLine], output: Path, load: Callable[[], Entailment], relabel: bool
) -> list[ClaimsLine]:
    """Return lines with labels: those of the input and of an earlier output, and new ones by a model.

    New labels are written to the output after each batch, so after an interruption only the last batch
    has to be labeled again.
    """
    if not relabel and all(_has_own_labels(line) for line in lines):
        return _with_own_labels(lines, output)

    # All checks come before labeling, which may take hours.
    entailment = load()
    name = entailment.name
    say_on_stderr(f"labels by {name}, {entailment.device}")
    before = kept.rows_before(output)
    kept.check_author(output, before, "labels_by", name, "labels")
    earlier = list(before)
    if not relabel:
        _check_input_labels(lines, name)
        earlier += lines
    known_labels = kept.labels_of(earlier, name)
    known_evidence = kept.evidence_labels_of(earlier, name)
    back_up(output, before, lines, "label")
    labeled_lines = [
        _with_known(line, known_labels, known_evidence, name, relabel) for line in lines
    ]
    try:
        _label(labeled_lines, entailment, output)
    except KeyboardInterrupt:
        say_on_stderr(f"stopped; the labels so far are in {output}: repeat the command to continue")
        raise Exit(INTERRUPTED) from None
    write_lines(output, labeled_lines)
    n_given = 0
    for line in labeled_lines:
        for claim in line["claims"]:
            n_given += claim.get("label_by") == kept.GIVEN
    if n_given:
        warn(
            f"claims of the input that had a label, which is kept: {n_given} (--relabel labels them anew)"
        )
    return labeled_lines


def with_citations(
    lines: Sequence[ClaimsLine], output: Path, load: Callable[[], Entailment]
) -> list[ClaimsLine]:
    """Label the pieces of evidence whose labels citation precision needs, and write the lines."""

    def label(pairs: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
        # The model is only loaded if something has to be labeled.
        if not pairs:
            return []
        return label_claims(pairs, load())

    labeled_lines = with_evidence_labels(lines, label)
    write_lines(output, labeled_lines)
    return labeled_lines


def _with_own_labels(lines: Sequence[ClaimsLine], output: Path) -> list[ClaimsLine]:
    say_on_stderr("all claims have a label: no model is needed (--relabel labels them anew)")
    before = kept.rows_before(output)
    labeled_lines = []
    for line in lines:
        labeled_lines.append({**line, "labels_by": line.get("labels_by") or kept.GIVEN})
    back_up(output, before, lines, "label")
    write_lines(output, labeled_lines)
    return labeled_lines


def _check_input_labels(lines: Sequence[ClaimsLine], name: str) -> None:
    """Check that no line has labels by another model, because new labels would be mixed with them."""
    for line in lines:
        other_authors = kept.authors(line.get("labels_by")) - {name, kept.GIVEN}
        if other_authors:
            raise InputError(
                f"the claims of {line['id']} have labels by {', '.join(sorted(other_authors))}, not by {name}: "
                "--relabel labels them anew"
            )


def _label(lines: list[ClaimsLine], entailment: Entailment, output: Path) -> None:
    """Set the missing labels. After each batch, write all lines whose claims are labeled."""
    unlabeled = [line for line in lines if not _is_labeled(line)]
    done = len(lines) - len(unlabeled)
    with progress_bar("Labeling answers") as progress:
        for start in range(0, len(unlabeled), LINES_AT_ONCE):
            batch = unlabeled[start : start + LINES_AT_ONCE]
            lacking = []
            pairs = []
            for line in batch:
                for claim in line["claims"]:
                    if claim.get("label") is None:
                        lacking.append(claim)
                        pairs.append((claim["claim"], claim["evidence"]))
            for claim, label in zip(lacking, label_claims(pairs, entailment), strict=True):
                claim["label"] = label
            done += len(batch)
            # A line is not written until all its claims have a label: the other claims would count
            # as unlabeled.
            complete_lines = [line for line in lines if _is_labeled(line)]
            write_lines(output, complete_lines)
            progress(done, len(lines))


def _has_own_labels(line: ClaimsLine) -> bool:
    """Tell whether all claims of a line have a label, but the line does not say by which model."""
    return _is_labeled(line) and not line.get("labels_by")


def _is_labeled(line: ClaimsLine) -> bool:
    return all(claim.get("label") is not None for claim in line["claims"])


def _with_known(
    line: ClaimsLine,
    known_labels: Mapping[str, str],
    known_evidence: Mapping[str, Sequence[Json]],
    name: str,
    relabel: bool,
) -> ClaimsLine:
    """Return a copy of a line with the known labels, their authors, and a digest of the claims."""
    claims = []
    made_by = set()
    for original in line["claims"]:
        claim = dict(original)
        label_by = claim.pop("label_by", None)
        if not label_by and not line.get("labels_by"):
            label_by = kept.GIVEN
        if claim.get("label") is not None and label_by == kept.GIVEN and not relabel:
            claim["label_by"] = label_by
            made_by.add(label_by)
        else:
            claim["label"] = known_labels.get(kept.label_content(claim))
            made_by.add(name)
        if line.get("labels_by"):
            # Remove the labels of evidence, which may have been edited since. Labels of unchanged
            # evidence are restored from ``known_evidence`` below.
            claim.pop(EVIDENCE_LABELS, None)
        pieces = known_evidence.get(kept.label_content(claim))
        if pieces:
            claim[EVIDENCE_LABELS] = pieces
        claims.append(claim)
    authors = sorted(made_by - {name})
    # A line without claims has no labels. Like the lines around it, it names the model.
    if name in made_by or not made_by:
        authors.append(name)
    return {
        **line,
        "claims": claims,
        "labels_by": ",".join(authors),
        "labels_of": kept.labels_content(claims),
    }
