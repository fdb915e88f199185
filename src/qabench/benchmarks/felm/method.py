"""FELM's methods: how a model is prompted for the segments with errors, and how its replies are scored.

The prompts are the authors', qabench's, or a user's template.

Source: Chen et al., FELM, NeurIPS 2023 Datasets and Benchmarks (https://arxiv.org/abs/2310.00741).
``eval/eval.py`` and ``eval/prompt`` of hkust-nlp/felm.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from qabench.benchmarks.felm.scores import check_format, read_claims, read_reply
from qabench.data.rows import Json, Row
from qabench.errors import InputError, SourceUnavailable, unknown_name
from qabench.evaluation.scoring import Messages
from qabench.io.tables import quoted
from qabench.llm.client import Answered
from qabench.loading_scripts import open_path
from qabench.loading_scripts.felm.parse import DOMAINS
from qabench.tasks.prompts import (
    AUTO,
    DATA_NOT_INSTRUCTIONS,
    OFFICIAL,
    QABENCH,
    Prompt,
    PromptSource,
    check_fields,
    read_prompt,
)

CONS_TEMPERATURE = 0.9
NUM_CONS = 5
# of the call for a response's claims
CLAIMS_PARAMETERS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 2000}
NO_REFERENCES = "(none)"  # in a user's template, if there are no references
# the domains with prompts for claims and with references
CLAIM_DOMAINS = ("wk", "science", "writing_rec")
METHODS = ("raw", "cot", "cot-cons", "link", "content")
SYSTEM = "You are a helpful assistant."
REFERENCES = {"link": "links", "content": "texts"}
SEGMENTS, CLAIMS = "segments", "claims"
VERDICTS, CLAIM_VERDICTS, EXTRACTION = "verdicts", "claim_verdicts", "extraction"
ERRORS = {
    "math": "an error of calculation or of reasoning",
    "reasoning": "an error of reasoning or of fact",
}
MATERIAL = """<question>
{question}
</question>

"""
CAUTION = f"{DATA_NOT_INSTRUCTIONS}\n\n"
EXTRACT = Prompt(
    QABENCH,
    system=SYSTEM,
    user=f"""An answer to a question was cut into numbered segments. List the factual claims that each segment makes.

{MATERIAL}<segments>
{{segments}}
</segments>

{CAUTION}A claim is one short sentence that is true or false and can be understood on its own: replace pronouns by what
they refer to. Report what the answer says, whether it is right or wrong. A segment without claims gets none. For each
segment write the following, and nothing else:

