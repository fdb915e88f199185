"""The commands ``qabench fanoutqa judge`` and ``qabench fanoutqa submit``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.cli.options import AsJson, ConfigName, Output, Questions, prices
from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.judge import Judge, Judged
    from qabench.benchmarks.fanoutqa.submission import Problem
    from qabench.evaluation import Evaluation
    from qabench.llm.client import Plan

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended
SHOWN = 10  # problems of each kind that are printed; the others are counted
LONGEST = 240  # characters of a problem
REPOSITORY = "https://github.com/zhudotexe/fanoutqa"
FOLDER = "leaderboard-submissions"

Answers = Annotated[str, typer.Argument(metavar="FILE", help='Answers, {"id", "answer"}; - for standard input.')]
Model = Annotated[str | None, typer.Option(help="The judge. Default: FANOUTQA_JUDGE_MODEL, or gpt-4o-2024-11-20.")]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="An OpenAI-compatible server, or huggingface for Hub-hosted models. Default: "
        "FANOUTQA_OPENAI_API_BASE, or OpenAI.",
    ),
]
PromptName = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE", help="official, qabench, auto (official if the authors' file is available), or a file."
    ),
]
CacheKey = Annotated[str, typer.Option(metavar="NAME", help="Do not use replies cached under another key.")]
PriceIn = Annotated[float | None, typer.Option(min=0, help="The price per million prompt tokens.")]
PriceOut = Annotated[float | None, typer.Option(min=0, help="The price per million reply tokens.")]


def judge(
    answers: Answers,
    config: ConfigName = None,
    questions: Questions = None,
    model: Model = None,
    base_url: BaseUrl = None,
    prompt: PromptName = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the estimated cost, and exit.")] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, help="The maximum number of calls.")] = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    cache_key: CacheKey = "",
    retries: Annotated[int, typer.Option(min=0, help="The number of retries of a failed call.")] = 5,
    concurrency: Annotated[int, typer.Option(min=1, help="The maximum number of concurrent calls.")] = 20,
    timeout: Annotated[float, typer.Option(help="The time limit per call, in seconds.")] = 120.0,
    output: Output = None,
    per_item: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one JSON line per question.")] = None,
    as_json: AsJson = False,
) -> None:
    """Let a language model judge a file of answers, as FanOutQA's authors do.

    The key is read from FANOUTQA_OPENAI_API_KEY (never OPENAI_API_KEY). Replies are cached: no call is paid for twice.
    Exit code: 0 all answers are judged; 1 some are not; 2 wrong usage.
    """
    from qabench.answers import UNANSWERED
    from qabench.benchmarks.fanoutqa.judge import judge_answers, judge_for, plan_judging
    from qabench.benchmarks.fanoutqa.official import DECLARATIONS
    from qabench.benchmarks.fanoutqa.questions import read_questions, with_answers
    from qabench.cli.output import plain_warnings, print_json, progress_bar, say_on_stderr
    from qabench.data.predictions import join, read_predictions
    from qabench.evaluation.signature import deviations, digest, signature
    from qabench.io.files import write_json, write_text
    from qabench.llm.endpoint import key_for_typed

    with plain_warnings():
        chosen = judge_for(
            model,
            base_url,
            key_for_typed(base_url),
            prompt=prompt,
            llm_cache_key=cache_key,
            retries=retries,
            concurrency=concurrency,
            timeout=timeout,
            max_calls=max_calls,
            prices=prices(price_in, price_out),
        )
        dataset = with_answers(read_questions(config, questions))
        joined = join(list(dataset.by_id), read_predictions(answers, ("answer",)))
        references = [dataset.reference(id) for id in joined.ids]
        predictions = [UNANSWERED if row is None else row.fields["answer"] for row in joined.rows]
        items = ([row["question"] for row in dataset.rows], references, predictions)
        if dry_run:
            _print_plan(plan_judging(*items, chosen), chosen, len(references), as_json)
            return
        try:
            with progress_bar("Judging") as progress:
                judged = judge_answers(*items, chosen, progress=progress)
        except KeyboardInterrupt:
            say_on_stderr("stopped; replies received so far are cached: repeat the command to continue")
            raise typer.Exit(INTERRUPTED) from None
    about = {"benchmark": "fanoutqa", "config": dataset.config}
    data = {"data": dataset.data_digest, "references": digest(references), "only_score_answered": False}
    line = signature("fanout_judge", **about, **data, **chosen.signature())
    sentences = [*deviations(line, DECLARATIONS["fanout_judge"]), *judged.deviations()]
    report = about | judged.as_dict(joined.ids) | {"problems": joined.problems()}
    report |= {"signature": line, "deviations": sentences}
    if output:
        write_json(output, report)
    if per_item and judged.score:
        rows = zip(joined.ids, judged.per_question(), strict=True)
        write_text(per_item, "".join(json.dumps({"id": id} | row) + "\n" for id, row in rows))
    if as_json:
        print_json(report)
    else:
        _print_judged(judged, report)
    if judged.score is None or judged.score.n < len(references):
        raise typer.Exit(1)


def _print_plan(plan: Plan, judge: Judge, questions: int, as_json: bool) -> None:
    from qabench.cli.output import print_json, print_table
    from qabench.io.tables import Table
    from qabench.llm.client import ESTIMATE

    endpoint = judge.caller.endpoint
    about = {"model": judge.caller.model, "endpoint": endpoint.base_url, "prompt": judge.prompt.label}
    if as_json:
        print_json(plan.as_dict() | about | ({"unusable": endpoint.why_unusable} if endpoint.why_unusable else {}))
        return
    rows: list[list[Any]] = [
        ["questions", questions],
        ["calls", plan.calls],
        ["cached", plan.cached],
        ["prompt tokens (estimate)", plan.prompt_tokens],
        ["reply tokens (estimate)", plan.completion_tokens],
        ["cost (estimate)", "unknown: give --price-in and --price-out" if plan.cost is None else f"{plan.cost:.4f}"],
    ]
    notes = [", ".join(f"{name} {value}" for name, value in about.items()), ESTIMATE, endpoint.why_unusable]
    print_table(Table("Plan", ["", "number"], rows, [*filter(None, notes)]))


def _print_judged(judged: Judged, report: dict[str, Any]) -> None:
    from qabench.cli.output import print_table, say
    from qabench.io.tables import Table

    if judged.absent:
        say(f"No judge score: {judged.absent}", "bold red")
    if (score := judged.score) is None:
        return
    means = [("gpt", score.gpt, score.n), ("gpt_readable", score.gpt_readable, score.n_readable)]
    rows = [[name, "none" if value is None else f"{value:.4f}", n] for name, value, n in means]
    print_table(Table(f"FanOutQA {report['config']}, judged by {report['model']}", ["", "score", "n"], rows))
    counts = report["counts"] | report["verdicts"] | judged.usage.as_dict()
    print_table(Table("Counts", ["", "number"], [[name, value] for name, value in counts.items()]))
    for problem in report["problems"]:
        say(problem, "yellow")
    for item in report["unreadable"]:
        say(f"no readable verdict on {item['id']}: {item['reason']}", "yellow")
    for deviation in report["deviations"]:
        say(f"not official: {deviation}", "yellow")
    say(f"gpt: {report['signature']}", "dim")


def submit(
    metadata: Annotated[Path, typer.Option(metavar="FILE", help="The system's metadata, as JSON; see --init.")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of the files: letters, digits, - and _.")
    ] = None,
    closed_book: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='Closed-book answers: a log of qabench run, or {"id", "answer"} per line.'),
    ] = None,
    open_book: Annotated[Path | None, typer.Option(metavar="FILE", help="Open-book answers (same formats).")] = None,
    evidence_provided: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Evidence-provided answers (same formats).")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write to, such as a clone of the repository.")
    ] = Path(FOLDER),
    init: Annotated[bool, typer.Option("--init", help="Only write a template of the metadata to FILE.")] = False,
    allow_unofficial: Annotated[
        bool,
        typer.Option("--allow-unofficial", help="Accept runs that differ from the authors'; noted in the metadata."),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Also exit with 2 after warnings.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, with all problems.")] = False,
) -> None:
    """Check a submission to FanOutQA's leaderboard and write the files of its pull request.

    A run with prompts, a protocol or parameters that differ from the authors' is rejected without --allow-unofficial.
    Exit code: 0 written; 1 the test questions are not available, or the files cannot be written; 2 rejected (nothing is
    written), or written with warnings and --strict.
    """
    from qabench.benchmarks.fanoutqa import submission
    from qabench.cli.output import print_json, say, say_on_stderr
    from qabench.data.predictions import read_predictions

    if init:
        _write_template(metadata, as_json)
        return
    if name is None:
        raise InputError("--name is required: the name of the submission's files")
    files = {"closedbook": closed_book, "openbook": open_book, "evidenceprovided": evidence_provided}
    answers: dict[str, Any] = {setting: path for setting, path in files.items() if path}
    deviations = {}
    for setting, path in answers.items():
        if path.suffix == ".eval":
            run = _read_run(path, setting)
            deviations[setting] = submission.run_deviations(run)
            # A failed question has no answer: the leaderboard counts it as unanswered.
            rows = [{"id": record.id, "answer": record.answer} for record in run.records if record.answer is not None]
            answers[setting] = replace(read_predictions(rows, ("answer",)), path=run.path)
    checked = submission.check(name, metadata, answers, submission.leaderboard_ids(), deviations, allow_unofficial)
    paths = [] if checked.errors else submission.write(checked, out)
    steps = _next_steps(name, out) if paths else []
    if as_json:
        print_json(
            {
                "benchmark": "fanoutqa",
                "name": name,
                "written": bool(paths),
                "files": list(map(str, paths)),
                "answers": {setting: len(predictions.rows) for setting, predictions in checked.answers.items()},
                "errors": [problem.as_dict() for problem in checked.errors],
                "warnings": [problem.as_dict() for problem in checked.warnings],
                "next": steps,
            }
        )
    else:
        for line, style in _lines(checked.problems):
            say_on_stderr(line, style)
        if paths:
            say("\n".join([f"Submission {name}:", *(f"  {path}" for path in paths)]))
            say("\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1)))
        else:
            counts = f"errors: {len(checked.errors)}, warnings: {len(checked.warnings)}"
            say_on_stderr(f"rejected, nothing was written; {counts}", "bold red")
    if checked.errors or (strict and checked.warnings):
        raise typer.Exit(2)


def _read_run(path: Path, setting: str) -> Evaluation:
    from qabench.runs.log import read_run

    run = read_run(path)
    if run.benchmark != "fanoutqa" or run.setting.replace("-", "") != setting:
        raise InputError(f"{path} is a run of {run.benchmark} {run.setting}, not of fanoutqa {setting}")
    return run


def _write_template(path: Path, as_json: bool) -> None:
    from qabench.benchmarks.fanoutqa.submission import ASKED, write_template
    from qabench.cli.output import print_json, say

    write_template(path)
    if as_json:
        print_json({"metadata": str(path), "keys": {name: key.about for name, key in ASKED.items()}})
        return
    say(f"Wrote {path}. Complete it, then run the command again without --init:")
    for name, key in ASKED.items():
        say(f"  {name}: {key.about}")


def _lines(problems: Sequence[Problem]) -> Iterator[tuple[str, str | None]]:
    """Yield lines to print, each with its style: the files, each with its problems, the first few of each kind."""
    for file in dict.fromkeys(problem.file for problem in problems):
        yield file, None
        of_file = [problem for problem in problems if problem.file == file]
        for kind in dict.fromkeys(problem.kind for problem in of_file):
            same = [problem for problem in of_file if problem.kind == kind]
            title, style = ("error", "red") if same[0].error else ("warning", "yellow")
            for problem in same[:SHOWN]:
                where = "" if problem.line is None else f"line {problem.line}: "
                message = problem.message
                short = message if len(message) <= LONGEST else f"{message[:LONGEST]}... (--json has the full text)"
                yield f"  {where}{title}: {short}", style
            if (more := len(same) - SHOWN) > 0:
                yield f"  {title}: and {more} more of this kind: {kind} (--json lists all)", style


def _next_steps(name: str, out: Path) -> list[str]:
    return [
        f"Fork {REPOSITORY} and clone your fork; create a branch, such as {name}.",
        f"Copy the files in {out} to its folder {FOLDER}/ (or write directly to it, with --out CLONE/{FOLDER}).",
        f'Commit only these files ("Add {name} to the leaderboard"), push, and open a pull request to its main branch.',
        "The authors' check scores the answers against the test answers, which are not public, and comments on the "
        "pull request; if it fails, fix the files and push again.",
    ]
