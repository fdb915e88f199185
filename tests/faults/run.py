"""Runs campaigns of faults and prints the table of docs/reliability.md: tries, expected, observed.

python tests/faults/run.py [NAME ...] [--cases N] [--minutes M] [--seed S]
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from fault_harness import Campaign, run  # noqa: E402


def campaigns() -> dict[str, Campaign]:
    """All campaigns of the modules next to this one, by name."""
    modules = (importlib.import_module(path.stem) for path in sorted(HERE.glob("fault_*.py")))
    found = [campaign for module in modules for campaign in getattr(module, "CAMPAIGNS", ())]
    return {campaign.name: campaign for campaign in found}


def main() -> int:
    known = campaigns()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(known)}")
    parser.add_argument("--cases", type=int, help="cases per campaign; default: what fits into the time")
    parser.add_argument("--minutes", type=float, default=1.0, help="time per campaign")
    parser.add_argument("--seed", type=int, default=0, help="the first case's; repeat one case with --cases 1")
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"unknown campaigns: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    print("| campaign | fault | tries | expected | observed |\n|---|---|--:|---|---|")
    failed = False
    for name in options.names or known:
        if missing := known[name].needs():
            print(f"{name}: skipped, {missing}", file=sys.stderr)
            continue
        result = run(known[name], options.cases, options.minutes * 60, options.seed)
        print(result.row(), flush=True)
        for seed, what in result.wrong[:5]:
            print(f"  seed {seed}: {what}", file=sys.stderr)
        failed = failed or bool(result.wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
