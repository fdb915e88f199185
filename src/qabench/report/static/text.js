// Strings of questions and models in displayable form, and the places in them that contain other strings.

// Control characters and unpaired surrogates are invisible: they are shown as symbols. So are controls that reorder text.
const REORDERING = /[\u202a-\u202e\u2066-\u2069]/g;
const UNSEEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function shown(text) {
  const ordered = String(text).replace(
    REORDERING,
    (found) => `\\u${found.charCodeAt(0).toString(16)}`,
  );
  return ordered.replace(UNSEEN, (found) => {
    const code = found.charCodeAt(0);
    return code === 0x7f ? "\u2421" : code < 0x20 ? String.fromCharCode(0x2400 + code) : "\ufffd";
  });
}

/** A block of foreign text, in its own direction. */
function block(text, attributes = {}) {
  return el("div", { class: "text", dir: "auto", ...attributes }, shown(text));
}

/** Finds strings as whole words, in any case, with or without the thousands commas of numbers; null for none. */
function matcher(strings) {
  const patterns = [...new Set(strings.map((one) => one.trim()).filter(Boolean))]
    .sort((a, b) => b.length - a.length)
    .slice(0, 500)
    .map((one) =>
      one
        .replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
        .replace(/\s+/g, "\\s+")
        .replace(/\d(?=\d{3}(?!\d)|\d{6}(?!\d)|\d{9}(?!\d))/g, "$&,?"),
    );
  if (!patterns.length) return null;
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${patterns.join("|")})(?![\\p{L}\\p{N}])`, "giu");
}

/** The text as nodes, with the matches of the pattern marked. */
function marked(text, pattern, attributes = {}) {
  const seen = shown(text);
  if (!pattern) return [seen];
  const nodes = [];
  let end = 0;
  for (const found of seen.matchAll(pattern)) {
    if (!found[0]) continue;
    nodes.push(seen.slice(end, found.index), el("mark", attributes, found[0]));
    end = found.index + found[0].length;
  }
  nodes.push(seen.slice(end));
  return nodes;
}

const number = (value, digits = 3) =>
  value === null || value === undefined ? "–" : value.toFixed(digits);
/** The bounds of an interval, and a value with its bounds for a clipboard. */
const bounds = ({ low, high }, format) =>
  low === null ? "not enough data" : `${format(low)} to ${format(high)}`;
const bracketed = ({ mean, low, high }, format) =>
  low === null ? format(mean) : `${format(mean)} [${format(low)}, ${format(high)}]`;
const count = (value) => value.toLocaleString("en-US");
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

// The outcome of an answer: right, partly right or wrong if the metric is graded, or why it has no score.
const OUTCOMES = {
  right: "right",
  partly: "partly right",
  wrong: "wrong",
  scored: "scored",
  empty: "empty",
  refused: "refused",
  failed: "failed",
  unscored: "no score",
  missing: "missing",
};
const SIGNS = {
  right: "✓",
  partly: "◐",
  wrong: "✗",
  scored: "",
  empty: "∅",
  refused: "⊘",
  failed: "!",
  unscored: "–",
  missing: "",
};

/** The result of a run on a question: its outcome by color and sign, and its score. */
function badge(section, question, run, compact = false) {
  const outcome = outcomeOf(section, question, run);
  const score = scoreOf(question, run);
  const status = statusOf(question, run);
  const name = `${OUTCOMES[outcome]}${status === "cut off" ? ", cut off" : ""}`;
  const value =
    score === null || ["refused", "failed", "missing"].includes(outcome) ? "" : number(score, 2);
  const plain = outcome === "scored";
  const tip = `${section.runs[run].label}: ${plain ? "" : name}${value ? ` ${section.itemTitle} ${value}` : ""}`;
  if (compact) {
    const shade = plain ? `--strength:${Math.round(Math.max(0, Math.min(1, score)) * 70)}%` : null;
    return el(
      "span",
      { class: `square ${outcome}`, style: shade, title: tip },
      el("span", { "aria-hidden": "true" }, plain ? "" : SIGNS[outcome]),
      el("span", { class: "unseen" }, `${tip}; `),
    );
  }
  return el(
    "span",
    { class: `badge ${outcome}`, title: tip },
    el("span", { "aria-hidden": "true" }, SIGNS[outcome]),
    el("span", { class: "unseen" }, plain ? "" : `${name} `),
    value && outcome !== "empty" ? ` ${value}` : ` ${name}`,
    status === "cut off" ? el("span", { class: "status" }, " cut off") : null,
  );
}
