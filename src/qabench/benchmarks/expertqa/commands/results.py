"""The output of ``qabench expertqa`` commands: tables, notes, and backups of earlier results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from qabench.benchmarks.expertqa.citations import citation_shares
from qabench.benchmarks.expertqa.claim_lines import ClaimsLine
from qabench.benchmarks.expertqa.facts import Unscored
from qabench.benchmarks.expertqa.factscore import fact_score
from qabench.benchmarks.expertqa.kept import back_up_lost, keys_of
from qabench.benchmarks.expertqa.labels import share_supported, supported_outcomes
from qabench.cli.evaluations import print_evaluations, print_notes
from qabench.cli.output import say, warn
from qabench.data.predictions import read_predictions
from qabench.errors import some
from qabench.evaluation import Evaluation
from qabench.evaluation.scoring import Questions
from qabench.io.tables import Table, bounds_text
from qabench.runs.predictions import evaluate_predictions

# The exit code with which shells report a program that Ctrl-C ended.
INTERRUPTED = 130
# The failures of a command usually have one or two reasons, such as a server that is down.
MAX_REASONS_SHOWN = 5


def back_up(
    output: Path, before: Sequence[ClaimsLine], lines: Sequence[ClaimsLine], result: str
) -> None:
    """If results in an earlier output would be lost, back it up and warn about it."""
    path = back_up_lost(output, before, lines, result)
    if path:
        warn(f"{output} has results of other claims: they are kept in {path}")


def shares_table(lines: Sequence[ClaimsLine], output: Path, citations: bool) -> Table:
    """Return the share of supported claims, and with ``citations`` citation recall and precision."""
    shares = share_supported(supported_outcomes(lines))
    rows = []
    for name, counted in (("macro", "answers"), ("micro", "claims")):
        bounds = bounds_text(*shares[f"{name}_interval"])
        rows.append([name, f"{shares[name]:.4f}", bounds, shares[counted]])
    if citations:
        for name, interval, n in citation_shares(lines):
            rows.append([name, f"{interval.mean:.4f}", interval.bounds(), n])
    note = (
        f"unofficial: no expert has judged these claims, so all of them count; labels in {output}"
    )
    columns = ["", "AutoAIS", "95% interval", "answers or claims"]
    return Table("Supported claims", columns, rows, [note])


def say_unscored(unscored: Sequence[Unscored]) -> None:
    """Print why claims could not be scored, for the first ``MAX_REASONS_SHOWN`` of them."""
    for line, number, reason in unscored[:MAX_REASONS_SHOWN]:
        say(f"no score for claim {number} of {line}: {reason}", "yellow")


def say_unreadable(lines: Sequence[ClaimsLine]) -> None:
    """Warn about verdicts that are not a plain "true" or "false", with the mean score without them."""
    places = []
    readable_scores = []
    scores = []
    for line in lines:
        for number, claim in enumerate(line["claims"], start=1):
            verdicts: list[bool] = []
            unreadable: list[str] = []
            for decision in claim.get("decisions") or ():
                if decision["readable"]:
                    verdicts.append(decision["is_supported"])
                else:
                    unreadable.append(decision["reply"])
            if unreadable:
                places.append(f"claim {number} of {line['id']}: {unreadable[0]!r:.40}")
            if claim["fact_score"] is not None:
                scores.append(claim["fact_score"])
            share = fact_score(verdicts)
            if share is not None:
                readable_scores.append(share)
    if places:
        warn(
            f"claims with a verdict that is not a plain true or false: {len(places)} ({some(places)}). The authors' "
            f"reading counts most of them as true: the mean fact score is {_mean(scores)}, and "
            f"{_mean(readable_scores)} over the readable verdicts of {len(readable_scores)} claims"
        )


def _mean(scores: Sequence[float]) -> str:
    if not scores:
        return "undefined"
    return f"{sum(scores) / len(scores):.4f}"


def print_scores(
    lines: Sequence[ClaimsLine],
    output: Path,
    questions: Questions,
    groups: str,
    shown: Sequence[str] = (),
) -> None:
    """Print the scores of the lines, for each system and sample.

    Args:
        lines: lines of a file of claims.
        output: the file with the lines. Lines without a system are listed under the file's name.
        questions: the questions of the config. Lines with other ids are left out.
        groups: the prefix of the groups that are printed.
        shown: scores that are printed although they are not main scores.
    """
    ids = {question.id for question in questions.rows}
    by_system: dict[tuple[str, str], list[ClaimsLine]] = {}
    for line, (_, system, sample) in zip(lines, keys_of(lines), strict=True):
        if line["id"] in ids:
            by_system.setdefault((system, sample), []).append(line)
    known_lines = list(chain.from_iterable(by_system.values()))
    # The annotated answers of a config are by several systems, but each question has only one
    # answer, so they are scored together as one file of predictions.
    is_one_file = len({line["id"] for line in known_lines}) == len(known_lines)
    if is_one_file:
        by_system = {("", ""): known_lines}
    evaluations = []
    for (system, sample), own in by_system.items():
        path = output
        if not is_one_file:
            words = [system]
            # Most systems have only one sample, which needs no number.
            if sample != "1":
                words.append(sample)
            stem = "-".join(filter(None, words)) or output.stem
            path = output.with_name(f"{stem}{output.suffix}")
        evaluations.append(_evaluation(own, path, questions, groups, shown))
    by = []
    if any(evaluation.by_group("system") for evaluation in evaluations):
        by.append("system")
    print_evaluations(evaluations, by, "table")
    print_notes(evaluations, ())


def _evaluation(
    lines: Sequence[ClaimsLine], path: Path, questions: Questions, groups: str, shown: Sequence[str]
) -> Evaluation:
    rows = replace(read_predictions(lines, ("claims",)), path=str(path))
    whole = evaluate_predictions("expertqa", questions.config, rows, split=questions.split)
    specs = []
    for spec in whole.score_specs:
        if spec.group.startswith(groups):
            specs.append(replace(spec, main=spec.main or spec.name in shown))
    signatures = {}
    for group, signature in whole.signatures.items():
        if group.startswith(groups):
            signatures[group] = signature
    return replace(whole, score_specs=tuple(specs), signatures=signatures)
