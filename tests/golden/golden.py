"""Golden results: scores, signatures, deviations, messages and reports on the real data, recorded
and compared.

    QABENCH_MIRROR=DIR QABENCH_SPACY_MODEL=DIR python tests/golden/golden.py compare

``record`` writes golden.json, ``compare`` prints each value that changed. Only the public API and
the command line are used: results do not depend on where the code is. Predictions follow from the
data by a rule. Of the authors' texts, only digests are recorded. Whoever changes a result on
purpose lists it in CHANGELOG.md and records again.
"""

import dataclasses
import hashlib
import io
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "support"))
from openai_server import Fault, OpenAIServer, completion  # noqa: E402
from tiny_bleurt import write_tiny_bleurt  # noqa: E402
from zim_files import write_zim  # noqa: E402

GOLDEN = HERE / "golden.json"
REPLY = "Jupiter: 1.326 [1]. It was 1998 [2].\n[1] https://example.org/a\nAnswer: 1"
VERDICT = "They agree in all.\nC"
REAL = {"expertqa": "lfqa_random", "fanoutqa": "dev", "fastbook": "questions", "felm": "all"}
VOLATILE = {"created", "path", "log", "logs", "file", "seconds", "duration", "title"}
PACKED = {"by", "left_out", "n", "published", "scores", "unit"}
# texts of this project
OURS = {"signature", "signatures", "deviations", "notes", "explanation", "problems"}
SCRUBBED = {
    r"qabench:\d[\w.+]*": "qabench:VERSION",
    r"127\.0\.0\.1:\d+": "HOST",
    r"ZIM file (\w+) \(\w{8}\)": r"ZIM file \1",
    r"/tmp/\w+": "FOLDER",
}
Results = Iterator[tuple[str, Any]]
Rows = list[dict[str, Any]]


def digest(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def scrubbed(text: str) -> str:
    for pattern, replacement in SCRUBBED.items():
        text = re.sub(pattern, replacement, text)
    return text


def frozen(value: Any, ours: bool = False) -> Any:
    """Return JSON data without times, paths and ports, with digests for large parts and for texts
    of others.
    """
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if name not in VOLATILE}
        if {"mean", "standard_error"} <= kept.keys():
            return f"{kept['mean']!r}, interval {digest([kept.get(n) for n in ('low', 'high', 'standard_error')])}"
        # deviations by score
        if ours and kept and all(isinstance(item, list) for item in kept.values()):
            sentences = sorted({sentence for item in kept.values() for sentence in item})
            scores = {text: [name for name in sorted(kept) if text in kept[name]] for text in sentences}
            return {scrubbed(text): "all" if len(of) == len(kept) else digest(of) for text, of in scores.items()}
        if {"low", "high", "difference"} <= kept.keys():
            # Sums over draws are products of matrices, whose last digit depends on the processor.
            kept |= {name: rounded(kept[name], 12) for name in ("low", "high")}
        value = {scrubbed(str(name)): frozen(item, ours or name in OURS) for name, item in kept.items()}
        value |= {name: digest(item) for name, item in value.items() if name in PACKED and isinstance(item, dict)}
        value |= {name: digest(value[name]) for name in list(value)[1:] if "|qabench:" in str(value[name])}
        large = len(json.dumps(value)) > 4000
        return {name: digest(item) if large and len(json.dumps(item)) > 200 else item for name, item in value.items()}
    if isinstance(value, list | tuple):
        items = [frozen(item, ours) for item in value]
        return items if len(json.dumps(items)) <= 200 else f"{len(items)} items: {digest(items)}"
    if not isinstance(value, str):
        return value
    text = scrubbed(value)
    return text if len(text) <= (700 if ours else 80) else f"{len(text)} characters: {digest(text)}"


