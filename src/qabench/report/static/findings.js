// What the scorer of each benchmark found in an answer, beside the answer.

/** A heading and what stands below it. */
function part(title, ...children) {
  return el("section", { class: "part" }, el("h4", {}, title), ...children);
}

/** [text, normal form] pairs as chips; the sign says what the colour says. */
function chips(strings, kind, sign, meaning) {
  return el(
    "ul",
    { class: "chips", role: "list" },
    strings.map(([text, form]) => el("li", { class: `chip ${kind}`, title: `${meaning}; compared as: ${shown(form)}` }, el("span", { "aria-hidden": "true" }, `${sign} `), el("span", { class: "unseen" }, `${meaning}: `), el("bdi", {}, shown(text)))),
  );
}

// What stays of a string in its normal form: letters and figures; where lemmas differ, how its words begin.
const bare = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
const beginnings = (text) => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || []).map((word) => word.slice(0, 3)).join(" ");

/** A function from a normal form to the string of the reference that it stands for, "" where none is found. */
function originals(reference) {
  const parts = reference.split("\n").flatMap((line) => [line, ...line.split(" - ")]).reverse();
  const same = new Map(parts.map((text) => [bare(text), text.trim()]));
  const alike = new Map(parts.map((text) => [beginnings(text), text.trim()]));
  return (form) => (bare(form) && same.get(bare(form))) || (beginnings(form) && alike.get(beginnings(form))) || "";
}

const FINDINGS = {
  fanoutqa(record, question) {
    const { found = [], missing = [] } = record.detail;
    if (!found.length && !missing.length) return [];
    const original = originals(question.reference);
    const named = (forms) => forms.map((form) => [original(form) || form, form]);
    return [part(`Found ${found.length} of ${found.length + missing.length} strings of the reference`, chips(named(missing), "wrong", "✗", "missing"), chips(named(found), "right", "✓", "found"))];
  },

  felm(record) {
    const segments = record.detail.segments || [];
    const reasons = (record.detail.reasons || []).map((reason) => el("p", { class: "note warning" }, shown(reason)));
    const rows = segments.map((segment, i) => {
      const [sign, kind, meaning] = verdictOf(segment);
      const type = segment.label ? "" : (segment.type || "").replaceAll("_", " ");
      return el(
        "tr",
        { class: kind },
        el("td", { class: "number" }, String(i + 1)),
        el("td", {}, block(segment.text.trim().replace(/\n\s*\n/g, "\n\n")), segment.comment ? el("div", { class: "sub", dir: "auto" }, `Annotator: ${shown(segment.comment)}`) : null),
        el("td", {}, segment.label ? "factual" : `error${type ? `: ${type}` : ""}`),
        el("td", {}, segment.verdict === null ? "none" : segment.verdict ? "factual" : "error"),
        el("td", {}, el("span", { class: `badge ${kind}` }, el("span", { "aria-hidden": "true" }, sign), ` ${meaning}`)),
      );
    });
    return [...reasons, rows.length ? part("Segments", table(["", "Segment", "Label", "Verdict", ""], rows)) : null, ...felmClaims(record), ...replies(record)];
  },

  expertqa(record) {
    const { claims = [], passages = [] } = record.detail;
    const kinds = { Y: ["✓", "right", "supported"], N: ["✗", "wrong", "not supported"] };
    const rows = claims.map((claim) => {
      const [sign, kind, meaning] = kinds[claim.label] || ["–", "none", "no label"];
      const evidence = (claim.evidence || []).map((text) => el("li", {}, source(text)));
      return el(
        "tr",
        { class: kind },
        el("td", {}, block(claim.text)),
        el("td", {}, evidence.length ? el("ul", { class: "evidence" }, evidence) : el("span", { class: "sub" }, "no evidence")),
        el("td", {}, el("span", { class: `badge ${kind}` }, el("span", { "aria-hidden": "true" }, sign), ` ${meaning}`)),
      );
    });
    return [
      rows.length ? part("Claims and their evidence", table(["Claim", "Evidence", "AutoAIS"], rows)) : null,
      passages.length ? folded(`Passages (${passages.length})`, passages.map((passage) => el("div", { class: "passage" }, el("div", { class: "sub" }, shown(passage.id)), block(passage.text)))) : null,
    ];
  },

  fastbook(record) {
    const { components = [], passages = [], k } = record.detail;
    const parts = components.map((component) => {
      const found = component.rank !== null;
      return el(
        "tr",
        { class: found ? "right" : "wrong" },
        el("td", {}, block(component.text)),
        el("td", {}, el("span", { class: `badge ${found ? "right" : "wrong"}` }, el("span", { "aria-hidden": "true" }, found ? "✓" : "✗"), found ? ` rank ${component.rank}` : ` not in the first ${k}`)),
      );
    });
    const contexts = matcherOfTexts(components.flatMap((component) => component.contexts || []));
    const found = passages.map((passage, i) => {
      const hits = components.filter((component) => component.rank === i + 1).length;
      const title = `${i + 1}. ${shown(passage.id)}`;
      const score = typeof passage.score === "number" ? ` score ${passage.score.toFixed(2)}` : "";
      return el(
        "details",
        { class: `passage${hits ? " right" : ""}`, open: hits > 0 },
        el("summary", {}, title, el("span", { class: "sub" }, score), hits ? el("span", { class: "badge right" }, `✓ ${hits} component${hits > 1 ? "s" : ""}`) : null),
        el("div", { class: "text", dir: "auto" }, marked(passage.text, contexts)),
      );
    });
    return [parts.length ? part("Components of the answer", table(["Component", "Retrieved"], parts)) : null, found.length ? part("Passages retrieved", ...found) : null];
  },
};

/** [sign, outcome, meaning] of a verdict on a segment beside people's label. */
function verdictOf({ label, verdict }) {
  if (verdict === null) return ["–", "none", "no verdict"];
  if (label === verdict) return ["✓", "right", label ? "agrees" : "error found"];
  return ["✗", "wrong", label ? "false alarm" : "error missed"];
}

function table(heads, rows) {
  return el("div", { class: "scroll", tabindex: "0" }, el("table", { class: "findings" }, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows)));
}

function folded(title, children, open = false) {
  return el("details", { class: "part", open }, el("summary", {}, title), children);
}

function felmClaims(record) {
  const claims = record.detail.claims || [];
  return claims.length ? [folded(`Claims (${claims.length})`, claims.map((claim) => block(`${claim.segment}. ${claim.text}`)))] : [];
}

function replies(record) {
  const texts = record.detail.replies || [];
  return texts.length > 1 ? [folded(`Replies (${texts.length})`, texts.map((text) => block(text === null ? "none" : text)))] : [];
}

/** Evidence: a link where it is an address and nothing else (perhaps with its mark before it), else a text. */
function source(text) {
  const found = /^\s*(\[\d+\]\s*)?(https?:\/\/[^\s"'<>]+)\s*$/.exec(text);
  if (!found) return block(text);
  return el("span", {}, found[1] || "", el("a", { href: found[2], rel: "noopener noreferrer nofollow", target: "_blank" }, shown(found[2])));
}

/** Finds whole texts, with whatever white space between their words. */
function matcherOfTexts(texts) {
  const patterns = texts.map((text) => text.trim()).filter(Boolean).map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"));
  return patterns.length ? new RegExp(patterns.join("|"), "gu") : null;
}
