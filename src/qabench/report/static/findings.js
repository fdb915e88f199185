// What scoring found in an answer, next to the answer. A record's detail decides: its parts are shown by their names.

/** A heading with its content. */
function part(title, ...children) {
  return el("section", { class: "part" }, el("h4", {}, title), ...children);
}

/** [text, normal form] pairs as chips; the sign repeats what the color says. */
function chips(strings, kind, sign, meaning) {
  return el(
    "ul",
    { class: "chips", role: "list" },
    strings.map(([text, form]) => el("li", { class: `chip ${kind}`, title: `${meaning}; compared as: ${shown(form)}` }, el("span", { "aria-hidden": "true" }, `${sign} `), el("span", { class: "unseen" }, `${meaning}: `), el("bdi", {}, shown(text)))),
  );
}

// A string's normal form keeps its letters and digits; where lemmas differ, the beginnings of its words are compared.
const bare = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
const beginnings = (text) => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || []).map((word) => word.slice(0, 3)).join(" ");

/** A function from a normal form to its string in the reference; "" if there is none. */
function originals(reference) {
  const parts = reference.split("\n").flatMap((line) => [line, ...line.split(" - ")]).reverse();
  const same = new Map(parts.map((text) => [bare(text), text.trim()]));
  const alike = new Map(parts.map((text) => [beginnings(text), text.trim()]));
  return (form) => (bare(form) && same.get(bare(form))) || (beginnings(form) && alike.get(beginnings(form))) || "";
}

// The fields of a detail that have a form of their own, or that only explain another one.
const FORMS = ["found", "missing", "segments", "reasons", "claims", "components", "k", "passages", "pages", "evidence_read", "evidence_missing"];
const KNOWN = new Set([...FORMS, "attribution", "judge", "judge_problem", "verdict", "replies"]);

/** The parts of a record's detail, in the order of display; a detail has the fields of one or more of them. */
function findingsOf(record, question, others) {
  const { detail } = record;
  return [
    ...(detail.found || detail.missing ? foundParts(detail, question, others) : []),
    ...(detail.segments ? segmentParts(detail) : []),
    ...(detail.claims ? claimParts(detail) : []),
    ...(detail.components ? componentParts(detail) : []),
    ...(detail.passages ? passageParts(detail) : []),
    ...(detail.pages ? pageParts(detail) : []),
    ...(detail.evidence_read ? evidenceParts(detail) : []),
    ...(detail.judge || detail.judge_problem ? judgeParts(detail) : []),
    ...(detail.replies?.length > 1 ? [folded(`Replies (${detail.replies.length})`, detail.replies.map((text) => block(text === null ? "none" : text)))] : []),
    ...otherParts(detail),
  ];
}

/** Every other field under its name: a string as it is, other values as JSON. */
function otherParts(detail) {
  const fields = Object.entries(detail).filter(([name]) => !KNOWN.has(name));
  return fields.map(([name, value]) => folded(name.replaceAll("_", " "), block(typeof value === "string" ? value : JSON.stringify(value, null, 1)), true));
}

/** The strings of the reference that were found and missed; with another run next to it, what only this one found. */
function foundParts({ found = [], missing = [] }, question, others) {
  if (!found.length && !missing.length) return [];
  const original = originals(question.reference);
  const named = (forms) => forms.map((form) => [original(form) || form, form]);
  const theirs = others.map((other) => new Set(other.detail.found || []));
  const only = theirs.length === 1 ? found.filter((form) => !theirs[0].has(form)) : [];
  const both = found.filter((form) => !only.includes(form));
  return [
    part(
      `Found ${found.length} of ${plural(found.length + missing.length, "string")} of the reference`,
      only.length ? chips(named(only), "right only", "★", "found by this run only") : null,
      missing.length ? chips(named(missing), "wrong", "✗", "missing") : null,
      both.length ? chips(named(both), "right", "✓", "found") : null,
    ),
  ];
}

function segmentParts({ segments, reasons = [] }) {
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
  const notes = reasons.map((reason) => el("p", { class: "note warning" }, shown(reason)));
  return [...notes, rows.length ? part("Segments", table(["", "Segment", "Label", "Verdict", ""], rows)) : null];
}

