"""``qabench judge``, ``sample`` and ``plan``: measure judges, sample items to label, plan runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.options import (
    BenchmarkName,
    ConfigName,
    DryRun,
    Format,
    Output,
    PriceIn,
    PriceOut,
    Scores,
    benchmark_and_files,
    files_of,
    output_folder,
    prices,
)
from qabench.cli.output import (
    hint,
    plain_warnings,
    print_table,
    print_tables,
    progress_bar,
)
from qabench.cli.run import parse_pairs
from qabench.errors import InputError
from qabench.io.files import check_writable, write_json, write_text
from qabench.io.tables import Table

# Names with these endings are files of replies. Other names with dots can be models.
REPLY_FILES = (".csv", ".eval", ".gz", ".json", ".jsonl", ".parquet", ".tsv")


def judge(
    benchmark: BenchmarkName,
    judges: Annotated[
        list[str],
        Argument(
            metavar="JUDGE...",
            help="A judge: an Inspect AI model name (anthropic/NAME, hf/ORG/NAME, ...), the name of a model on the "
            "server --base-url, or a file of replies or a log, which need no calls.",
        ),
    ],
    base_url: Annotated[
        str | None,
        Option(metavar="URL", help="An OpenAI-compatible server, or huggingface."),
    ] = None,
    model_args: Annotated[
        list[str] | None,
        Option("-M", metavar="NAME=VALUE", help="An argument of the provider. May be repeated."),
    ] = None,
    config: ConfigName = None,
    split: Annotated[str | None, Option(help="A split of the config, if it has several.")] = None,
    method: Annotated[
        str | None, Option(help="How judges are asked, such as raw or cot. Default: the first.")
    ] = None,
    prompt: Annotated[str, Option(help="official, qabench, auto, or a file.")] = "auto",
    limit: Annotated[
        int | None, Option(min=2, help="Ask about a random sample of N questions.")
    ] = None,
    max_calls: Annotated[
        int | None,
        Option(
            min=0, help="Send at most N calls per judge. To continue, run the same command again."
        ),
    ] = None,
    concurrency: Annotated[int | None, Option(min=1, help="Concurrent calls. Default: 20.")] = None,
    timeout: Annotated[
        float | None, Option(min=0.001, metavar="SECONDS", help="Time limit of a call.")
    ] = None,
    published: Annotated[
        bool, Option("--published", help="Also show the published judges of this benchmark.")
    ] = False,
    by: Annotated[
        list[str] | None,
        Option("--by", metavar="GROUPING", help="Show this grouping, such as length."),
    ] = None,
    replies: Annotated[
        Path | None, Option(help="Write the replies of a single judge as predictions (JSONL).")
    ] = None,
    report: Annotated[
        Path | None,
        Option(metavar="DIR", callback=output_folder, help="Write a report page to this folder."),
    ] = None,
    dry_run: DryRun = False,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    format: Format = "table",
    output: Output = None,
) -> None:
    """Compare judges with people's labels of the same items.

    Judges are asked about data that people labeled, by default with the benchmark's official
    prompts. Replies are cached for all processes: after an interrupt or --max-calls, the same
    command asks only for the missing ones.
    """
    from qabench.llm.caller import caller_for
    from qabench.llm.endpoint import key_for_typed
    from qabench.runs.judges import judge as compared_with_people

    # Find what is wrong before a judge is asked, which costs money.
    for option, path in (("--replies", replies), ("--report", report)):
        if dry_run and path:
            raise InputError(f"--dry-run asks no judge, so there is nothing to write for {option}")
    protected = list(filter(os.path.exists, judges))
    if output:
        check_writable(output, [*protected, replies])
    if replies:
        check_writable(replies, protected)
    if report:
        check_writable(report / "index.html")
    if replies and len(judges) > 1:
        raise InputError(f"--replies is for a single judge; got {len(judges)}")

    # A judge is a file, which is read now, or a model.
    limits = {"max_calls": max_calls, "concurrency": concurrency, "timeout": timeout}
    limits["prices"] = prices(price_in, price_out)
    arguments = parse_pairs("-M", model_args)
    compared: list[Any] = []
    for name in judges:
        if Path(name).is_file():
            compared.append(_evaluation(benchmark_of(benchmark), config, split, name))
            continue
        # Without this check, the name of a file that does not exist would be taken for a model.
        if name.endswith(REPLY_FILES):
            raise InputError(
                f"cannot read {name}: No such file. A judge is a model, or a file of replies"
            )
        key = key_for_typed(base_url)
        compared.append(caller_for(name, base_url, key, model_args=arguments or None, **limits))
    asking: dict[str, Any] = {"method": method, "prompt": prompt, "split": split}
    if dry_run:
        _print_plan(benchmark, config, compared, limit, format, output, **asking)
        return

    # Ask the models.
    with ExitStack() as stack:
        stack.enter_context(plain_warnings())

        # Each model that is asked opens its own bar, and the stack closes all of them.
        def progress(model: str) -> Callable[[int, int], None]:
            return stack.enter_context(progress_bar(f"Asking {model}", "replies"))

        try:
            result = compared_with_people(
                benchmark,
                compared,
                config,
                limit=limit,
                published=published,
                by=by or (),
                save=replies,
                progress=progress,
                **asking,
            )
        except KeyboardInterrupt:
            hint(
                "interrupted: the replies so far are kept, and the same command asks for the others"
            )
            raise

    # Files are written before tables are printed: see ``qabench.cli.evaluations.show``.
    document = result.as_dict()
    if output:
        write_json(output, document)
    if report:
        from qabench.report import build_report

        page = build_report(list(result.evaluations.values()), report, result.tables())
        write_json(report / "judges.json", document)
        hint(f"{page}; the numbers of the judges as JSON: {report / 'judges.json'}", None)
    print_tables(result.tables(), format, document)


def _evaluation(benchmark: Benchmark, config: str | None, split: str | None, path: str) -> Any:
    """Read a judge's file of replies or log, and leave out the questions it was not asked about."""
    from qabench.data.rows import without_none
    from qabench.evaluation import MISSING
    from qabench.runs.judges import only_asked
    from qabench.runs.sources import read_evaluations

    options = without_none({"split": split})
    with plain_warnings():
        evaluations = read_evaluations([path], benchmark, config, **options).evaluations
    if len(evaluations) != 1:
        raise InputError(f"{path} has {len(evaluations)} systems; give one file for each judge")
    (evaluation,) = evaluations
    ids = {record.id for record in evaluation.records if record.status != MISSING}
    return only_asked(evaluation, ids)


