// What scoring found in an answer, next to the answer: the fields of a record's detail, in the forms
// that the benchmark declares (qabench.evaluation.details).

/** A heading with its content. */
function part(title, ...children) {
  return el("section", { class: "part" }, el("h4", {}, title), ...children);
}

function folded(title, children, open = false) {
  return el("details", { class: "part", open }, el("summary", {}, title), children);
}

// The sign repeats what the color says.
const RESULT_SIGNS = { right: "✓", wrong: "✗", none: "–" };

function resultBadge(result, ...children) {
  const sign = el("span", { "aria-hidden": "true" }, RESULT_SIGNS[result]);
  return el("span", { class: `badge ${result}` }, sign, ...children);
}

const RENDERERS = {
  Strings: stringParts,
  Rows: rowParts,
  RankedPassages: passageParts,
  Links: linkParts,
  Text: textParts,
  Texts: textsParts,
  Hidden: () => [],
};

/** The parts of a record's detail, in the order in which the benchmark declares their forms. */
function findingsOf(section, record, question, others) {
  const { detail } = record;
  const parts = section.details.flatMap((form) =>
    RENDERERS[form.form](detail, form, question, others),
  );
  return [...parts, ...otherParts(detail, section.details)];
}

/** The fields that a form reads from a detail. */
function fieldsOf(form) {
  const { field, found, missing, warnings, hits, problem, fields = [] } = form;
  return [field, found, missing, warnings, hits, problem, ...fields].filter(Boolean);
}

