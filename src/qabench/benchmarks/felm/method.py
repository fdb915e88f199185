"""FELM's methods of asking a model for the segments with errors.

The prompts are the authors', qabench's, or a user's template. Source: Chen et al., FELM, NeurIPS
2023 Datasets and Benchmarks (https://arxiv.org/abs/2310.00741), and ``eval/eval.py`` and
``eval/prompt`` of hkust-nlp/felm.
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
from qabench.io.redaction import quoted
from qabench.llm.exchange import Answered
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.felm.parse import DOMAINS
from qabench.prompts.authors import PromptSource
from qabench.prompts.prompt import (
    AUTO,
    DATA_NOT_INSTRUCTIONS,
    OFFICIAL,
    QABENCH,
    Prompt,
    check_fields,
    read_prompt,
)

# The temperature at which the authors sample the replies of cot-cons.
CONS_TEMPERATURE = 0.9
# The authors do not say how many samples they took.
NUM_CONS = 5
# The parameters of the call that lists a response's claims. The authors published the prompts for
# claims, but no code that sends them.
CLAIMS_PARAMETERS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 2000}
# If there are no references, a user's template shows this text.
NO_REFERENCES = "(none)"
# Only these domains have references, and prompts by the authors for claims.
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
# The part of a segment that the authors' script does not show.
_BEFORE_FIRST_LETTER = re.compile("[^A-Za-z]*")

PromptFor = Callable[[str, str, str], Prompt]
"""A function from domain, kind ("raw", "cot", "link", "content", EXTRACTION), unit to a prompt."""


def prompt_file(domain: str, kind: str, unit: str) -> str:
    """Return the path below ``eval/prompt`` of the authors' file with a prompt."""
    if domain == "writing_rec":
        # For this domain, the authors use the prompts of wk.
        domain = "wk"
    # In the names of folders and of segment prompts, and in some names of claim prompts, the
    # authors write "sci" for science.
    short = "sci" if domain == "science" else domain
    if unit == SEGMENTS:
        name = kind
        # The names of the files of link and content contain "ret_", for retrieved.
        if kind in REFERENCES:
            name = f"ret_{kind}"
        if domain in CLAIM_DOMAINS:
            name = f"prompt_{short}_{name}"
        return f"segment/{short}/{name}.txt"
    names = {"raw": domain, "cot": f"{domain}_cot", EXTRACTION: f"extract_{short}"}
    name = names.get(kind, f"{short}_{kind}")
    return f"claim/{short}/claim_{name}.txt"


def numbered(texts: Sequence[str]) -> str:
    """Return one line per text, numbered from 1."""
    lines = []
    for number, text in enumerate(texts, start=1):
        # The authors' script shows a segment from its first ASCII letter on. So a segment "12 = 3x"
        # is shown as "x", and a segment without such a letter is empty.
        shown = _BEFORE_FIRST_LETTER.sub("", text, count=1)
        lines.append(f"{number}. {shown}")
    return "\n".join(lines)


@dataclass(frozen=True)
class FelmPrompts:
    """The prompts of one method.

    Attributes:
        name: "official", "qabench", or the user's file.
        prompts: the prompts by purpose (VERDICTS or CLAIM_VERDICTS) and (domain, kind), where the
            kind is "raw", "cot", "link" or "content". Prompts that ask for claims have the key
            (EXTRACTION, domain).
    """

    name: str
    prompts: Mapping[tuple[str, str | tuple[str, str]], Prompt]

    @property
    def label(self) -> str:
        """Return the name, and twelve hex digits of the digest of all prompts, for signatures."""
        lines = []
        for (purpose, key), prompt in self.prompts.items():
            lines.append(f"{purpose} {key} {prompt.digest}")
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
        return f"{self.name}-{digest}"