Segment 1:
Claim 1. ...
Claim 2. ...""",
)
SCRIPT = "eval/eval.py"
_BEFORE_FIRST_LETTER = re.compile("[^A-Za-z]*")

PromptFor = Callable[[str, str, str], Prompt]
"""Return the prompt for a domain, a kind ("raw", "cot", "link", "content", EXTRACTION) and a unit."""


def prompt_file(domain: str, kind: str, unit: str) -> str:
    """Return the authors' file with a prompt, below ``eval/prompt``.

    writing_rec has the files of wk.
    """
    domain = "wk" if domain == "writing_rec" else domain
    short = "sci" if domain == "science" else domain
    if unit == SEGMENTS:
        name = (
            f"prompt_{short}_{'ret_' * (kind in REFERENCES)}{kind}" if domain in CLAIM_DOMAINS else kind
        )
        return f"segment/{short}/{name}.txt"
    names = {"raw": domain, "cot": f"{domain}_cot", EXTRACTION: f"extract_{short}"}
    return f"claim/{short}/claim_{names.get(kind, f'{short}_{kind}')}.txt"


def numbered(texts: Sequence[str]) -> str:
    """Return one line per text, numbered from 1.

    Each is shown from its first ASCII letter on, if any.
    """
    shown = [_BEFORE_FIRST_LETTER.sub("", text, count=1) for text in texts]
    return "\n".join(f"{i}. {text}" for i, text in enumerate(shown, start=1))


@dataclass(frozen=True)
class FelmPrompts:
    """The prompts of one method by what they ask for and by domain and kind (of the claims: by domain).

    Kinds are "raw", "cot", "link", "content". The name is "official", "qabench", or the user's
    file.
    """

    name: str
    prompts: Mapping[tuple[str, str | tuple[str, str]], Prompt]

    @property
    def label(self) -> str:
        """Return the name, and twelve hex digits of the digest of all prompts, for signatures."""
        lines = [f"{what} {key} {prompt.digest}" for (what, key), prompt in self.prompts.items()]
        return f"{self.name}-{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class FelmMethod:
    """How a model is prompted, and how its replies are read.

    See the task ``felm`` for the arguments.

    Attributes:
        prompt: "official". "qabench". "auto", which warns if it is not official, or a file (see
            ``read_prompt``) for all domains, with the fields {question}, {segments} (segments or
            claims, numbered) and, for link and content, {references}.
        official_quirks: whether link and content prompts show no references (the authors' script
            has the strings for it, but compares the method with wrong names, and so never shows
            any), and the authors' prompt for Vicuna is plain text with two more lines at the end.

    Raises:
        InputError: an unknown method, or another argument that cannot be used.
        SourceUnavailable: "official", and the authors' prompts are not available.
    """

    method: str
    _: KW_ONLY
    claims: bool = False
    prompt: str | Path = AUTO
    domains: Sequence[str] = DOMAINS
    num_cons: int = NUM_CONS
    official_quirks: bool = False
    reply_format: str = "answer"
    prompts: FelmPrompts = field(init=False)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown_name("unknown method", self.method, METHODS)
        if self.num_cons < 1:
            raise InputError(f"num_cons is {self.num_cons}; it must be at least 1")
        check_format(self.reply_format)
        object.__setattr__(self, "prompts", self._chosen_prompts())

    @property
    def samples(self) -> int:
        """Return the number of replies to each prompt."""
        return self.num_cons if self.method == "cot-cons" else 1

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the official generation parameters.

        The authors' script decodes Vicuna greedily in every method.
        """
        sampled = self.method == "cot-cons" and self.reply_format != "vicuna"
        return {"temperature": CONS_TEMPERATURE if sampled else 0, "max_tokens": 100}

    @property
    def read_as(self) -> str:
        """Return the format in which replies are read: the authors' script reads cot-cons after "Answer: " always."""
        return "answer" if self.method == "cot-cons" else self.reply_format

    @property
    def scoring(self) -> dict[str, Any]:
        """Return the options of the scorer."""
        return {"reply_format": self.read_as}

    def fields(self) -> dict[str, Any]:
        """Return everything that verdicts depend on except data, model and parameters, for signatures."""
        shows = self.method in REFERENCES and not self.official_quirks
        sampled, vicuna = self.method == "cot-cons", self.reply_format == "vicuna"
        return {
            "method": self.method,
            "by": "claims" if self.claims else "segments",
            "samples": self.samples if sampled else None,
            "prompt": self.prompts.label,
            "shown": f"reference {REFERENCES[self.method]}" if shows else None,
            "suffix": "none" if vicuna and not self.official_quirks else None,
            "sampled_domains": tuple(self.domains) if sampled else None,
            "replies": self.read_as,
        }

    def generated_with(self, options: Mapping[str, Any]) -> Json:
        """Return the generation options of a call as fields of a signature.

        The temperature of cot-cons has another name if its official value is different, which it is
        not for Vicuna.
        """
        names = {"temperature": "sampling_temperature"} if self.parameters["temperature"] else {}
        return {names.get(name, name): value for name, value in options.items()}

    def by_claims(self, row: Row) -> bool:
        """Return whether this response is judged by its claims."""
        return self.claims and row["domain"] in CLAIM_DOMAINS

    def extraction_messages(self, row: Row) -> Messages:
        """Return the messages that ask for a response's claims."""
        texts = {"question": row["prompt"], "segments": numbered(row["segmented_response"])}
        return self.prompts.prompts[EXTRACTION, row["domain"]].messages(**texts)

    def messages(self, row: Row, claims: Sequence[Row] | None = None) -> Messages:
        """Return the messages that ask for verdicts on a response, or on its claims (cot-cons: in each sample)."""
        references = row["ref_contents"] if self.method == "content" else row["ref"]
        # The authors' script uses the prompt that mentions references whether or not there are any.
        kind = self._kind(row["domain"], self.official_quirks or bool(references))
        what, texts = VERDICTS, row["segmented_response"]
        if claims is not None:
            what, texts = CLAIM_VERDICTS, [claim["text"] for claim in claims]
        return self.prompts.prompts[what, (row["domain"], kind)].messages(
            question=row["prompt"],
            segments=numbered(texts),
            references="\n".join([] if self.official_quirks else references) or NO_REFERENCES,
        )

    def _kind(self, domain: str, has_references: bool) -> str:
        """Return the kind of prompt for a response: link and content become raw if there are no references to show."""
        if self.method in REFERENCES and not (domain in CLAIM_DOMAINS and has_references):
            return "raw"
        return self.method.removesuffix("-cons")

    def _chosen_prompts(self) -> FelmPrompts:
        if self.prompt in (AUTO, OFFICIAL):
            try:
                return self._prompts(OFFICIAL, self._official_prompt)
            except SourceUnavailable:
                if self.prompt == OFFICIAL:
                    raise
                warnings.warn(
                    "the prompts of FELM's authors are not available (`qabench fetch felm`); using qabench's prompts, "
                    "whose scores are not official",
                    stacklevel=2,
                )
        if self.prompt in (AUTO, QABENCH):
            return self._prompts(QABENCH, self._own_prompt)
        path = Path(str(self.prompt))
        if not path.is_file():
            raise InputError(
                f"the prompt is {str(self.prompt)!r}; allowed: official, qabench, auto, or a file"
            )
        fields = {"question", "segments"} | ({"references"} if self.method in REFERENCES else set())
        template = check_fields(read_prompt(path), fields)
        template = replace(template, system=template.system or SYSTEM)
        return self._prompts(
            template.name, lambda domain, kind, unit: EXTRACT if kind == EXTRACTION else template
        )

    def _prompts(self, name: str, prompt_for: PromptFor) -> FelmPrompts:
        """Return the prompts for all domains, so that the label of a method is the same in all configs."""
        pairs = {(name, self._kind(name, shown)) for name in DOMAINS for shown in (True, False)}
        prompts: dict[tuple[str, str | tuple[str, str]], Prompt] = {}
        for pair in sorted(pairs):
            prompts[VERDICTS, pair] = prompt_for(*pair, SEGMENTS)
        for pair in sorted(pairs):
            if self.claims and pair[0] in CLAIM_DOMAINS:
                prompts[CLAIM_VERDICTS, pair] = prompt_for(*pair, CLAIMS)
        for domain in sorted(CLAIM_DOMAINS) if self.claims else ():
            prompts[EXTRACTION, domain] = prompt_for(domain, EXTRACTION, CLAIMS)
        return FelmPrompts(name, prompts)

    def _own_prompt(self, domain: str, kind: str, unit: str) -> Prompt:
        """Return qabench's prompt."""
        if kind == EXTRACTION:
            return EXTRACT
        error = ERRORS.get(domain, "a factual error")
        how = (
            f"was cut into numbered {unit}"
            if unit == SEGMENTS
            else "was broken down into numbered claims"
        )
        parts = [
            f"An answer to a question {how}. Find those that contain {error}.\n\n{MATERIAL}",
            f"<{unit}>\n{{segments}}\n</{unit}>\n\n",
        ]
        if not self.official_quirks and kind in REFERENCES:
            parts.append(
                f"<references>\n{{references}}\n</references>\n\nUse the references ({REFERENCES[kind]}). "
            )
        parts.append(CAUTION)
        if kind == "cot":
            parts.append(
                f'Begin with "Thought: " and say in a few words what is wrong in which of the {unit}; do not comment '
                "on those that are right. The last line is "
            )
        else:
            parts.append("Reply with one line and no more: ")
        parts.append(
            f'"Answer: " and the numbers of the {unit} with an error, such as "Answer: 2, 5"; or "Answer: ALL_CORRECT" '
            "if none has one."
        )
        return Prompt(QABENCH, "".join(parts), SYSTEM)

    def _official_prompt(self, domain: str, kind: str, unit: str) -> Prompt:
        """Return the authors' prompt: the text of a file, then question and segments in the format of their script."""
        text = open_path("felm", f"eval/prompt/{prompt_file(domain, kind, unit)}").read_text(
            encoding="utf-8"
        )
        for_vicuna = self.official_quirks and self.reply_format == "vicuna"
        (question, segments, links, documents), end, system = _strings(
            open_path("felm", SCRIPT), for_vicuna
        )
        if unit == CLAIMS and kind != EXTRACTION:  # the script asks only about segments
            segments = segments.replace("Segments", "Claims")
        references = (
            {"link": links, "content": documents}.get(kind) if not self.official_quirks else None
        )
        tail = f"{references}{{references}}\n" if references else ""
        return Prompt(
            OFFICIAL, f"{text}\n{question}{{question}}{segments}{{segments}}\n{tail}{end}", system
        )