/** Every other field under its name: a string as it is, other values as JSON. */
function otherParts(detail, forms) {
  const known = new Set(forms.flatMap(fieldsOf));
  return Object.entries(detail)
    .filter(([name]) => !known.has(name))
    .map(([name, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
      return folded(name.replaceAll("_", " "), block(text), true);
    });
}

// --- Strings of the reference

// A string's normal form keeps its letters and digits; where lemmas differ, the beginnings of its
// words are compared.
const bare = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
const beginnings = (text) =>
  (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || []).map((word) => word.slice(0, 3)).join(" ");

/** A function from a normal form to its string in the reference; "" if there is none. */
function originals(reference) {
  const lines = reference.split("\n");
  const strings = lines.flatMap((line) => [line, ...line.split(" - ")]).reverse();
  const same = new Map(strings.map((text) => [bare(text), text.trim()]));
  const alike = new Map(strings.map((text) => [beginnings(text), text.trim()]));
  return (form) =>
    (bare(form) && same.get(bare(form))) || (beginnings(form) && alike.get(beginnings(form))) || "";
}

/** The form of the strings of the reference, if the benchmark compares strings. */
const stringsForm = (section) => section.details.find((form) => form.form === "Strings");

/** [text, normal form] pairs as chips. */
function chips(strings, result, sign, meaning) {
  const chip = ([text, form]) =>
    el(
      "li",
      { class: `chip ${result}`, title: `${meaning}; compared as: ${shown(form)}` },
      el("span", { "aria-hidden": "true" }, `${sign} `),
      el("span", { class: "unseen" }, `${meaning}: `),
      el("bdi", {}, shown(text)),
    );
  return el("ul", { class: "chips", role: "list" }, strings.map(chip));
}

/** The strings found and missed; with another run next to it, what only this one found. */
function stringParts(detail, form, question, others) {
  const found = detail[form.found] || [];
  const missing = detail[form.missing] || [];
  if (!found.length && !missing.length) return [];
  const original = originals(question.reference);
  const named = (forms) => forms.map((normal) => [original(normal) || normal, normal]);
  const theirs = others.map((other) => new Set(other.detail[form.found] || []));
  const only = theirs.length === 1 ? found.filter((normal) => !theirs[0].has(normal)) : [];
  const both = found.filter((normal) => !only.includes(normal));
  const all = plural(found.length + missing.length, "string");
  return [
    part(
      `Found ${found.length} of ${all} of the reference`,
      only.length ? chips(named(only), "right only", "★", "found by this run only") : null,
      missing.length ? chips(named(missing), "wrong", "✗", "missing") : null,
      both.length ? chips(named(both), "right", "✓", "found") : null,
    ),
  ];
}

// --- Tables

/** [result, text] of a row by the values of some of its keys. */
function verdictOf(row, { keys, cases, otherwise }, detail) {
  const values = keys.map((key) => row[key] ?? null);
  const match = cases.find(([wanted]) => wanted.every((value, i) => value === values[i]));
  const [result, text] = match ? match.slice(1) : otherwise;
  return [result, text.replace(/\{(\w+)\}/g, (_, key) => String(row[key] ?? detail[key] ?? ""))];
}

function cellOf(row, { key, labels, note }) {
  const value = row[key];
  const label = labels.find(([labeled]) => labeled === value);
  let content = label?.[1] ?? block(tidy(value));
  if (!label && Array.isArray(value)) {
    const items = value.map((text) => el("li", {}, source(text)));
    content = items.length
      ? el("ul", { class: "evidence" }, items)
      : el("span", { class: "sub" }, "none");
  }
  const remark = row[note];
  return el(
    "td",
    {},
    content,
    remark ? el("div", { class: "sub", dir: "auto" }, shown(remark)) : null,
  );
}

/** A value as text, without empty lines that repeat. */
const tidy = (value) =>
  value === null || value === undefined
    ? "none"
    : String(value)
        .trim()
        .replace(/\n\s*\n/g, "\n\n");

function rowParts(detail, form) {
  const rows = detail[form.field];
  const warnings = (detail[form.warnings] || []).map((text) =>
    el("p", { class: "note warning" }, shown(text)),
  );
  if (!rows?.length) return warnings;
  if (form.folded_without && !rows.some((row) => row[form.folded_without]?.length)) {
    const texts = rows.map((row) => block(row[form.columns[0].key] ?? ""));
    return [...warnings, folded(`${form.title} (${rows.length})`, texts)];
  }
  const heads = form.columns.map(({ title }) => title);
  const lines = rows.map((row, i) => {
    const [result, text] = verdictOf(row, form.verdict, detail);
    return el(
      "tr",
      { class: result },
      form.numbered ? el("td", { class: "number" }, String(i + 1)) : null,
      form.columns.map((column) => cellOf(row, column)),
      el("td", {}, resultBadge(result, ` ${text}`)),
    );
  });
  const numbered = form.numbered ? [""] : [];
  return [...warnings, part(form.title, table([...numbered, ...heads, form.verdict_title], lines))];
}

function table(heads, rows) {
  const head = el(
    "tr",
    {},
    heads.map((title) => el("th", { scope: "col" }, title)),
  );
  return el(
    "div",
    { class: "scroll", tabindex: "0" },
    el("table", { class: "findings" }, el("thead", {}, head), el("tbody", {}, rows)),
  );
}

// --- Passages, pages and texts

function passageParts(detail, form) {
  const passages = detail[form.field] || [];
  const hits = detail[form.hits] || [];
  if (!passages.length) return [];
  const contexts = matcherOfTexts(hits.flatMap((hit) => hit.contexts || []));
  const parts = passages.map((passage, i) => {
    const own = hits.filter((hit) => hit.rank === i + 1).length;
    const score = typeof passage.score === "number" ? ` score ${passage.score.toFixed(2)}` : "";
    return el(
      "details",
      { class: `passage${own ? " right" : ""}`, open: own > 0 },
      el(
        "summary",
        {},
        `${i + 1}. ${shown(passage.id ?? "")}`,
        el("span", { class: "sub" }, score),
        own ? el("span", { class: "badge right" }, `✓ ${plural(own, form.unit)}`) : null,
      ),
      el("div", { class: "text", dir: "auto" }, marked(passage.text ?? "", contexts)),
    );
  });
  if (hits.length) return [part("Passages retrieved", ...parts)];
  return [folded(`Passages (${parts.length})`, parts)];
}

/** The pages that were read, and those that should have been. */
function linkParts(detail, form) {
  const pages = detail[form.field];
  const missing = detail[form.missing] || [];
  if (!pages?.length && !missing.length) return [];
  const nameOf = (page) => {
    const key = form.names.find((name) => page?.[name] !== undefined && page[name] !== null);
    return String(key ? page[key] : page);
  };
  const lines = new Map();
  for (const page of pages || []) {
    const notes = form.notes.map((note) => page[note]).filter(Boolean);
    lines.set(nameOf(page), notes.join(": "));
  }
  const [key, value] = form.counted;
  const counted = key ? pages.filter((page) => page[key] === value).length : lines.size;
  const counts = [key ? `${counted} of ${pages.length} ${value}` : `${counted} read`];
  if (form.missing) counts.push(`${plural(missing.length, "necessary page")} not read`);
  const items = missing.map((name) =>
    el("li", {}, `✗ ${shown(name)}`, el("span", { class: "sub wrong" }, " not read")),
  );
  for (const [name, note] of lines) {
    items.push(
      el("li", {}, source(name), el("span", { class: "sub" }, note ? ` ${shown(note)}` : "")),
    );
  }
  const list = el("ul", { class: "evidence" }, items);
  return [folded(`${form.title} (${counts.join(", ")})`, [list])];
}

/** A text, or why there is none. */
function textParts(detail, form) {
  const text = detail[form.field];
  const problem = detail[form.problem];
  if (!text && !problem) return [];
  const warning = problem ? el("p", { class: "note warning" }, shown(problem)) : null;
  return [part(form.title, warning, text ? block(text) : null)];
}

function textsParts(detail, form) {
  const items = detail[form.field] || [];
  if (items.length < Math.max(1, form.fewest)) return [];
  const texts = items.map((item) => {
    const text = (form.key ? item?.[form.key] : item) ?? "none";
    const number = form.number && item?.[form.number] ? `${item[form.number]}. ` : "";
    return block(`${number}${text}`);
  });
  return [folded(`${form.title} (${items.length})`, texts)];
}

/** Evidence: a link if it is only an address (with or without its mark), otherwise text. */
function source(text) {
  const address = /^\s*(\[\d+\]\s*)?(https?:\/\/[^\s"'<>]+)\s*$/.exec(text);
  if (!address) return block(text);
  const [, mark, href] = address;
  const attributes = { href, rel: "noopener noreferrer nofollow", target: "_blank" };
  return el("span", {}, mark || "", el("a", attributes, shown(href)));
}

/** Finds whole strings, with any whitespace between their words. */
function matcherOfTexts(texts) {
  const patterns = texts
    .map((text) => text.trim())
    .filter(Boolean)
    .map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"));
  return patterns.length ? new RegExp(patterns.join("|"), "gu") : null;
}