@dataclass(frozen=True)
class FelmMethod:
    """How a model is prompted, and how its replies are read.

    See the task ``felm`` for the arguments.

    Attributes:
        prompt: "official"; "qabench"; "auto" (official if available, else qabench with a warning);
            or a file (see ``read_prompt``) for all domains, with the fields {question}, {segments}
            (segments or claims, numbered) and, for link and content, {references}.
        official_quirks: whether to reproduce two quirks of the authors' script. It never shows
            references in the prompts of link and content, because it compares the method with wrong
            names. Its prompt for Vicuna is plain text with two more lines at the end.

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
        # A majority needs at least one sample.
        if self.num_cons < 1:
            raise InputError(f"num_cons is {self.num_cons}; it must be at least 1")
        check_format(self.reply_format)
        # The class is frozen, so that the prompts always match the fields by which they were chosen.
        # In a frozen class, only ``object.__setattr__`` can set an attribute.
        object.__setattr__(self, "prompts", self._chosen_prompts())

    @property
    def samples(self) -> int:
        """Return the number of replies to each prompt."""
        return self.num_cons if self.method == "cot-cons" else 1

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the official generation parameters."""
        temperature: float = 0
        # The authors' script decodes greedily for Vicuna with every method.
        if self.method == "cot-cons" and self.reply_format != "vicuna":
            temperature = CONS_TEMPERATURE
        # The authors use the same limit for methods that ask for thoughts before the answer. A reply
        # that is cut off before its answer counts as "all segments are correct".
        return {"temperature": temperature, "max_tokens": 100}

    @property
    def read_as(self) -> str:
        """Return the format in which replies are read."""
        if self.method == "cot-cons":
            # For cot-cons, the authors' script reads ids after "Answer: " even for Vicuna.
            return "answer"
        return self.reply_format

    @property
    def scoring(self) -> dict[str, Any]:
        """Return the options of the scorer."""
        return {"reply_format": self.read_as}

    def fields(self) -> dict[str, Any]:
        """Return the signature fields that describe the prompts, samples and reading of replies."""
        # A field with the value None is not in the signature.
        shown = suffix = samples = sampled_domains = None
        if self.method in REFERENCES and not self.official_quirks:
            shown = f"reference {REFERENCES[self.method]}"
        if self.reply_format == "vicuna" and not self.official_quirks:
            suffix = "none"
        if self.method == "cot-cons":
            samples = self.samples
            # The authors' script has a prompt for cot-cons in science only.
            sampled_domains = tuple(self.domains)
        judged_by = CLAIMS if self.claims else SEGMENTS
        return {
            "method": self.method,
            "by": judged_by,
            "samples": samples,
            "prompt": self.prompts.label,
            "shown": shown,
            "suffix": suffix,
            "sampled_domains": sampled_domains,
            "replies": self.read_as,
        }

    def generated_with(self, options: Mapping[str, Any]) -> Json:
        """Return the generation options of a call as fields of a signature.

        A field has only one official value, which is 0 for ``temperature``. So the temperature of
        cot-cons, except for Vicuna, is signed as ``sampling_temperature``.
        """
        fields = {}
        for name, value in options.items():
            if name == "temperature" and self.parameters["temperature"]:
                name = "sampling_temperature"
            fields[name] = value
        return fields

    def by_claims(self, row: Row) -> bool:
        """Tell whether this response is judged by its claims."""
        return self.claims and row["domain"] in CLAIM_DOMAINS

    def extraction_messages(self, row: Row) -> Messages:
        """Return the messages that ask for a response's claims."""
        texts = {"question": row["prompt"], "segments": numbered(row["segmented_response"])}
        return self.prompts.prompts[EXTRACTION, row["domain"]].messages(**texts)

    def messages(self, row: Row, claims: Sequence[Row] | None = None) -> Messages:
        """Return the messages that ask for verdicts on a response, or on its claims."""
        references = row["ref_contents"] if self.method == "content" else row["ref"]
        # The authors' script uses the prompt that mentions references even if there are none.
        kind = self._kind(row["domain"], self.official_quirks or bool(references))
        if claims is None:
            prompt = self.prompts.prompts[VERDICTS, (row["domain"], kind)]
            texts = row["segmented_response"]
        else:
            prompt = self.prompts.prompts[CLAIM_VERDICTS, (row["domain"], kind)]
            texts = [claim["text"] for claim in claims]
        shown_references = NO_REFERENCES
        if references and not self.official_quirks:
            shown_references = "\n".join(references) or NO_REFERENCES
        return prompt.messages(
            question=row["prompt"], segments=numbered(texts), references=shown_references
        )

    def _kind(self, domain: str, has_references: bool) -> str:
        """Return the kind of prompt for a response."""
        # Math and reasoning have neither references nor prompts that mention them.
        if self.method in REFERENCES and not (domain in CLAIM_DOMAINS and has_references):
            return "raw"
        # cot-cons samples replies to the prompt of cot.
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
        fields = {"question", "segments"}
        if self.method in REFERENCES:
            fields.add("references")
        template = check_fields(read_prompt(path), fields)
        template = replace(template, system=template.system or SYSTEM)

        def prompt_for(domain: str, kind: str, unit: str) -> Prompt:
            return EXTRACT if kind == EXTRACTION else template

        return self._prompts(template.name, prompt_for)

    def _prompts(self, name: str, prompt_for: PromptFor) -> FelmPrompts:
        """Return the prompts for all domains.

        A config may have only some domains, but a method must have the same label in all configs.
        """
        pairs = set()
        for domain in DOMAINS:
            pairs.add((domain, self._kind(domain, has_references=True)))
            pairs.add((domain, self._kind(domain, has_references=False)))
        prompts: dict[tuple[str, str | tuple[str, str]], Prompt] = {}
        for domain, kind in sorted(pairs):
            prompts[VERDICTS, (domain, kind)] = prompt_for(domain, kind, SEGMENTS)
        if self.claims:
            for domain, kind in sorted(pairs):
                if domain in CLAIM_DOMAINS:
                    prompts[CLAIM_VERDICTS, (domain, kind)] = prompt_for(domain, kind, CLAIMS)
            for domain in sorted(CLAIM_DOMAINS):
                prompts[EXTRACTION, domain] = prompt_for(domain, EXTRACTION, CLAIMS)
        return FelmPrompts(name, prompts)

    def _own_prompt(self, domain: str, kind: str, unit: str) -> Prompt:
        """Return qabench's prompt."""
        if kind == EXTRACTION:
            return EXTRACT
        error = ERRORS.get(domain, "a factual error")
        division = "was broken down into numbered claims"
        if unit == SEGMENTS:
            division = "was cut into numbered segments"
        parts = [
            f"An answer to a question {division}. Find those that contain {error}.\n\n{MATERIAL}",
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
        """Return the authors' prompt: the text of a file, then the labels of their script."""
        file = dataset_table("felm").open_path(f"eval/prompt/{prompt_file(domain, kind, unit)}")
        text = file.read_text(encoding="utf-8")
        for_vicuna = self.official_quirks and self.reply_format == "vicuna"
        labels, end, system = _strings(dataset_table("felm").open_path(SCRIPT), for_vicuna)
        question, segments, links, documents = labels
        if unit == CLAIMS and kind != EXTRACTION:
            # The script has labels for segments only.
            segments = segments.replace("Segments", "Claims")
        tail = end
        if not self.official_quirks and kind in REFERENCES:
            label = {"link": links, "content": documents}[kind]
            tail = f"{label}{{references}}\n{end}"
        # The script ends the file's text, and each segment, with a line break.
        user = f"{text}\n{question}{{question}}{segments}{{segments}}\n{tail}"
        return Prompt(OFFICIAL, user, system)


@cache
def _strings(script: Path, for_vicuna: bool) -> tuple[list[str], str, str | None]:
    """Return the strings that the authors' script puts around the text of a prompt's file.

    These are the labels of question, segments, links and documents, the end of the prompt, and the
    system message.
    """
    source = PromptSource(script)
    parts = source.appended("eval_prompt", "run", fields={"prompt": "question", "b": "segments"})
    # The script appends these strings in this order: the label of the question, {question}, the
    # label of the segments, {segments}, and the labels of links and of documents.
    labels = [parts[0], parts[2], *parts[4:]]
    if for_vicuna:
        return labels, "".join(source.appended("eval_prompt", "gene")), None
    return labels, "", source.constants("prefix", "gene")[-1]


def claims_in(row: Row, reply: Answered) -> tuple[list[Json], str | None]:
    """Return the claims in a reply, and the reason if there are none."""
    if reply.text is None:
        return [], f"its claims: {reply.reason}"
    if reply.cut_off:
        # In a reply that was cut off, claims of the last segments are missing.
        return [], "its claims: the reply was cut off"
    claims = read_claims(reply.text, len(row["segmented_response"]))
    if not claims:
        return [], f"its claims: none in the reply {quoted(reply.text, 80)}"
    return claims, None


def without_verdict(replies: Sequence[Answered], n: int, reply_format: str) -> list[str]:
    """Return the reason of each reply that has no verdict on ``n`` segments or claims."""
    reasons = []
    for reply in replies:
        if read_reply(reply.text, n, reply_format).readable is not None:
            continue
        if reply.reason:
            reasons.append(reply.reason)
        elif reply.cut_off:
            reasons.append(f"no verdict in the reply (it was cut off) {quoted(reply.text, 80)}")
        else:
            reasons.append(f"no verdict in the reply {quoted(reply.text, 80)}")
    return reasons
