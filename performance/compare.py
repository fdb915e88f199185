"""Finds slowdowns: runs performance scripts with this checkout and with another revision, in turns.

    python performance/compare.py REV [NAME ...] [--pairs 15] [--size 10000]

Each revision has a process per script, with the package of that revision and the scripts of this
checkout. They take turns as A B B A, so that a drift of the machine's speed affects both. The ratio
(this checkout to REV) is the geometric mean over these groups of four, with a 95% interval. A case
is slower if the ratio is at least 1.1 and the whole interval is above 1; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import HERE, Case, cases_of, cpu_seconds, script_names, timed

ROOT = HERE.parent
LEAST = 1.1
CLOCKS = {"cpu": cpu_seconds, "wall": time.perf_counter}


class Worker:
    """A process with the package of one checkout, which runs a case when it is asked to."""

    def __init__(self, checkout: Path, folder: Path, args: argparse.Namespace, script: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(link_package(checkout, folder))}
        command = [
            sys.executable,
            __file__,
            "--serve",
            script,
            "--size",
            str(args.size),
            "--clock",
            args.clock,
        ]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def next_case(self) -> str:
        """Goes on to the next case and returns its name; "" after the last."""
        return self._asked("next").strip()

    def seconds(self) -> float:
        """Runs the case once."""
        return float(self._asked("run"))

    def close(self) -> None:
        """Ends the process."""
        self.process.communicate()

    def _asked(self, what: str) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(
                "a process has failed; the script may need functions that the other revision does not have"
            )
        return line


def link_package(checkout: Path, folder: Path) -> Path:
    """A folder for PYTHONPATH with the package ``qabench`` of a checkout, as setup.py assembles it."""
    package = folder / "qabench"
    if not package.exists():
        package.mkdir(parents=True)
        for name, source in runpy.run_path(str(checkout / "setup.py"), run_name="roots")[
            "ROOTS"
        ].items():
            children = (checkout / source).iterdir() if name == "qabench" else [checkout / source]
            for child in children:
                (package / child.name).symlink_to(child)
    return folder


def serve(args: argparse.Namespace) -> None:
    """The loop of a worker: answers "next" with the name of the next case, and "run" with seconds."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the work prints is not an answer
    size = largest_size(args.serve, args.size)
    cases = (case for at, case in cases_of(args.serve, args.size) if at in (None, size))
    case: Case | None = None
    for line in sys.stdin:
        if case and line == "run\n":
            answer = str(timed(case.ours, CLOCKS[args.clock]).seconds)
        elif case := next(cases, None):
            case.ours()  # imports, compiles and builds what it needs
            answer = case.name
        else:
            answer = ""
        print(answer, file=output, flush=True)


def largest_size(script: str, size: int) -> int | None:
    """The largest size of a script up to ``size``."""
    return max(
        (n for n in getattr(importlib.import_module(script), "SIZES", ()) if n <= size),
        default=None,
    )


def compared(old: Worker, new: Worker, pairs: int) -> tuple[float, float, float]:
    """The ratio of the new seconds to the old ones, and the bounds of its 95% interval."""
    from qabench.stats import mean_interval

    logs = []
    for number in range(pairs):
        first, second = (new, old) if number % 2 else (old, new)
        times: dict[Worker, float] = {old: 0.0, new: 0.0}
        for worker in (first, second, second, first):
            times[worker] += worker.seconds()
        logs.append(math.log(times[new] / times[old]))
    interval = mean_interval(logs)
    middle = sum(logs) / len(logs)
    return math.exp(middle), math.exp(interval.low), math.exp(interval.high)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", nargs="?", default="HEAD", metavar="REV")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"scripts: {', '.join(script_names())}; default: all",
    )
    parser.add_argument("--pairs", type=int, default=15, help="groups of four runs per case")
    parser.add_argument("--size", type=int, default=10_000, help="of scripts with sizes")
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default="cpu",
        help="cpu: of the process and of its processes that have ended",
    )
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args)
        return
    with tempfile.TemporaryDirectory() as name:
        other = Path(name) / "checkout"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", other, args.revision],
            cwd=ROOT,
            check=True,
        )
        try:
            slower = sum(
                show(script, other, Path(name), args) for script in args.names or script_names()
            )
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", other], cwd=ROOT, check=True)
    sys.exit(slower > 0)


def show(script: str, other: Path, folder: Path, args: argparse.Namespace) -> int:
    """Prints the ratios of a script's cases; returns the number of cases that are slower."""
    old = Worker(other, folder / "old", args, script)
    new = Worker(ROOT, folder / "new", args, script)
    slower = 0
    while case := new.next_case():
        old.next_case()
        ratio, low, high = compared(old, new, args.pairs)
        is_slower = ratio >= LEAST and low > 1
        slower += is_slower
        print(
            f"{script}: {case:50} {ratio:.3f} ({low:.3f} to {high:.3f}){'  SLOWER' if is_slower else ''}",
            flush=True,
        )
    for worker in (old, new):
        worker.close()
    return slower


if __name__ == "__main__":
    main()
