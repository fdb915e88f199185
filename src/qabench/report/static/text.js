// Texts of questions and models, made fit to be seen, and the places in them that hold a string.

// Control characters and half surrogates have no shape of their own: their pictures stand for them.
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function shown(text) {
  return String(text).replace(UNSEEN, (found) => {
    const code = found.charCodeAt(0);
    return code === 0x7f ? "\u2421" : code < 0x20 ? String.fromCharCode(0x2400 + code) : "\ufffd";
  });
}

/** A block of somebody's text, in its own direction. */
function block(text, attributes = {}) {
  return el("div", { class: "text", dir: "auto", ...attributes }, shown(text));
}

/** Finds strings as whole words, in any case, with or without the thousands commas of numbers; null for none. */
function matcher(strings) {
  const patterns = [...new Set(strings.map((one) => one.trim()).filter(Boolean))]
    .sort((a, b) => b.length - a.length)
    .slice(0, 500)
    .map((one) => one.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+").replace(/\d(?=\d{3}(?!\d)|\d{6}(?!\d)|\d{9}(?!\d))/g, "$&,?"));
  if (!patterns.length) return null;
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${patterns.join("|")})(?![\\p{L}\\p{N}])`, "giu");
}

/** The text as nodes, with what the pattern matches marked. */
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

const number = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const count = (value) => value.toLocaleString("en-US");

/** A score as a badge: its outcome by colour and by sign. */
const OUTCOMES = {
  right: { sign: "✓", name: "right" },
  partly: { sign: "◐", name: "partly right" },
  wrong: { sign: "✗", name: "wrong" },
  none: { sign: "–", name: "no score" },
};

function outcomeOf(score) {
  if (score === null || score === undefined) return "none";
  return score > 1 - 1e-9 ? "right" : score > 1e-9 ? "partly" : "wrong";
}

function badge(score, status) {
  const outcome = outcomeOf(score);
  const { sign, name } = OUTCOMES[outcome];
  const failed = status && status !== "answered";
  return el(
    "span",
    { class: `badge ${outcome}`, title: `${name}${failed ? `, ${status}` : ""}` },
    el("span", { "aria-hidden": "true" }, sign),
    el("span", { class: "unseen" }, `${name} `),
    outcome === "none" ? "" : ` ${number(score, 2)}`,
    failed ? el("span", { class: "status" }, ` ${status}`) : null,
  );
}
