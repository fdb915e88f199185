// Which runs differ: a table of pairs with a chart, or for five runs and more a matrix.

const MATRIX = 5;
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);
const pValue = (p) => (p < 0.0001 ? "< 0.0001" : p.toFixed(4));
const NOT_A_TEST =
  "Overlapping intervals do not show that there is no difference: only the paired test below compares runs question by question.";

/** The pairs of the shown runs; ``first`` is the better one. */
function pairsOf(section, { metric, runs }) {
  return (section.pairs[metric] || []).filter(
    ({ first, second }) => runs.includes(first) && runs.includes(second),
  );
}

function startComparison(section) {
  const place = $(".comparison", document.getElementById(section.key));
  if (!place) return;
  onState(section, (state) => {
    const pairs = pairsOf(section, state);
    const title = metricOf(section, state.metric)?.title;
    if (!pairs.length) {
      place.replaceChildren(
        el(
          "p",
          { class: "sub" },
          state.runs.length < 2
            ? "Only one run is shown, so there is nothing to compare."
            : `The runs shown have no questions in common that are scored by ${title}.`,
        ),
      );
      return;
    }
    const shownPairs =
      state.runs.length >= MATRIX
        ? [matrix(section, state, pairs)]
        : [pairChart(section, state, pairs), pairTable(section, pairs)];
    const hidden =
      state.runs.length < section.runs.length
        ? " P-values are corrected over the pairs of all runs, including those not shown."
        : "";
    place.replaceChildren(
      ...shownPairs,
      el(
        "p",
        { class: "sub" },
        `${title}, each pair on the questions for which both runs have scores (n). ${section.tests}.${hidden}`,
      ),
    );
  });
}

/** The difference of a pair with its interval and p-value, for pointing at it. */
function pairTip(pair, first, second) {
  const interval = `${signed(pair.mean)} (95% CI ${bounds(pair, signed)})`;
  return `${first} − ${second}: ${interval}, corrected p ${pValue(pair.corrected)}`;
}

function pairChart(section, { metric }, pairs) {
  const name = (run) => section.runs[run].label;
  const heading = `Differences in ${lowered(metricOf(section, metric).title)}; a filled marker is significant at 5%`;
  const rows = pairs.map((pair) => ({
    label: `${name(pair.first)} − ${name(pair.second)}`,
    dots: [
      {
        ...pair,
        run: pair.first,
        open: !pair.significant,
        tip: pairTip(pair, name(pair.first), name(pair.second)),
      },
    ],
  }));
  const data = () => pairRows(section, pairs);
  return figure(
    heading,
    fileName(section.key, "differences", metric),
    (width, colors) => dotChart({ rows, title: heading, zero: true }, width, colors),
    data,
  );
}

const pairRows = (section, pairs) =>
  pairs.map(({ first, second, mean, ...pair }) => ({
    first: section.runs[first].label,
    second: section.runs[second].label,
    difference: mean,
    ...pair,
  }));

function pairTable(section, pairs) {
  const name = (run) => [swatch(run), el("bdi", {}, shown(section.runs[run].label))];
  const rows = pairs.map((pair) => [
    el(
      "th",
      {
        scope: "row",
        "data-copy": `${section.runs[pair.first].label} − ${section.runs[pair.second].label}`,
      },
      name(pair.first),
      " − ",
      name(pair.second),
    ),
    el(
      "td",
      {
        class: "number",
        "data-copy": bracketed(pair, signed),
        "data-numbers": JSON.stringify([pair.mean, pair.low, pair.high, pair.n]),
      },
      signed(pair.mean),
      el("span", { class: "interval" }, bounds(pair, signed)),
    ),
    ...[pair.p, pair.corrected].map((p) =>
      el("td", { class: "number", "data-value": p }, pValue(p)),
    ),
    ...[pair.wins, pair.ties, pair.losses].map((n) =>
      el("td", { class: "number", "data-value": n }, count(n)),
    ),
    el("td", { class: "number sizes" }, count(pair.n)),
    el(
      "td",
      {},
      pair.significant
        ? el("strong", {}, shown(section.runs[pair.first].label), " is better")
        : pair.verdict,
      missingAnswers(section, pair),
    ),
  ]);
  const heads = ["Pair", "Difference", "p", "Corrected p", "Wins", "Ties", "Losses", "n", "At 5%"];
  return dataTable("pairs", "Pairs", heads, rows);
}