def _print_plan(
    benchmark: str,
    config: str | None,
    judges: list[Any],
    limit: int | None,
    format: str,
    output: Path | None,
    *,
    method: str | None,
    prompt: str,
    split: str | None,
) -> None:
    """Print the calls, tokens and cost that judges would need, and write them as JSON."""
    from qabench.data.rows import without_none
    from qabench.evaluation.records import distinct
    from qabench.llm.caller import Caller
    from qabench.llm.client import Plan
    from qabench.llm.routing import client_for
    from qabench.llm.token_estimates import ESTIMATE
    from qabench.runs.judges import chosen, cost_table

    chosen_benchmark = benchmark_of(benchmark)
    questions = chosen(
        chosen_benchmark.load(config, None, **without_none({"split": split})).rows, limit
    )
    callers = [caller for caller in judges if isinstance(caller, Caller)]
    plans: dict[str, Plan] = {}
    planned: set[bytes] = set()
    # The same model may be named twice.
    judge_labels = distinct([caller.model for caller in callers])
    for label, caller in zip(judge_labels, callers, strict=True):
        calls = chosen_benchmark.judging().calls(questions, caller, method, prompt)
        requests = [call.request for call in calls]
        keys = {request.key(caller.endpoint.base_url) for request in requests}
        plan = client_for(caller).plan(requests)
        if keys <= planned:
            # This judge was named before, so all its replies will be in the cache by then.
            plan = Plan(0, len(keys), 0, 0, None if plan.cost is None else 0.0)
        plans[label] = plan
        planned |= keys
    document = {"estimate": {model: plan.as_dict() for model, plan in plans.items()}}
    if output:
        write_json(output, document)
    notes = [ESTIMATE] if plans else ["no calls are needed: all judges are files"]
    costs = [plan.cost for plan in plans.values()]
    if None in costs:
        notes.append("the cost is unknown: give --price-in and --price-out")
    table = cost_table(f"Estimate of qabench judge {benchmark}", plans, notes)
    print_table(table, format, document)