function claimParts({ claims }) {
  if (!claims.length) return [];
  if (!claims.some((claim) => claim.evidence)) return [folded(`Claims (${claims.length})`, claims.map((claim) => block(`${claim.segment ? `${claim.segment}. ` : ""}${claim.text}`)))];
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
  return [part("Claims and their evidence", table(["Claim", "Evidence", "Label"], rows))];
}

function componentParts({ components, k }) {
  const rows = components.map((component) => {
    const found = component.rank !== null;
    return el(
      "tr",
      { class: found ? "right" : "wrong" },
      el("td", {}, block(component.text)),
      el("td", {}, el("span", { class: `badge ${found ? "right" : "wrong"}` }, el("span", { "aria-hidden": "true" }, found ? "✓" : "✗"), found ? ` rank ${component.rank}` : ` not in the first ${k}`)),
    );
  });
  return rows.length ? [part("Components of the answer", table(["Component", "Retrieved"], rows))] : [];
}

function passageParts({ passages, components = [] }) {
  const contexts = matcherOfTexts(components.flatMap((component) => component.contexts || []));
  const parts = passages.map((passage, i) => {
    const hits = components.filter((component) => component.rank === i + 1).length;
    const score = typeof passage.score === "number" ? ` score ${passage.score.toFixed(2)}` : "";
    return el(
      "details",
      { class: `passage${hits ? " right" : ""}`, open: hits > 0 },
      el("summary", {}, `${i + 1}. ${shown(passage.id ?? "")}`, el("span", { class: "sub" }, score), hits ? el("span", { class: "badge right" }, `✓ ${plural(hits, "component")}`) : null),
      el("div", { class: "text", dir: "auto" }, marked(passage.text ?? "", contexts)),
    );
  });
  return parts.length ? [components.length ? part("Passages retrieved", ...parts) : folded(`Passages (${parts.length})`, parts)] : [];
}

/** The web pages that were found, with the reason where one was not read. */
function pageParts({ pages }) {
  const read = pages.filter((page) => page.outcome === "read").length;
  const items = pages.map((page) => el("li", {}, source(page.url), el("span", { class: "sub" }, ` ${shown([page.outcome, page.detail].filter(Boolean).join(": "))}`)));
  return pages.length ? [folded(`Web pages (${read} of ${pages.length} read)`, [el("ul", { class: "evidence" }, items)])] : [];
}

/** The evidence pages that were read, and the necessary ones that were not. */
function evidenceParts({ evidence_read: read, evidence_missing: missing = [] }) {
  const names = [...new Set(read.map((page) => String(page.title ?? page.url ?? page.pageid ?? page)))];
  const items = [...missing.map((title) => ["✗", "wrong", title, "not read"]), ...names.map((name) => ["", "", name, "read"])];
  const lines = items.map(([sign, kind, name, what]) => el("li", {}, `${sign} ${shown(name)}`, el("span", { class: `sub ${kind}` }, ` ${what}`)));
  return [folded(`Evidence pages (${names.length} read, ${missing.length} necessary pages not read)`, [el("ul", { class: "evidence" }, lines)])];
}

/** A judge's reply, or why there is none. */
function judgeParts({ judge, judge_problem: problem }) {
  return [part("Judge", problem ? el("p", { class: "note warning" }, shown(problem)) : null, judge ? block(judge) : null)];
}

/** [sign, outcome, meaning] of a verdict on a segment, compared with the annotators' label. */
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

/** Evidence: a link if it is only an address (with or without its mark), otherwise text. */
function source(text) {
  const found = /^\s*(\[\d+\]\s*)?(https?:\/\/[^\s"'<>]+)\s*$/.exec(text);
  if (!found) return block(text);
  return el("span", {}, found[1] || "", el("a", { href: found[2], rel: "noopener noreferrer nofollow", target: "_blank" }, shown(found[2])));
}

/** Finds whole strings, with any whitespace between their words. */
function matcherOfTexts(texts) {
  const patterns = texts.map((text) => text.trim()).filter(Boolean).map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"));
  return patterns.length ? new RegExp(patterns.join("|"), "gu") : null;
}