/** How many questions only one of the runs answered, or nothing. */
function missingAnswers(section, pair) {
  if (!pair.significant) return null; // the verdict says it
  const missing = [
    [pair.first, pair.unanswered_first],
    [pair.second, pair.unanswered_second],
  ].filter(([, number]) => number);
  const texts = missing.map(
    ([run, number]) => `${section.runs[run].label} has no answer to ${count(number)}`,
  );
  return texts.length ? el("span", { class: "interval" }, texts.join(", ")) : null;
}

const negated = (value) => (value === null ? null : -value);

/** Rows minus columns, the best run first. */
function matrix(section, state, pairs) {
  const order = ranked(section, state).filter((run) => section.scores[state.metric][run]);
  const by = new Map();
  for (const pair of pairs) {
    by.set(`${pair.first},${pair.second}`, pair);
    by.set(`${pair.second},${pair.first}`, {
      ...pair,
      mean: -pair.mean,
      low: negated(pair.high),
      high: negated(pair.low),
      wins: pair.losses,
      losses: pair.wins,
    });
  }
  const largest = Math.max(...pairs.map((pair) => Math.abs(pair.mean))) || 1;
  const rows = order.map((row, place) => [
    el(
      "th",
      { scope: "row", "data-copy": section.runs[row].label },
      el("span", { class: "place" }, String(place + 1)),
      swatch(row),
      el("bdi", {}, shown(section.runs[row].label)),
    ),
    ...order.map((column) => matrixCell(section, row, column, by.get(`${row},${column}`), largest)),
  ]);
  const heads = [
    "Row − column",
    ...order.map((run, place) =>
      el(
        "span",
        { title: section.runs[run].label, "data-copy": section.runs[run].label },
        String(place + 1),
        el("span", { class: "unseen" }, ` ${shown(section.runs[run].label)}`),
      ),
    ),
  ];
  const made = dataTable(
    "matrix",
    `Differences in ${lowered(metricOf(section, state.metric).title)}`,
    heads,
    rows,
  );
  made.append(
    el(
      "p",
      { class: "sub" },
      "Columns are the runs of the rows with the same number. ",
      el("span", { class: "key better" }, "Blue"),
      ": the row is significantly better; ",
      el("span", { class: "key worse" }, "orange"),
      ": significantly worse; no color: no significant difference at 5%, corrected.",
    ),
  );
  const several = `${count(pairs.length)} pairs with intervals, p-values, wins and n`;
  made.append(
    el("details", { class: "as-table" }, el("summary", {}, several), pairTable(section, pairs)),
  );
  return made;
}

function matrixCell(section, row, column, pair, largest) {
  if (row === column) return el("td", { class: "self", "data-copy": "" });
  if (!pair) return el("td", { class: "number", "data-copy": "" }, "–");
  const name = (run) => section.runs[run].label;
  const strength = pair.significant ? 0.18 + 0.5 * (Math.abs(pair.mean) / largest) : 0;
  const outcomes = `wins ${count(pair.wins)}, ties ${count(pair.ties)}, losses ${count(pair.losses)}`;
  const tip = `${pairTip(pair, name(row), name(column))}; ${outcomes}, n = ${count(pair.n)}`;
  const text =
    (pair.mean < 0 ? "−" : "") +
    Math.abs(pair.mean)
      .toFixed(Math.abs(pair.mean) < 0.995 ? 2 : 1)
      .replace(/^0/, "");
  return el(
    "td",
    {
      class: `number ${pair.significant ? (pair.mean > 0 ? "better" : "worse") : "even"}`,
      style: strength ? `--strength:${Math.round(strength * 100)}%` : null,
      title: tip,
      "data-copy": `${signed(pair.mean)}${pair.significant ? "*" : ""}`,
      "data-value": pair.mean,
    },
    text,
  );
}
