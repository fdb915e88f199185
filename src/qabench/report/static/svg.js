// Drawing with SVG: colors of both themes, shapes of runs, measured and wrapped labels.

const PALETTES = {
  light: {
    ink: "#1c1e21",
    muted: "#5b6068",
    line: "#e4e4e0",
    axis: "#8d9199",
    ground: "#ffffff",
    accent: "#0b57b0",
    runs: ["#0b62b8", "#c8500a", "#0a8060", "#a8387e", "#8a6a00", "#2b7ba0", "#6a4bb5", "#4d4d4d"],
    outcomes: {
      right: "#1a8a5a",
      partly: "#e0a526",
      wrong: "#cf4a3a",
      scored: "#4a86c5",
      empty: "#b9a06a",
      refused: "#8a62b8",
      failed: "#7a1f1f",
      unscored: "#b3b6bb",
      missing: "#dcdcd8",
    },
  },
  dark: {
    ink: "#eceded",
    muted: "#a5a9b1",
    line: "#2e3238",
    axis: "#7d828b",
    ground: "#141619",
    accent: "#7db6ff",
    runs: ["#6cb2ff", "#ff9a5c", "#4fd1a5", "#f08cc8", "#e3c04b", "#7fd3f2", "#b9a2ff", "#c9c9c9"],
    outcomes: {
      right: "#35b27c",
      partly: "#e3b341",
      wrong: "#f0705f",
      scored: "#5f9fe0",
      empty: "#a8905a",
      refused: "#a981d8",
      failed: "#b04a4a",
      unscored: "#5d626b",
      missing: "#33373d",
    },
  },
};

// Outlines in a square of side 2 around the origin, so that runs can be told apart without colors.
const SHAPES = [
  "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
  "M-.9,-.9H.9V.9H-.9Z",
  "M0,-1.2L1.1,0L0,1.2L-1.1,0Z",
  "M0,-1.1L1.1,.9H-1.1Z",
  "M0,1.1L1.1,-.9H-1.1Z",
  "M-.4,-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
  "M-1.1,-.4H1.1V.4H-1.1Z",
  "M0,-1.1L.95,-.55V.55L0,1.1L-.95,.55V-.55Z",
];

const PRINTED = matchMedia("print");
const dark = () =>
  !PRINTED.matches &&
  (document.documentElement.dataset.theme ||
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const palette = () => PALETTES[dark() ? "dark" : "light"];
// Eight colors and eight shapes, paired differently for each eight runs: 64 different markers.
const colorOf = (run, colors = palette()) => colors.runs[run % 8];
const shapeOf = (run) => SHAPES[(run + Math.floor(run / 8)) % 8];

/** The marker of a run, for text and tables. */
function swatch(run) {
  return el(
    "svg",
    { class: `swatch run${run % 8}`, viewBox: "-1.3 -1.3 2.6 2.6", "aria-hidden": "true" },
    el("path", { d: shapeOf(run) }),
  );
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const pen = document.createElement("canvas").getContext("2d");

function widthOf(text, size) {
  pen.font = `${size}px ${FONT}`;
  return pen.measureText(text).width;
}

/** The text in lines of at most ``width`` pixels, broken between words, and within a word that is longer. */
function wrapped(text, width, size, most = 4) {
  const lines = [];
  let line = "";
  for (const word of shown(text).split(/\s+/)) {
    const joined = line ? `${line} ${word}` : word;
    if (widthOf(joined, size) <= width) {
      line = joined;
      continue;
    }
    if (line) lines.push(line);
    line = word;
    while (widthOf(line, size) > width && line.length > 1) {
      let end = line.length - 1;
      while (end > 1 && widthOf(line.slice(0, end), size) > width) end--;
      lines.push(line.slice(0, end));
      line = line.slice(end);
    }
  }
  lines.push(line);
  if (lines.length > most) return [...lines.slice(0, most - 1), `${lines[most - 1]}…`];
  return lines;
}

const node = (name, attributes, ...children) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const line = (x1, y1, x2, y2, stroke, width = 1, more = {}) =>
  node("line", { x1, y1, x2, y2, stroke, "stroke-width": width, ...more });
/** An interval with ends that are higher than a marker, which would cover a narrow one. */
const whiskers = (x1, x2, y, color) => [
  line(x1, y, x2, y, color, 1.75),
  ...[x1, x2].map((x) => line(x, y - 6.5, x, y + 6.5, color, 1.25)),
];
const words = (x, y, text, fill, size, more = {}) =>
  node("text", { x, y, fill, "font-size": size, "font-family": FONT, ...more }, shown(text));
const marker = (run, x, y, size, colors, more = {}) =>
  node("path", {
    d: shapeOf(run),
    transform: `translate(${x},${y}) scale(${size})`,
    fill: colorOf(run, colors),
    ...more,
  });

/** The ticks of an axis over a range, about ``count`` of them, at round numbers. */
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    found.push(i * step);
  return { step, values: found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** A range for intervals: 0 to 1 if they fill a good part of it, otherwise a round range around them. */
function rangeOf(values, { zero = false } = {}) {
  const known = values.filter((value) => Number.isFinite(value));
  if (!known.length) return [0, 1];
  let low = Math.min(...known, ...(zero ? [0] : []));
  let high = Math.max(...known, ...(zero ? [0] : []));
  if (!zero && low >= 0 && high <= 1 && high - low > 0.35) return [0, 1];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  const { step } = ticks(low, high, 5);
  low = Math.floor((low - room) / step) * step;
  high = Math.ceil((high + room) / step) * step;
  if (!zero && known.every((value) => value >= 0)) low = Math.max(0, low);
  if (!zero && known.every((value) => value <= 1)) high = Math.min(1, high);
  return [low, high];
}
