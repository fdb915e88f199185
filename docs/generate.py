"""Write the generated parts of cards and pages: ``python docs/generate.py [--check] [FILE ...]``.

A generated part is what is between the lines ``<!-- generated: NAME ARGUMENT ... -->`` and ``<!--
end -->``. In a page of the site, the part ``output`` is what the code block before it prints: all
code of the page is run, with a scripted model. With ``--check`` nothing is written, and the exit
code is 1 if a file is not current. Parts whose source files are not available (set QABENCH_MIRROR)
stay as they are.

With ``--metadata``, the given cards of datasets get the ``configs`` and ``dataset_info`` of
``qabench build``.
"""

from __future__ import annotations

import argparse
import inspect
import pkgutil
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

import yaml
from cards import card_parts
from code_blocks import BLOCK, run_blocks, scripted_model
from datasets import Features
from huggingface_hub import metadata_load

from qabench.adapters.inspect_ai.facts import TABLES
from qabench.errors import SourceError
from qabench.evaluation.harness_fields import SIGNED, SYSTEM, UNSIGNED
from qabench.hub.build import build
from qabench.hub.cards import ABOUT
from qabench.loading_scripts import dataset_table
from qabench.runs.lm_eval_facts import TABLES as LM_EVAL_TABLES

ROOT = Path(__file__).parents[1]
CARDS = sorted([*ROOT.glob("loading_scripts/*/README.md"), *ROOT.glob("metrics/*/README.md")])
SIGNATURES = ROOT / "docs/reference/signatures.md"
PYTHON = ROOT / "docs/reference/python.md"
PAGES = sorted(
    path
    for path in (ROOT / "docs").rglob("*.md")
    if path in (SIGNATURES, PYTHON) or BLOCK.search(path.read_text(encoding="utf-8"))
)
OUTPUT = "output"
MAX_LINE = 124  # as in hooks.py: characters of a line on a laptop
IN_SIGNATURES = {SIGNED: "yes, official values only", SYSTEM: "yes, any value", UNSIGNED: "no"}
# What differs between machines and moments.
UNSTEADY = {
    r"http://127\.0\.0\.1:\d+": "http://localhost:8000",
    r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\S*?_": "DATE_",
    r"_[0-9A-Za-z]{22}\.eval": "_ID.eval",
    r"\b\d+(\.\d+)? (s|seconds|ms)\b": "N s",
    r"(?<=qabench:)([\d.]+)\+[\w.]+": r"\1",  # the commit of a checkout
}
# A digest depends on the version, too.
VERSION = re.compile(r"-\d+(\.\d+)+\b|(?<=qabench:)\S+|(?<=digest:)\w+")
# What the site documents here: an object, or members of a module.
DOCUMENTED = re.compile(r"^::: (\S+)(?:\n    options:\n      members: \[(.*)\])?", re.MULTILINE)
PART = re.compile(r"(?<=<!-- generated: )([^\n]+?)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def generated(text: str, parts: Mapping[str, Callable[..., str]]) -> str:
    """Return the text with its generated parts written anew.

    Args:
        text: a card or page.
        parts: by name of a part, a function of the part's arguments that writes it.
    """

    def written(part: re.Match[str]) -> str:
        name, *arguments = part[1].split()
        if name not in parts:
            return part[0]
        try:
            return f"{part[1]}{part[2]}\n{parts[name](*arguments)}\n\n"
        except SourceError:
            # The files are not on this machine.
            return part[0]

    return PART.sub(written, text)


def current(path: Path) -> str:
    """Return a card or page as it should be."""
    text = path.read_text(encoding="utf-8")
    if path in CARDS:
        return generated(text, card_parts(path))
    parts = {"facts": facts, "results": results_of_card, "names": lambda: names(text)}
    return page_with_outputs(generated(text, parts), outputs_of(text))


def with_metadata(path: Path) -> str:
    """Return a dataset's card with the configs that `qabench build` writes.

    They are the end of the metadata. A config without data stays as it is. The sizes of files are
    left out, which depend on the versions of libraries.
    """
    text = path.read_text(encoding="utf-8")
    old = metadata_load(path) or {}
    with tempfile.TemporaryDirectory() as folder:
        (built,) = build(Path(folder), [path.parent.name])
        new = metadata_load(built.path / "README.md") or {}
    parts = {}
    for key in ("configs", "dataset_info"):
        by_name = {entry["config_name"]: entry for entry in old.get(key, [])}
        new_entries = new[key] if isinstance(new[key], list) else [new[key]]
        by_name |= {entry["config_name"]: entry for entry in new_entries}
        parts[key] = list(by_name.values())
    for config in parts["configs"]:
        # A build without the data of the default config has another one.
        config.pop("default", None)
        if config["config_name"] == dataset_table(path.parent.name).default:
            config["default"] = True
    for info in parts["dataset_info"]:
        # The card has its own text about the dataset.
        for key in ("download_size", "dataset_size", *ABOUT):
            info.pop(key, None)
        # nor has it the descriptions of the fields: its tables have them
        info["features"] = Features._from_yaml_list(info["features"])._to_yaml_list()
    _, front, body = text.split("---\n", 2)
    first = re.split(r"^(?:configs|dataset_info):", front, maxsplit=1, flags=re.MULTILINE)[0]
    return f"---\n{first}{yaml.safe_dump(parts, sort_keys=False)}---\n{body}"


def facts() -> str:
    """Return tables of what the fields of harnesses mean for signatures.

    The fields are those of Inspect's log and of lm-evaluation-harness, and arguments of providers.
    """
    lines = []
    for name, (title, table) in {**TABLES, **LM_EVAL_TABLES}.items():
        is_class = name in TABLES and name != "MODEL_ARGS"
        heading = f"{title} (`{name}`)" if is_class else title
        lines += [f"### {heading}", "", "| field | in signatures | why |", "|---|---|---|"]
        fields: dict[tuple[str, str], list[str]] = {}
        for name, treatment in table.items():
            fields.setdefault(treatment, []).append(f"`{name}`")
        for (treatment, reason), names in fields.items():
            lines.append(f"| {', '.join(names)} | {IN_SIGNATURES[treatment]} | {reason} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def results_of_card(name: str) -> str:
    """Return the published results in a dataset's card, which needs no source files."""
    card = (ROOT / "loading_scripts" / name / "README.md").read_text(encoding="utf-8")
    return card.partition("<!-- generated: results -->")[2].partition("<!-- end -->")[0].strip()


def names(page: str) -> str:
    """Return a table of the names that a page documents, with the first sentence about each."""
    lines = ["| name | what it is |", "|---|---|"]
    for place, members in DOCUMENTED.findall(page):
        listed = [f"{place}.{member.strip()}" for member in members.split(",") if member.strip()]
        for name in listed or [place]:
            about = inspect.getdoc(pkgutil.resolve_name(name)) or ""
            sentence = " ".join(about.partition("\n\n")[0].split())
            lines.append(f"| `{name}` | {sentence.replace('``', '`').replace('|', '&#124;')} |")
    return "\n".join(lines)


def outputs_of(page: str) -> list[str]:
    """Return what each code block of a page prints.

    The blocks run in an empty folder, with empty caches and without network access.
    """
    with tempfile.TemporaryDirectory() as folder, scripted_model() as url:
        offline = {
            "HF_HUB_OFFLINE": "1",
            "QABENCH_OFFLINE": "1",
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
            "COLUMNS": str(MAX_LINE),
        }
        caches = {"HF_HOME": f"{folder}/huggingface", "QABENCH_CACHE": f"{folder}/cache"}
        work = Path(folder, "work")
        work.mkdir()
        printed = run_blocks(page, work, MODEL_URL=url, **offline, **caches)
        return [steady(text, work) for text in printed]


def steady(text: str, folder: Path) -> str:
    """Return printed text without paths, ports, dates and durations."""
    text = text.replace(f"{folder}/", "").strip("\n")
    for pattern, instead in UNSTEADY.items():
        text = re.sub(pattern, instead, text)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def page_with_outputs(page: str, outputs: Sequence[str]) -> str:
    """Return a page with the outputs of its code blocks in its parts ``output``.

    An output that differs only in versions stays as it is, because they change with every
    installation.
    """

    def written(part: re.Match[str]) -> str:
        if part[1] != OUTPUT:
            return part[0]
        number = len(BLOCK.findall(page[: part.start()])) - 1
        new = f"{part[1]}{part[2]}\n```text\n{outputs[number]}\n```\n\n"
        if _without_versions(new) == _without_versions(part[0]):
            return part[0]
        return new

    return PART.sub(written, page)


def _without_versions(text: str) -> str:
    return VERSION.sub("", text)


def main() -> None:
    """Write or check the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, default=[*CARDS, *PAGES])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--metadata", action="store_true")
    given = parser.parse_args()
    stale = 0
    for path in map(Path.resolve, given.files):
        made = with_metadata(path) if given.metadata else current(path)
        if made != path.read_text(encoding="utf-8"):
            stale += 1
            print(path.relative_to(ROOT))
            if not given.check:
                path.write_text(made, encoding="utf-8")
    sys.exit(bool(stale) and given.check)


if __name__ == "__main__":
    main()