def sample(
    files: Annotated[
        list[str],
        Argument(
            metavar="[BENCHMARK] FILE...",
            help="Predictions or logs that a judge has scored, as for `qabench score`.",
        ),
    ],
    output: Annotated[
        Path, Option("--output", "-o", metavar="FILE", help="The table to fill in, as CSV.")
    ],
    labels: Annotated[int, Option(min=2, help="The number of items to label, for each system.")],
    seed: Annotated[int, Option(min=0, help="The seed for drawing the sample.")] = 0,
    config: ConfigName = None,
    scores: Scores = None,
    score: Annotated[
        str | None, Option("--judged", help="The judged score to sample. Default: the first.")
    ] = None,
    stratify: Annotated[
        str | None,
        Option(
            help="verdict, or a grouping: draw equally many items per group, as far as possible, with weights."
        ),
    ] = None,
    format: Format = "table",
    **options: Any,
) -> None:
    """Write a random sample of judged items as a table, for people to label.

    The table has id, question, reference, answer, and a column label to fill in, which is 0 for
    empty answers. `qabench score --human` reads the labeled table.
    """
    from qabench.runs.sampling import sample as drawn
    from qabench.runs.sources import read_evaluations

    benchmark, paths = benchmark_and_files(files)
    check_writable(output, files_of(paths))
    values = benchmark.checked_options(options)
    with plain_warnings(), progress_bar("Scoring", "texts") as progress:
        sources = read_evaluations(
            paths, benchmark, config, scores=scores, progress=progress, **values
        )
    sources.check_any("sample")
    result = drawn(sources.evaluations, labels, seed=seed, score=score, stratify=stratify)
    write_text(output, result.as_csv())
    rows: list[list[Any]] = []
    for what, width in result.widths.items():
        rows.append([what, f"{width:.4f}"])
    title = (
        f"{output}: {result.labels} of {result.n:,} items of {result.score}, "
        f"seed {seed}; expected width of the 95% interval"
    )
    table = Table(title, ["", "width"], rows, [*result.notes, *sources.notes])
    document = {
        "path": str(output),
        "score": result.score,
        "labels": result.labels,
        "n": result.n,
        "seed": seed,
        "expected_widths": result.widths,
        "notes": list(table.notes),
    }
    print_table(table, format, document)


def plan(
    benchmark: BenchmarkName,
    difference: Annotated[
        float, Option(metavar="D", help="The difference that a paired test should find.")
    ],
    power: Annotated[float, Option(metavar="P", help="The probability of finding it.")] = 0.8,
    systems: Annotated[
        list[str] | None,
        Option(
            "--from",
            metavar="A B",
            help="Two systems (predictions or logs) to estimate the variance from. Default: published scores.",
        ),
    ] = None,
    config: ConfigName = None,
    score: Annotated[
        str | None, Option(help="The name of a score. Default: the benchmark's main score.")
    ] = None,
    format: Format = "table",
    output: Output = None,
    **options: Any,
) -> None:
    """Say how many questions and repetitions a comparison of two systems needs.

    It also says what difference the benchmark's own questions can show, like "detectable" in the
    output of `qabench compare`.
    """
    from qabench.runs.planning import plan as planned

    if output:
        check_writable(output)
    values = benchmark_of(benchmark).checked_options(options)
    # Without --from, published scores are read, which scoring options cannot change.
    if values and not systems:
        raise InputError(
            f"{', '.join(values)}: scoring options, which have no effect without --from"
        )
    with plain_warnings():
        result = planned(
            benchmark, difference, power, systems or (), config=config, score=score, **values
        )
    document = result.as_dict()
    if output:
        write_json(output, document)
    print_tables(result.tables(), format, document)