@cache
def _strings(script: Path, for_vicuna: bool) -> tuple[list[str], str, str | None]:
    """Return the script's strings before question, segments, links and documents, its end and system message."""
    source = PromptSource(script)
    parts = source.appended("eval_prompt", "run", fields={"prompt": "question", "b": "segments"})
    end = "".join(source.appended("eval_prompt", "gene")) if for_vicuna else ""
    system = None if for_vicuna else source.constants("prefix", "gene")[-1]
    return [parts[0], parts[2], *parts[4:]], end, system


def claims_in(row: Row, reply: Answered) -> tuple[list[Json], str | None]:
    """Return the claims of a response in a reply, or [], and the reason."""
    if reply.text is None:
        return [], f"its claims: {reply.reason}"
    if reply.cut_off:  # the claims of the last segments would be missing
        return [], "its claims: the reply was cut off"
    claims = read_claims(reply.text, len(row["segmented_response"]))
    return claims, None if claims else f"its claims: none in the reply {quoted(reply.text, 80)}"


def without_verdict(replies: Sequence[Answered], n: int, reply_format: str) -> list[str]:
    """Return why replies about ``n`` segments or claims have no verdict, one reason for each such reply."""
    return [
        reply.reason
        or f"no verdict in the reply{' (it was cut off)' * reply.cut_off} {quoted(reply.text, 80)}"
        for reply in replies
        if read_reply(reply.text, n, reply_format).readable is None
    ]
