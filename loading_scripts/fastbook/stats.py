"""Statistics of fastbook-benchmark, computed from the dataset's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from qabench.io.tables import Table
from qabench.loading_scripts import LEADERBOARD
from qabench.loading_scripts.fastbook.parse import CELL_TYPES, chapter_cells
from qabench.loading_scripts.published import PublishedScore, published_table

# The tables of the source's README, chapter by chapter; their last rows are the sums.
CHAPTERS = (1, 2, 4, 8, 9, 10, 13)
PUBLISHED = {
    "questions": (30, 26, 31, 23, 27, 20, 34),
    "components": (78, 58, 73, 31, 48, 27, 42),
    "empty": (8, 5, 8, 1, 1, 1, 1),
    "implicit": (8, 5, 10, 3, 4, 4, 7),
    "extraneous": (7, 2, 8, 1, 0, 0, 1),
}
PUBLISHED_MEANS = {1: 2.6, 2: 2.2, 4: 2.4, 8: 1.3, 9: 1.8, 10: 1.4, 13: 1.2, "all": 1.9}
PUBLISHED_CHARACTERS = 503_769  # of all seven chapters; the source does not have them by chapter
TITLES = {
    "questions": "Questions by chapter",
    "components": "Answer components by chapter",
    "empty": "Answer components without context by chapter",
    "implicit": "Answer components with explicit_context false by chapter",
    "extraneous": "Answer components with extraneous_answer true by chapter",
}
NOTES = {
    "empty": "Such a component is never retrieved, so its question has an official MRR@k of 0.",
    "implicit": "Every component without context is among them.",
}

Rows = list[Mapping[str, Any]]
Counts = Mapping[int, int]


def tables(config: str, splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Table]:
    """Return the source's six tables and further counts of a config.

    Args:
        config: a config of the dataset; those of the sample have no published numbers.
        splits: the rows of each split.
    """
    rows = [row for split in splits.values() for row in split]
    if config == LEADERBOARD:
        return [published_table(PublishedScore(**row) for row in rows)]
    official = not config.startswith("sample")
    kind = "questions" if config == "sample" else config.removeprefix("sample_")
    return {"questions": _questions, "corpus": _corpus, "keywords": _keywords, "qrels": _qrels}[kind](rows, official)


def _questions(rows: Rows, official: bool) -> list[Table]:
    counts: dict[str, Counter[int]] = {name: Counter() for name in TITLES}
    for row in rows:
        chapter, components = row["chapter"], row["answer_context"]
        counts["questions"][chapter] += 1
        counts["components"][chapter] += len(components)
        counts["empty"][chapter] += sum(not item["context"] for item in components)
        counts["implicit"][chapter] += sum(not item["explicit_context"] for item in components)
        counts["extraneous"][chapter] += sum(item["extraneous_answer"] for item in components)
    tables = [
        _by_chapter(TITLES[name], counts[name], _published(name) if official else {}, NOTES.get(name))
        for name in TITLES
    ]
    tables.insert(2, _means(counts["questions"], counts["components"], official))
    return [*tables, _contexts(rows), _others(rows)]


def _means(questions: Counter[int], components: Counter[int], official: bool) -> Table:
    means: dict[int | str, float] = {chapter: components[chapter] / n for chapter, n in sorted(questions.items())}
    if questions:
        means["all"] = components.total() / questions.total()
    published = PUBLISHED_MEANS if official else {}
    lines: list[list[Any]] = [[key, published.get(key), round(mean, 1)] for key, mean in means.items()]
    return Table("Answer components per question, mean by chapter", ["chapter", "published", "here"], lines)


def _contexts(rows: Rows) -> Table:
    sizes = Counter(len(item["context"]) for row in rows for item in row["answer_context"])
    lines: list[list[Any]] = [[size, sizes[size]] for size in sorted(sizes)]
    return Table("Answer components by their number of contexts", ["contexts", "components"], lines)


def _others(rows: Rows) -> Table:
    components = [item for row in rows for item in row["answer_context"]]
    lines: list[list[Any]] = [
        ["contexts", sum(len(item["context"]) for item in components)],
        ["components with several strings", sum(len(item["answer_component"]) > 1 for item in components)],
        ["components whose scoring_type is simple", sum(item["scoring_type"] == "simple" for item in components)],
        ["questions with one component", sum(len(row["answer_context"]) == 1 for row in rows)],
        [
            "questions with a component without context",
            sum(not all(item["context"] for item in row["answer_context"]) for row in rows),
        ],
        ["questions with question_context", sum(bool(row["question_context"]) for row in rows)],
        ["entries of question_context", sum(len(row["question_context"]) for row in rows)],
    ]
    return Table("Other counts of the questions", ["count", "here"], lines)


def _corpus(rows: Rows, official: bool) -> list[Table]:
    characters = {row["chapter"]: len(row["text"]) for row in rows}
    published: dict[int | str, int] = {"all": PUBLISHED_CHARACTERS} if official else {}
    cells: list[list[Any]] = []
    for row in rows:
        kinds = Counter(cell["cell_type"] for cell in row["cells"])
        before = sum(1 for _ in chapter_cells(row["cells"]))
        cells.append([row["chapter"], row["title"], *(kinds[kind] for kind in CELL_TYPES), before, len(row["cells"])])
    if cells:
        cells.append(["all", "", *(sum(column) for column in zip(*(line[2:] for line in cells), strict=True))])
    note = "Only the total length is published. The text of a chapter ends before the questionnaire."
    columns = ["chapter", "title", *CELL_TYPES, "before the questionnaire", "all cells"]
    return [
        _by_chapter("Characters of the text by chapter", characters, published, note if official else None),
        Table("Cells of the notebooks", columns, cells),
    ]


def _keywords(rows: Rows, official: bool) -> list[Table]:
    queries: Counter[int] = Counter(row["chapter"] for row in rows)
    words: Counter[int] = Counter()
    for row in rows:
        words[row["chapter"]] += len(row["keywords"].split(","))
    return [
        _by_chapter("Keyword queries by chapter", queries, _published("questions") if official else {}),
        _by_chapter("Keywords by chapter", words, {}),
    ]


def _qrels(rows: Rows, official: bool) -> list[Table]:
    contexts: Counter[int] = Counter(row["chapter"] for row in rows)
    components = Counter(chapter for chapter, *_ in {(r["chapter"], r["query_id"], r["component_index"]) for r in rows})
    published: dict[int | str, int] = {}
    if official:
        whole, empty = _published("components"), _published("empty")
        published = {key: whole[key] - empty[key] for key in whole}
    note = "The published number is that of the components with context; the others have no row here."
    return [
        _by_chapter("Passages by chapter", contexts, {}),
        _by_chapter("Answer components with a passage, by chapter", components, published, note if official else None),
    ]


def _published(name: str) -> dict[int | str, int]:
    return {**dict(zip(CHAPTERS, PUBLISHED[name], strict=True)), "all": sum(PUBLISHED[name])}


def _by_chapter(title: str, counts: Counts, published: Mapping[int | str, int], note: str | None = None) -> Table:
    lines: list[list[Any]] = [[chapter, published.get(chapter), counts[chapter]] for chapter in sorted(counts)]
    lines.append(["all", published.get("all"), sum(counts.values())])
    return Table(title, ["chapter", "published", "here"], lines, [note] if note else [])