def rounded(value: Any, digits: int = 4) -> Any:
    """Return JSON data with rounded numbers: the last digits of a network's scores depend on the
    processor.
    """
    if isinstance(value, dict):
        return {name: rounded(item, digits) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    return round(value, digits) if isinstance(value, float) else value


def command(*arguments: str) -> Any:
    """Run ``qabench`` in this process; return the JSON that it prints, or its exit code and last
    line.
    """
    (script,) = entry_points(group="console_scripts", name="qabench")
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    before, sys.argv, code = sys.argv, ["qabench", *arguments], None
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = script.load()()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
    try:
        return json.loads(out.buffer.getvalue())
    except ValueError:
        return {"exit": code, "error": err.getvalue().strip().rpartition("\n")[2]}


def altered(reference: Any, i: int) -> str | None:
    """Return an answer that is right, half right, wrong or missing, by the question's position."""
    text = reference if isinstance(reference, str) else json.dumps(reference, ensure_ascii=False)
    half = text[: len(text) // 2]
    return [text, half, text.upper() + ".", "It was 1998.", half.replace(" ", "\n- "), None, ""][i % 7]


def rows_of(benchmark: str, config: str, split: str = "test") -> Rows:
    import qabench

    return list(qabench.load_dataset(benchmark, config, split=split))


def scored(*arguments: Any, exact: bool = True, **options: Any) -> dict[str, Any]:
    """Return what is recorded of one evaluation."""
    import qabench

    evaluation = qabench.evaluate_predictions(*arguments, **options)
    scores = evaluation.scores()
    numbers = {name: dataclasses.asdict(score.interval) for name, score in scores.items()}
    records = [[record.id, record.status, dict(record.scores)] for record in evaluation.records]
    if not exact:
        numbers, records = rounded(numbers), rounded(records)
    return {
        "scores": {name: frozen(interval) for name, interval in numbers.items()},
        "signatures": frozen(dict(evaluation.signatures), ours=True),
        "deviations": frozen({name: evaluation.deviations(score) for name, score in scores.items()}, ours=True),
        "counts": {status: count for status, count in evaluation.counts().items() if count},
        "problems": frozen(list(evaluation.problems)),
        "records": digest(records),
    }


def messages(server: OpenAIServer, ours: bool = False) -> dict[str, Any]:
    """Return digests and numbers of the requests since the last call, and the start of one if its
    text is ours.
    """
    bodies, server.calls = [call.body for call in server.calls], []
    texts = sorted(json.dumps(body.pop("messages"), ensure_ascii=False) for body in bodies)
    requests = Counter(digest(text) for text in texts)
    fields = {json.dumps(body | {"tools": digest(body.get("tools"))}, sort_keys=True) for body in bodies}
    packed = " ".join(f"{name}x{count}" for name, count in sorted(requests.items()))
    found = {"requests": packed if len(requests) < 40 else digest(packed), "fields": sorted(fields)}
    return found | ({"text": max(texts, key=len)[:200]} if ours else {})


def fanoutqa(mirror: Path, server: OpenAIServer) -> Results:
    files: dict[str, Rows] = {}
    for config in ("sample", "dev"):
        rows = enumerate(rows_of("fanoutqa", config, "validation"))
        files[config] = [{"id": row["id"], "answer": altered(json.loads(row["answer"]), i)} for i, row in rows]
    for path in sorted(mirror.glob("zhudotexe/fanoutqa/leaderboard-submissions/*/*-gpt-4o.jsonl")):
        # Generations for the test questions, whose answers are not public; half of them get the
        # altered answer.
        texts = [json.loads(line)["answer"] for line in path.read_text("utf-8").splitlines()]
        pairs = enumerate(zip(files["dev"], texts, strict=False))
        files[path.stem] = [row | {"answer": f"{text} {row['answer']}" if i % 2 else text} for i, (row, text) in pairs]
    for name, predictions in files.items():
        config = name if name in ("sample", "dev") else "dev"
        for lemmatizer in ("simplemma", "spacy"):
            yield f"{name}/{lemmatizer}", scored("fanoutqa", config, predictions, lemmatizer=lemmatizer)
    server.reply = lambda body: VERDICT
    judge = {"judge_model": "m", "judge_base_url": server.base_url}
    for config, prompt in (("sample", "qabench"), ("dev", "official")):
        options = judge | {"judge_prompt": prompt}
        yield f"{config}/judge", scored("fanoutqa", config, files[config], ["judge"], **options)
        yield f"{config}/judge/messages", messages(server, ours=config == "sample")
    yield "dev/answered", scored("fanoutqa", "dev", files["dev"], ["rouge"], only_score_answered=True)
    Path("bleurt").mkdir()
    write_tiny_bleurt(Path("bleurt"))
    yield "sample/bleurt", scored("fanoutqa", "sample", files["sample"], ["bleurt"], exact=False, bleurt_model="bleurt")


def annotated(mirror: Path) -> Rows:
    """Return ExpertQA's annotated rows in the files that the mirror has."""
    paths = sorted(mirror.glob("chaitanyamalaviya/ExpertQA/data/lfqa/rand_*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]


def labeled(row: dict[str, Any], i: int) -> Rows:
    """Return the claims of a row's answer with labels and fact scores by a rule."""
    (answer,) = row["answers"].values()
    marks = [("Y", 1.0), ("N", 0.25), ("Y", None), (None, 0.5)]
    claims = [(claim, *marks[j % 4]) for j, claim in enumerate(answer["claims"] or (), start=i)]
    names = ("claim", "evidence", "label", "fact_score")
    return [dict(zip(names, (c["claim_string"], c["evidence"], *rest), strict=True)) for c, *rest in claims]


def expertqa(mirror: Path, server: OpenAIServer) -> Results:
    for split in ("validation", "test"):
        rows = rows_of("expertqa", "lfqa_random", split)
        predictions = [{"id": row["example_id"], "answer": altered(row["answer"], i)} for i, row in enumerate(rows)]
        yield f"lfqa_random/{split}", scored("expertqa", "lfqa_random", predictions, split=split)
    systems: dict[str, Rows] = {}
    for row in annotated(mirror):
        systems.setdefault(next(iter(row["answers"])), []).append(row)
    for system, rows in sorted(systems.items()):
        questions = Path(f"{system}.jsonl")
        questions.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        ids = [hashlib.sha256(row["question"].encode()).hexdigest()[:12] for row in rows]
        claims = [{"id": id, "claims": labeled(row, i)} for i, (id, row) in enumerate(zip(ids, rows, strict=True))]
        yield system, scored("expertqa", None, claims, questions=questions)
    yield "unlabeled", scored("expertqa", None, claims, questions=questions, unlabeled="exclude")
    own = [row | {"claims": [claim | {"claim": "A [1]."} for claim in row["claims"][:2]]} for row in claims]
    yield "own claims", scored("expertqa", None, own, questions=questions)


def felm(mirror: Path, server: OpenAIServer) -> Results:
    for config in ("sample", "all"):
        predictions = []
        for i, row in enumerate(rows_of("felm", config)):
            wrong = ",".join(str(n) for n, label in enumerate(row["labels"], start=1) if not label)
            replies: list[Any] = [f"Reasons.\nAnswer: {wrong or 'ALL_CORRECT'}", "Answer: 1,2", "Is 2 wrong?", None]
            replies += [["Answer: 1", "Answer: ALL_CORRECT", "Answer: 1"]]
            opposite = {"labels": [not label for label in row["labels"]]}
            predictions.append({"id": row["index"]} | ({"reply": replies[i % 5]} if i % 6 else opposite))
        for reply_format in ("answer", "vicuna"):
            yield f"{config}/{reply_format}", scored("felm", config, predictions, reply_format=reply_format)


def fastbook(mirror: Path, server: OpenAIServer) -> Results:
    import qabench

    for config, corpus in (("sample", "sample_corpus"), ("questions", "corpus")):
        texts = {row["chapter"]: row["text"] for row in rows_of("fastbook", corpus, "corpus")}
        pieces = {name: [text[i : i + 800] for i in range(0, len(text), 600)] for name, text in texts.items()}
        indexes = {name: qabench.BM25Index(own) for name, own in pieces.items()}
        predictions = []
        for i, row in enumerate(rows_of("fastbook", config)):
            hits = indexes[row["chapter"]].search(row["question_text"], k=10)
            passages = [pieces[row["chapter"]][position] for position, _ in hits]
            answer = altered(row["gold_standard_answer"], i)
            predictions.append({"id": row["id"], "passages": passages, "answer": answer})
        yield config, scored("fastbook", config, predictions, ["retrieval", "rouge"], k="1,5,10")
        for method in ("bm25", "fts"):
            run = ("--run", "run.trec")
            shown = command("fastbook", "retrieve", "--config", config, "--method", method, "--json", *run)
            yield f"{config}/{method}", frozen(stated(shown))
            yield f"{config}/{method}/run", digest(Path("run.trec").read_text("utf-8"))
        chunks = rows_of("fastbook", "chunks" if config == "questions" else "sample_chunks", "corpus")
        Path("passages.jsonl").write_text("".join(f"{json.dumps(chunk)}\n" for chunk in chunks), "utf-8")
        shown = command("score", "fastbook", "run.trec", "--config", config, "--corpus", "passages.jsonl", "--json")
        yield f"{config}/run", frozen(stated(shown))


def stated(document: dict[str, Any]) -> dict[str, Any]:
    """Return the only evaluation of a document without the optional fields that say nothing."""
    optional = ("undefined", "replies", "notes", "unscored", "by", "corrected", "official")
    (evaluation,) = document["evaluations"]
    return {name: value for name, value in evaluation.items() if value or name not in optional}


def metrics(mirror: Path, server: OpenAIServer) -> Results:
    import qabench
    from qabench.metrics import metric_folder

    rows = rows_of("fanoutqa", "dev", "validation")
    references = [json.loads(row["answer"]) for row in rows]
    texts = [altered(answer, i) for i, answer in enumerate(references)]
    necessary = [row["necessary_evidence"] for row in rows]
    read = [["Moon", *(page["url"] for page in row[:: i % 3 + 1])] for i, row in enumerate(necessary)]
    judge = {"model": "m", "base_url": server.base_url, "api_key": "k", "questions": [row["question"] for row in rows]}
    experts = [{"answers": [{"system": s, **a} for s, a in row["answers"].items()]} for row in annotated(mirror)]
    claims = [labeled(row, i) for i, row in enumerate(annotated(mirror))]
    labels = [[claim["label"] for claim in row] for row in claims]
    facts = [[claim["fact_score"] for claim in row] for row in claims]
    long = [row["answer"] for row in rows_of("expertqa", "lfqa_random")]
    components = [row["answer_context"] for row in rows_of("fastbook", "questions")]
    passages = [[c for part in row for c in part["context"]][:: i % 3 + 1] for i, row in enumerate(components)]
    segments = [row["labels"] for row in rows_of("felm", "all")]
    replies = [[f"Answer: {i % 4}", [not label for label in row], None][i % 3] for i, row in enumerate(segments)]
    cases: dict[str, tuple[Sequence[Any], Sequence[Any], dict[str, Any]]] = {
        "answer_component_mrr": (passages, components, {"k": [1, 5, 10]}),
        "answer_component_recall": (passages, components, {"k": [1, 5, 10], "skip_empty_contexts": True}),
        "expertqa_autoais": (labels, experts, {}),
        "expertqa_autoais_agreement": (labels, experts, {"on_unlabeled": "exclude"}),
        "expertqa_factscore_agreement": (facts, experts, {}),
        "expertqa_lfqa": ([altered(text, i) for i, text in enumerate(long)], long, {}),
        "fanout_acc": (texts, references, {"lemmatizer": "spacy"}),
        "fanout_bleurt": (texts[:12], references[:12], {"model": "bleurt"}),
        "fanout_evidence": (read, necessary, {"k": 5}),
        "fanout_judge": (texts, references, judge),
        "fanout_rouge": (texts, references, {}),
        "fanoutqa": (texts, references, {"lemmatizer": "simplemma", "judge": False}),
        "felm_factuality": (replies, segments, {}),
    }
    for name in qabench.metric_names():
        if name not in cases:  # a new metric: until it has a case here, the example of its Space
            example = json.loads((metric_folder(name) / "example.json").read_text(encoding="utf-8"))
            cases[name] = (example["predictions"], example["references"], {})
        predictions, references, options = cases[name]
        metric = qabench.load_metric(name)
        result = metric.compute(predictions=predictions, references=references, per_question=True, **options)
        yield name, frozen(rounded(result) if name == "fanout_bleurt" else result)


def write_wiki(path: Path, rows: Rows) -> list[str]:
    """Write a ZIM file with pages about the evidence of questions, by a rule; return the titles."""
    words = ["moon", "tide", "density", "1998", "city", "river", "draft", "planet"]
    titles = list(dict.fromkeys(page["title"] for row in rows for page in row["necessary_evidence"]))
    sentences = [f"has the {words[j % 8]} and the {words[j * 3 % 7]} number {j}" for j in range(40)]
    write_zim(path, {title: "".join(f"<p>{title} {text}.</p>" for text in sentences) for title in titles}, None, True)
    return titles


def runs(mirror: Path, server: OpenAIServer) -> Results:
    """Run all settings: samples with this project's prompts, the real data with the authors'."""
    for benchmark, real in REAL.items():
        for config, prompt in (("sample", "qabench"), (real, "official")):
            options = [] if benchmark == "fastbook" else ["-T", f"prompt={prompt}"]
            settings: dict[str, list[str]] = {}
            if benchmark == "fanoutqa":
                titles = write_wiki(Path(f"{config}.zim"), rows_of(benchmark, config, "validation")[:5])
                wiki = ["-T", f"wiki={config}.zim", "-T", "context_length=4096"]
                settings = {"closed-book": [], "open-book": wiki, "evidence-provided": wiki}
                call = {"id": "c", "type": "function"}
                call["function"] = {"name": "search", "arguments": json.dumps({"query": titles[0]})}  # type: ignore[assignment]
                search = Fault(body=completion(None, tool_calls=[call], finish_reason="tool_calls"))
                server.fault = lambda _, body, search=search: search if first_turn(body) else None
            if benchmark == "expertqa":
                splits = ("sample", "train") if config == "sample" else (config, "validation")
                texts = [row.get("answer") or row["answers"][0]["answer_string"] for row in rows_of(benchmark, *splits)]
                Path("corpus.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
                corpus = ["-T", "corpus=corpus.jsonl"]
                settings = {"closed": [], "retrieve-read": corpus, "post-hoc": corpus}
            if benchmark == "felm":
                settings = {setting: [] for setting in ("raw", "cot", "cot-cons", "link", "content")}
            if benchmark == "fastbook":
                settings = {"rag": [], "rag fts": ["-T", "method=fts"]}
            for setting, more in settings.items():
                where = ["--setting", setting.partition(" ")[0], "--config", config, "--limit", "5"]
                model = [
                    "--model", f"openai-api/stub/{setting.replace(' ', '-')}", "--base-url", server.base_url,
                    "--no-cache",
                ]  # fmt: skip
                log = ["--log-dir", f"logs/{benchmark}/{config}-{setting}", "--quiet", "--json"]
                run = command("run", benchmark, *where, *model, *log, *options, *more)
                (result,) = run["evaluations"]
                yield f"{benchmark}/{config}/{setting}", frozen(result)
                yield f"{benchmark}/{config}/{setting}/messages", messages(server, ours=config == "sample")


def first_turn(body: dict[str, Any]) -> bool:
    return bool(body.get("tools")) and all(turn["role"] != "tool" for turn in body["messages"])


def commands(mirror: Path, server: OpenAIServer) -> Results:
    yield "list", frozen(command("list", "--json"))
    for benchmark, real in REAL.items():
        for config in ("sample", real):
            yield f"stats/{benchmark}/{config}", frozen(command("stats", benchmark, "--config", config, "--json"))
        # whose data are not all in the mirror, and whose runs have no report
        if benchmark != "expertqa":
            for check in command("reproduce", benchmark, "--json")["checks"]:
                yield f"reproduce/{benchmark}/{check['number']}", f"{check['here']!r}, published {check['published']!r}"
            logs = sorted(map(str, Path("logs", benchmark).iterdir()))
            command("report", *logs, "--output", f"report/{benchmark}", "--quiet")
            report = json.loads(Path(f"report/{benchmark}/report.json").read_text("utf-8"))
            for section in report["sections"]:
                parts = {name: digest(frozen(value)) for name, value in section.items()}
                yield f"report/{benchmark}/{section['config']}", parts
    systems = [f"system{number}.json" for number in range(3)]
    for number, path in enumerate(systems):
        rows = enumerate(rows_of("fanoutqa", "dev", "validation"))
        rows = [{"id": row["id"], "answer": altered(json.loads(row["answer"]), i * (number + 1))} for i, row in rows]
        Path(path).write_text(json.dumps(rows))
    options = ["--config", "dev", "--lemmatizer", "simplemma", "--json"]
    scored = command("score", "fanoutqa", systems[0], *options, "--by", "category", "--by", "type")
    yield "score", frozen(scored["evaluations"][0])
    (compared,) = command("compare", "fanoutqa", *systems, *options)["comparisons"]
    yield from (
        (f"compare/{name}/{i}", frozen(row)) for name in ("systems", "pairs") for i, row in enumerate(compared[name])
    )


def results() -> dict[str, Any]:
    """Compute all results, in a temporary folder."""
    mirror, home, found = Path(os.environ["QABENCH_MIRROR"]).resolve(), os.getcwd(), {}
    os.environ |= {"QABENCH_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    os.environ |= {"STUB_API_KEY": "k", "FANOUTQA_OPENAI_API_KEY": "k"}
    with tempfile.TemporaryDirectory() as folder, OpenAIServer() as server:
        os.environ |= {"QABENCH_CACHE": f"{folder}/cache", "HF_HOME": f"{folder}/huggingface"}
        os.chdir(folder)
        try:
            for part in (fanoutqa, expertqa, felm, fastbook, metrics, runs, commands):
                text = VERDICT if part is metrics else REPLY
                server.reply = lambda body, text=text: text
                found |= {f"{part.__name__}/{key}": value for key, value in part(mirror, server)}
                server.calls = []
        finally:
            os.chdir(home)
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, f"{key} > {name}" if key else name)
    else:
        yield key, json.dumps(value, ensure_ascii=False, sort_keys=True)


def differences(found: dict[str, Any]) -> list[str]:
    """Return one text for each value that is not as recorded."""
    old, new = dict(leaves(json.loads(GOLDEN.read_text("utf-8")))), dict(leaves(found))
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return [f"{key}\n  recorded: {old.get(key, 'nothing')}\n  now:      {new.get(key, 'nothing')}" for key in keys]


def main() -> int:
    if sys.argv[1:] not in (["record"], ["compare"]):
        sys.exit("usage: golden.py record|compare")
    found = results()
    if sys.argv[1] == "record":
        GOLDEN.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
        return 0
    lines = differences(found)
    print("\n".join(lines) if lines else f"all {len(dict(leaves(found)))} values are as recorded")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
