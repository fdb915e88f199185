"""Tables for papers: columns, bold, marks, captions, percent, groups, several benchmarks, and LaTeX."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import qabench
from qabench.benchmarks import benchmark
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Record
from qabench.evaluation.comparison import compare, compare_groups
from qabench.evaluation.groupings import grouping_sentences
from qabench.evaluation.matching import with_lower_better
from qabench.evaluation.number_form import NumberForm, number_form, p_equation, p_text
from qabench.evaluation.score_papers import paper_tables
from qabench.evaluation.signature import Field, short_signature
from qabench.evaluation.tables import group_table
from qabench.io.escaping import latex_text
from qabench.runs.foreign import evaluation_of

pytestmark = pytest.mark.quick
FANOUTQA = benchmark("fanoutqa")
LOOSE, STRICT = (FANOUTQA.score_spec(name) for name in ("acc.loose", "acc.strict"))
SIGNATURE = "fanout_acc|benchmark:fanoutqa|config:dev|lemmatizer:simplemma-2.0.0|asked:3-abc|qabench:0.2.0"
NAMES = ['a_b & "c" <d> | 50% -- {e} [f] ~^\\ #$ *', "second"]


def evaluation(name: str, values: list[float], config: str = "dev", **fields: object) -> Evaluation:
    records = []
    for number, value in enumerate(values):
        groups = {"category": ("even", "all") if number % 2 == 0 else ("odd",), "type": ("str",) if number else ()}
        scores = {"acc.loose": value, "acc.strict": float(value == 1)}
        records.append(Record(str(number), 1, "q", "", [], "a", "answered", scores=scores, groups=groups))
    about = (f"{name}.jsonl", "predictions", "fanoutqa", config, "predictions", name, "2026-01-01", "success")
    return Evaluation(*about, len(records), records, score_specs=FANOUTQA.scores, **fields)  # type: ignore[arg-type]


GOOD, BAD = [1.0] * 15 + [0.5] * 5, [1.0] * 3 + [0.25] * 17


@pytest.fixture(scope="module")
def systems() -> dict[str, Evaluation]:
    return {"good": evaluation("good", GOOD), "good 2": evaluation("good 2", GOOD), "bad": evaluation("bad", BAD)}


def test_systems_are_rows_and_scores_columns(systems: dict[str, Evaluation]) -> None:
    (table,) = paper_tables(list(systems.values()))
    lines = table.markdown().splitlines()
    assert lines[0] == "| system | Loose accuracy | Strict accuracy |" and len(lines[:5]) == 2 + len(systems)
    assert [line.count("**") for line in lines[2:5]] == [4, 4, 0], "both best systems are bold"
    assert [line.count("†") for line in lines[2:5]] == [0, 0, 2]
    caption = lines[6]
    for part in ("n = 20 questions", "Not official: Loose accuracy, Strict accuracy", "95% confidence intervals"):
        assert part in caption
    assert (
        "Bold: best score. † significantly worse than the best system (two-sided paired randomization test" in caption
    )
    latex = table.latex()
    assert latex.count("\\textbf{") == 4 and latex.count("\\rlap{$^{\\dagger}$}") == 2
    assert latex.count("\\caption{") == 1 and "\\label{tab:fanoutqa-dev}" in latex


def test_a_score_whose_lower_value_is_better(systems: dict[str, Evaluation]) -> None:
    marks = compare(systems, replace(LOOSE, higher_is_better=False), resamples=200).marks()
    assert marks.best == {"bad"} and marks.worse == {"good", "good 2"}


def test_a_baseline_has_its_own_pairs_and_marks(systems: dict[str, Evaluation]) -> None:
    compared = compare(systems, LOOSE, resamples=500, baseline="bad")
    assert len(compared.pairs) == 2 and all(pair.second == "bad" for pair in compared.pairs)
    every_pair = compare(systems, LOOSE, resamples=500)
    assert compared.pairs[0].corrected_p < every_pair.pairs[1].corrected_p, "fewer pairs are corrected for"
    marks = compared.marks()
    assert (marks.better, marks.worse) == ({"good", "good 2"}, set()) and compared.as_dict()["baseline"] == "bad"
    assert "† significantly better and ‡ significantly worse than bad" in compared.to_markdown()
    assert "all pairs with bad (holm)" in compared.about()
    with pytest.raises(InputError, match=r"there is no system 'bat' \(did you mean 'bad'\?\)"):
        compare(systems, LOOSE, baseline="bat")


def test_systems_with_other_questions_are_not_marked(systems: dict[str, Evaluation]) -> None:
    part = replace(systems["bad"], records=systems["bad"].records[:10])
    text = compare({"good": systems["good"], "part": part}, LOOSE, resamples=200).to_markdown()
    table, _, pairs = text.partition("Pairs")
    assert "**" not in table.split("\n\n")[0] and "scores for different questions, so that none is marked" in table
    assert "n = 10 to 20 questions" in table and "are compared on the 10 questions" in pairs


def test_equal_ids_of_other_questions_are_no_pairs(systems: dict[str, Evaluation]) -> None:
    logs = {label: replace(systems[label], benchmark="", path=label) for label in ("good", "bad")}
    pairs = paper_tables(list(logs.values()))[0].formatted("markdown")
    records = [replace(record, question=f"other {record.id}") for record in logs["bad"].records]
    other = paper_tables([logs["good"], replace(logs["bad"], records=records)])[0].formatted("markdown")
    assert "**" in pairs and "**" not in other


def test_percent_and_decimals(systems: dict[str, Evaluation]) -> None:
    (table,) = paper_tables(list(systems.values()), form=number_form(percent=True, decimals=1))
    assert "| good | **87.5** [" in table.markdown() and "Scores in percent with 95%" in table.markdown()
    assert "**87.50** [" in systems["good"].to_markdown(percent=True).replace("87.50 [", "**87.50** [")
    compared = compare(systems, LOOSE, resamples=200)
    assert "+51.25%" in repr(compared.score_tables(number_form(percent=True))[1].text())
    form = NumberForm(2, percent=True)
    assert form.fitting([LOOSE]).percent
    assert not form.fitting([LOOSE, FANOUTQA.score_spec("bleurt")]).percent, "facts per answer have no percent"
    with pytest.raises(InputError, match="16 decimals; allowed: 0 to 15"):
        number_form(decimals=16)


def test_groups_are_columns_with_their_n(systems: dict[str, Evaluation]) -> None:
    tables = paper_tables(list(systems.values()), by=["category"])
    assert len(tables) == 3, "all scores, then one table per score"
    lines = tables[1].markdown().splitlines()
    assert lines[0] == "| system | all | all (n = 10) | even (n = 10) | odd (n = 10) |"
    assert "Loose accuracy by category." in lines[6] and "10 questions are in several groups" in lines[6]
    assert "pairs of all groups" in lines[6]
    assert "\\shortstack[r]{odd\\\\n = 10}" in tables[1].latex()
    groups = compare_groups(systems, LOOSE, "category", resamples=100)
    compared = replace(compare(systems, LOOSE, resamples=100), others=tuple(groups))
    heads = [line for line in compared.to_markdown().splitlines() if line.startswith("| system")]
    assert heads == ["| system | Loose accuracy |", "| system | all | all (n = 10) | even (n = 10) | odd (n = 10) |"]
    assert [table.title for table in compared.score_tables()] == [
        *("Loose accuracy", "Pairs", "Loose accuracy, by category", "Pairs, by category"),
    ]  # fmt: skip


def test_overlaps_and_questions_without_a_group_are_named(systems: dict[str, Evaluation]) -> None:
    good = systems["good"]
    assert grouping_sentences(good, "category")[0].startswith("10 questions are in several groups, so that the groups")
    assert grouping_sentences(good, "type") == ["1 question is in no group (0)"]


def test_several_benchmarks_share_a_table(systems: dict[str, Evaluation]) -> None:
    other = [replace(each, config="test") for each in systems.values()]
    (table,) = paper_tables([*systems.values(), *other], titles={"fanoutqa": "FanOutQA"})
    assert table.systems == list(systems)
    assert table.markdown().splitlines()[0].startswith("| system | FanOutQA (dev): Loose accuracy |")
    latex = table.latex()
    assert "\\multicolumn{2}{c}{FanOutQA (dev)} & \\multicolumn{2}{c}{FanOutQA (test)}" in latex
    assert "\\cmidrule(lr){2-3}\\cmidrule(lr){4-5}" in latex
    alone = [replace(each, config="test", model=f"{each.model} alone") for each in systems.values()]
    assert len(paper_tables([*systems.values(), *alone])) == 2, "configs without a common system"


def test_a_config_joins_the_tables_with_which_it_shares_systems() -> None:
    systems = [("x", "A"), ("y", "B"), ("x", "C"), ("y", "C")]
    tables = paper_tables([evaluation(name, GOOD, config) for name, config in systems])
    assert len(tables) == 1 and list(tables[0].systems) == ["x", "y"]
    assert len(paper_tables([evaluation(name, GOOD, config) for name, config in systems[:2]])) == 2


def test_without_scores_no_number_is_in_percent() -> None:
    empty = replace(evaluation("x", []), records=[])
    assert "percent" not in empty.to_markdown()


def test_groups_of_two_systems_are_in_one_order_and_one_form() -> None:
    def grouped_by(name: str, values: dict[str, float]) -> Evaluation:
        own = evaluation(name, list(values.values()))
        records = [
            replace(each, groups={"chapter": (chapter,)}) for each, chapter in zip(own.records, values, strict=True)
        ]
        return replace(own, records=records)

    systems = [grouped_by("a", {"2": 0.5, "10": 1.5}), grouped_by("b", {"1": 0.25, "2": 0.75})]
    table = group_table(systems, ["a", "b"], "chapter", "", True, number_form(percent=True))
    loose = [row for row in table.rows if row[0] == "acc.loose"]
    assert [row[1] for row in loose] == ["1", "2", "10"]
    assert "100.00%" not in str(loose[0]) and loose[0][3] is None, "a has no chapter 1"
    facts = [replace(each, score_specs=[replace(LOOSE, share=False), STRICT]) for each in systems]
    table = group_table(facts, ["a", "b"], "chapter", "", True, number_form(percent=True))
    assert not any("%" in str(cell) for row in table.rows if row[0] == "acc.loose" for cell in row)
    assert any("%" in str(cell) for row in table.rows if row[0] == "acc.strict" for cell in row)
    columns = paper_tables(systems, ["chapter"])[1].columns
    assert [column.group for column in columns] == ["", "1", "2", "10"]


def test_a_group_is_undefined_only_where_it_is_scored() -> None:
    whole = evaluation("whole", GOOD)
    part = replace(whole, records=[replace(each, scores={"acc.loose": 1.0}) for each in whole.records])
    even = replace(whole, records=whole.records[::2])
    nan = {"acc.loose": 1.0, "acc.strict": float("nan")}
    undefined = [
        replace(each, scores=each.scores if "even" in each.groups["category"] else nan) for each in whole.records
    ]
    systems = [whole, part, even, replace(whole, records=undefined)]
    table = group_table(systems, ["whole", "part", "even", "undefined"], "category", "", True)
    cells = {(row[0], row[1]): row[3:] for row in table.rows}
    assert cells["acc.strict", "odd"][1:] == [None, None, "undefined"]
    assert cells["acc.loose", "odd"][2] is None and cells["acc.loose", "odd"][1].startswith("1.0000")


def test_a_share_is_declared_with_the_score() -> None:
    """A number of facts of 0.4 is no share, and a mean that is above 1 in one system is none in all."""
    few = replace(evaluation("few", [0.25, 0.5]), score_specs=[replace(LOOSE, share=False), STRICT])
    markdown = few.to_markdown(percent=True)
    assert "| few | 0.38 [" in markdown and "Scores (Strict accuracy in percent)" in markdown
    declared = {
        spec.name
        for name in ("fanoutqa", "expertqa", "felm", "fastbook")
        for spec in benchmark(name).scores
        if not spec.share
    }
    assert declared == {"bleurt", "facts_per_answer"}
    logs = [
        evaluation_of(Path(name), "task", name, "", records("loss", values))
        for name, values in (("a", [0.5, 0.25]), ("b", [0.5, 2.5]))
    ]
    assert [log.score_specs[0].share for log in logs] == [True, False]
    compared = qabench.compare(with_lower_better(logs, ["loss"]), resamples=100)
    assert "%" not in str(compared.score_tables(number_form(percent=True))[0].rows)
    assert "| a | **0.38**" in compared.to_markdown(percent=True), "the lower loss is the best"


def records(name: str, values: list[float]) -> list[Record]:
    return [Record(str(i), 1, f"q{i}", "", [], "a", "answered", scores={name: value}) for i, value in enumerate(values)]


def test_notes_say_of_which_score_and_group_they_are(systems: dict[str, Evaluation]) -> None:
    few = [replace(each, scores={"acc.strict": each.scores["acc.strict"]}) for each in systems["bad"].records[:5]]
    part = replace(systems["bad"], records=[*few, *systems["bad"].records[5:]])
    both = {"good": systems["good"], "part": part}
    compared = compare(both, LOOSE, resamples=100)
    groups = compare_groups(both, LOOSE, "category", resamples=100)
    strict = compare(both, STRICT, resamples=100)
    _, pairs, _, pairs_by_group = replace(compared, others=(strict, *groups)).score_tables(number_form(percent=True))
    (note,) = [note for note in pairs.notes if "are compared on" in note]
    assert note.startswith("acc.loose: good and part are compared on the 15 questions") and "83.33% and 25.00%" in note
    notes = [note for note in pairs_by_group.notes if "are compared on" in note]
    assert [note.partition(": ")[0] for note in notes] == ["all; even", "odd"], "equal notes are one"
    assert not any(": good" in note for note in compared.score_tables()[1].notes), "a table of one score"


def test_captions_name_systems_as_they_are(systems: dict[str, Evaluation]) -> None:
    silent = [
        replace(each, status="missing", answer=None, scores=dict.fromkeys(each.scores, 0.0))
        for each in systems["bad"].records[:3]
    ]
    part = replace(systems["bad"], records=[*silent, *systems["bad"].records[3:]])
    both = {"good": systems["good"], "lower_case": part}
    compared = compare(both, LOOSE, resamples=100)
    assert " lower\\_case has no answer to 3." in compared.to_markdown()
    with_groups = replace(compared, others=tuple(compare_groups(both, LOOSE, "category", resamples=100)))
    caption = next(text for text in with_groups.to_markdown().split("\n\n") if "by category" in text)
    assert (
        "all, all, even: lower\\_case has no answer" not in caption
        and "even: lower\\_case has no answer to 2." in caption
    )
    for text in (compared.to_latex(), compared.to_markdown()):
        assert "Lower" not in text and "Good" not in text


def test_documents_of_python_have_the_notes(systems: dict[str, Evaluation]) -> None:
    """A comparison in Python says what the command prints beside it."""
    problem = "unreadable lines: 3"
    both = {"good": systems["good"], "bad": replace(systems["bad"], problems=[problem])}
    compared = replace(compare(both, LOOSE, resamples=100), notes=("other.jsonl is left out",))
    assert (
        "% other.jsonl is left out\n" in compared.to_latex() and "- other.jsonl is left out" in compared.to_markdown()
    )
    assert f"bad: {problem}" in repr(compared) and "other.jsonl is left out" in repr(compared)
    minor = replace(compared, others=(compare(both, replace(STRICT, main=False), resamples=100),))
    assert "--all-scores" not in repr(minor)
    assert "score_tables(all_scores=True) and to_pandas() have 2 scores" in repr(minor)
    assert "Strict accuracy" in minor.to_latex(all_scores=True) and "Strict accuracy" not in minor.to_latex()


def test_only_named_or_main_scores_are_shown() -> None:
    answers = [
        {"id": row["id"], "answer": "x"} for row in qabench.load_dataset("fanoutqa", "sample", split="validation")
    ]
    both = [qabench.evaluate_predictions("fanoutqa", "sample", answers, scores=["rouge"]) for _ in range(2)]
    compared = qabench.compare({"a": both[0], "b": replace(both[1], path="b")}, scores="rouge", resamples=100)
    scores, pairs = compared.score_tables()
    assert [row[0] for row in scores.rows] == [f"rouge{kind}.fscore" for kind in "112" + "2LL"]
    assert scores.notes[-1] == "--all-scores prints 9 scores" and len(pairs.rows) == 3
    assert len({row[0] for row in compared.score_tables(all_scores=True)[0].rows}) == 9
    named = qabench.compare({"a": both[0], "b": replace(both[1], path="b")}, scores="rouge1.recall", resamples=100)
    assert named.score_tables()[0].columns[1] == "rouge1.recall"


def test_short_signatures_name_what_is_not_official() -> None:
    declaration = {
        "benchmark": Field(("fanoutqa",)),
        "config": Field(("dev",)),
        "lemmatizer": Field(("en_core_web_sm",)),
    }
    short = short_signature(SIGNATURE, declaration)
    assert re.fullmatch(
        r"fanout_acc\|config:dev\|lemmatizer:simplemma-2\.0\.0\|sha:[0-9a-f]{8}\|qabench:0\.2\.0", short
    )
    assert short != short_signature(SIGNATURE.replace("3-abc", "3-abd"), declaration), "the digest is of all fields"
    official = short_signature(SIGNATURE, {**declaration, "lemmatizer": Field(None)})
    assert "lemmatizer" not in official and len(official) < 60
    mixed = SIGNATURE.replace("simplemma-2.0.0", "mixed(1 a, 2 b)")
    assert "mixed" in short_signature(mixed, {**declaration, "lemmatizer": Field(None)})
    own = evaluation("a", [1.0], signatures={"acc": SIGNATURE, "gpt": "no signature"})
    assert own.short_signatures()["gpt"] == "no signature"
    latex = own.to_latex()
    assert "\\texttt{fanout\\_acc|\\allowbreak{}config:dev|" in latex and f"% {SIGNATURE}" in latex


def test_p_values_have_one_form(systems: dict[str, Evaluation]) -> None:
    assert [p_text(p) for p in (1 / 10001, 0.0001, 0.04999, 1)] == ["< 0.0001", "0.0001", "0.0500", "1.0000"]
    assert (p_equation(0.00001), p_equation(0.02)) == ("p < 0.0001", "p = 0.0200")
    table = compare(systems, LOOSE).score_tables()[1]
    p = [row[table.columns.index("p")] for row in table.rows]
    assert p.count("< 0.0001") == 2
    assert table.tabular().startswith("\\begin{tabular}{llrrrrrrrrr}"), "numbers are right-aligned"


def test_text_in_latex_prints_the_same_characters() -> None:
    assert (
        latex_text('a|b "c" <d> --e')
        == "a\\textbar{}b {\\ttfamily\\char34}c{\\ttfamily\\char34} \\textless{}d\\textgreater{} -{}-e"
    )
    assert latex_text("[x] *") == "{[}x{]} {*}" and latex_text("---''") == "-{}-{}-'{}'"


def test_a_printed_comparison_says_what_is_not_official(systems: dict[str, Evaluation]) -> None:
    text = repr(compare(systems, LOOSE, resamples=100))
    assert "not official (all scores): the signature is missing" in text


def test_a_frame_of_groups(systems: dict[str, Evaluation]) -> None:
    good = systems["good"]
    records = good.to_pandas()
    assert dict(records.groupby("category")["acc.loose"].count()) == {"even; all": 10, "odd": 10}
    groups = good.groups_to_pandas("category").set_index(["group", "score"])
    score = good.scores_by_group("category")["odd"]["acc.strict"]
    row = groups.loc[("odd", "acc.strict")]
    assert (row["value"], row["low"], row["n"], row["records"]) == (score.value, score.low, 10, 10)
    assert set(good.groups_to_pandas()["grouping"]) == {"category", "type"}
    with pytest.raises(InputError, match="the questions have no grouping 'kind'"):
        good.groups_to_pandas(["kind"])


def test_a_table_that_is_longer_than_a_page_is_continued() -> None:
    many = evaluation("many", GOOD)
    records = [replace(record, groups={"field": (f"field {number}",)}) for number, record in enumerate(many.records)]
    systems = [replace(many, records=records, model=name) for name in "abcdefgh"]
    latex = paper_tables(systems, by=["field"])[1].latex()
    assert latex.count("\\begin{table*}") == latex.count("\\caption{") == latex.count("\\end{table*}") > 1
    assert "Table~\\ref{tab:fanoutqa-dev-acc-loose-field}, continued." in latex
    assert latex.count("n = 1}") + latex.count("n = 1 ") == len(records)


def test_pairs_fit_a_column(systems: dict[str, Evaluation]) -> None:
    """A pair has two lines: the interval is below the difference, and what all pairs share is in the caption."""
    strict = compare(systems, STRICT, resamples=200)
    compared = replace(compare(systems, LOOSE, resamples=200), others=(strict,))
    latex = compared.to_latex(percent=True).split("\n\n")[-1]
    assert "fanoutqa (dev): paired differences, n = 20 questions. Differences in percent with" in latex
    assert "\\begin{table}[tb]" in latex and "Holm's correction over all pairs of a score" in latex
    assert "\\emph{Loose accuracy}" in latex and "Pair & Difference & $p$ & W/T/L" in latex
    pair = compared.pairs[1]
    cells = f"good & $+$51.25\\rlap{{$^{{\\dagger}}$}} & {p_text(pair.corrected_p)} & 17/3/0 \\\\"
    assert f"{cells}\n\\enspace vs.\\ bad & {{\\scriptsize [$+$" in latex
    groups = compare_groups(systems, LOOSE, "category", resamples=100)
    part = replace(systems["bad"], records=systems["bad"].records[:7])
    latex = replace(compare({**systems, "part": part}, LOOSE, resamples=100), others=tuple(groups)).to_latex()
    assert "Pair & Difference & $n$ & $p$ & W/T/L" in latex, "the pairs have other questions"
    assert "good and part are compared on the 7 questions" in latex and "\\emph{odd}" in latex
    long = {name * 20: system for name, system in systems.items()}
    assert "\\begin{table*}" in compare(long, LOOSE, resamples=100).to_latex().split("paired differences")[0][-120:]
    many = {f"system {number}": evaluation(f"system {number}", GOOD) for number in range(9)}
    latex = compare(many, LOOSE, resamples=50).to_latex()
    assert latex.count("tab:fanoutqa-dev-pairs}, continued.") == 1
    assert latex.count("vs.\\ ") == 36


def test_clusters_are_named_where_differences_are_tested(systems: dict[str, Evaluation]) -> None:
    """The number of questions alone would promise more than the test has."""
    clustered = {}
    for name, system in systems.items():
        records = [replace(record, cluster=str(int(record.id) // 4)) for record in system.records]
        clustered[name] = replace(system, records=records)
    compared = compare(clustered, LOOSE, resamples=100)
    assert compared.about().startswith("p: paired randomization test over 5 clusters of questions, two-sided")
    assert compared.to_latex().count("test over 5 clusters of questions") == 2, "of the scores, and of the pairs"
    assert "clusters" not in compare(systems, LOOSE, resamples=100).to_latex()


def document(*tables: str) -> str:
    body = "\n\\clearpage\n".join(tables)
    return f"\\documentclass{{article}}\n\\usepackage{{booktabs}}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"


@pytest.mark.integration
def test_latex_compiles_and_fits(systems: dict[str, Evaluation], tmp_path: Path) -> None:
    """Compile every kind of table, also with names full of LaTeX's special characters."""
    if shutil.which("pdflatex") is None:
        pytest.skip("needs apt-get install texlive-latex-base texlive-latex-recommended")
    signed = [replace(each, signatures={"acc": SIGNATURE}) for each in systems.values()]
    hostile = [evaluation(name, GOOD, signatures={"acc": SIGNATURE}) for name in NAMES]
    compared = compare({"good": signed[0], "bad": signed[2]}, LOOSE, resamples=100)
    groups = compare_groups({"good": signed[0], "bad": signed[2]}, LOOSE, "category", resamples=100)
    tables = [table.latex() for table in paper_tables([*signed, *(replace(e, config="test") for e in signed)])]
    tables += [table.latex() for table in paper_tables(signed, by=["category"], form=number_form(True))]
    tables += [table.latex() for table in paper_tables(hostile)]
    tables += [
        replace(compared, others=tuple(groups)).to_latex(),
        hostile[0].to_latex(),
    ]
    alone = hostile[0].tables()[0].tabular()
    for options, texts in (("", [*tables, alone]), ("[twocolumn]", tables)):
        text = document(*texts).replace("\\documentclass", f"\\documentclass{options}")
        (tmp_path / "a.tex").write_text(text, encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, done.stdout[-3000:]
        overfull = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", done.stdout)]
        assert max(overfull, default=0) < 10 and "Float too large" not in done.stdout, done.stdout
