// The finding, the table of scores with its chart, the choice of metric and runs.

function startSection(section) {
  const root = document.getElementById(section.key);
  $(".controls", root).replaceChildren(...controls(section));
  if (section.metrics.length) {
    startScores(section, root);
    onState(section, ({ metric, runs }) => {
      const hidden = section.runs.length - runs.length;
      $(".finding", root).replaceChildren(
        section.findings[metric],
        hidden
          ? el(
              "span",
              { class: "sub" },
              ` This is about all runs, including the ${count(hidden)} not shown.`,
            )
          : "",
      );
    });
  }
  onState(section, ({ runs }) => {
    for (const row of $$("[data-run]", root))
      if (row.tagName === "TR") row.hidden = !runs.includes(Number(row.dataset.run));
  });
  const ran = $("table.runs tbody", root);
  const rows = new Map($$("tr", ran).map((row) => [Number(row.dataset.run), row]));
  onState(section, ({ metric }) =>
    ran.append(...ranked(section, { metric, runs: [...rows.keys()] }).map((run) => rows.get(run))),
  );
  const place = $(".outcomes", root);
  onState(section, (state) => {
    useMarks(section, state.metric);
    place.replaceChildren(outcomeChart(section, state));
  });
}

function controls(section) {
  const metrics = section.metrics.map(({ key, title }) => [key, title]);
  const select =
    metrics.length > 1
      ? choice("metric", "score", metrics, (event) =>
          setState(section, { metric: event.target.value }),
        )
      : null;
  if (select) onState(section, ({ metric }) => ($("select", select).value = metric));
  return [select, section.runs.length > 2 ? runFilter(section) : null].filter(Boolean);
}

/** A list of runs with check boxes; the choice is kept in the address. */
function runFilter(section) {
  const boxes = section.runs.map(({ label }, run) =>
    el(
      "label",
      { class: "check" },
      el("input", { type: "checkbox", name: "runs", value: run }),
      swatch(run),
      el("bdi", {}, shown(label)),
    ),
  );
  const inputs = boxes.map((box) => $("input", box));
  const take = () =>
    setState(section, { runs: inputs.flatMap((input, run) => (input.checked ? [run] : [])) });
  const all = el(
    "button",
    { type: "button", click: () => setState(section, { runs: section.runs.map((_, run) => run) }) },
    "All",
  );
  const few = [3, 5]
    .filter((n) => n < section.runs.length)
    .map((n) =>
      el(
        "button",
        {
          type: "button",
          click: () =>
            setState(section, {
              runs: ranked(section, {
                ...stateOf(section),
                runs: section.runs.map((_, run) => run),
              }).slice(0, n),
            }),
        },
        `Best ${n}`,
      ),
    );
  const title = el("summary", {});
  const made = el(
    "details",
    { class: "run-filter" },
    title,
    el(
      "div",
      { class: "panel", change: take },
      el("div", { class: "tools" }, all, few),
      el("div", { class: "checks" }, boxes),
    ),
  );
  onState(section, ({ runs }) => {
    const all = section.runs.length;
    const chosen =
      runs.length === all ? `all ${count(all)}` : `${count(runs.length)} of ${count(all)}`;
    title.textContent = `Runs: ${chosen}`;
    inputs.forEach((input, run) => (input.checked = runs.includes(run)));
  });
  return made;
}

function startScores(section, root) {
  const table = $("table.scores", root);
  const heads = $$("thead th[data-metric]", table);
  for (const head of heads) {
    const button = el(
      "button",
      {
        type: "button",
        class: "sort",
        title: "Sort by this score and show it everywhere",
        click: () => setState(section, { metric: head.dataset.metric }),
      },
      ...head.childNodes,
    );
    head.append(button);
  }
  const plotHead = el("td", { class: "plot-cell", "aria-hidden": "true" });
  heads[0].before(plotHead);
  const rows = $$("tbody tr", table);
  for (const { key, higher, ranks } of section.metrics) {
    if (!ranks) continue;
    const gains = section.scores[key].map((score) =>
      score ? (higher ? score[0] : -score[0]) : -Infinity,
    );
    const best = Math.max(...gains);
    if (gains.filter(Number.isFinite).length < 2) continue;
    for (const row of rows)
      if (gains[row.dataset.run] === best)
        $(`[data-metric="${CSS.escape(key)}"] .value`, row).classList.add("best");
  }
  const cells = rows.map((row) => {
    const cell = el("td", { class: "plot-cell", "aria-hidden": "true" });
    $("th", row).after(cell);
    return cell;
  });
  const order = $("tbody", table);
  const show = () => {
    const state = stateOf(section);
    for (const cell of $$("[data-metric]", table))
      cell.classList.toggle("chosen", cell.dataset.metric === state.metric);
    for (const head of heads)
      head.setAttribute(
        "aria-sort",
        head.dataset.metric === state.metric
          ? metricOf(section, state.metric).higher
            ? "descending"
            : "ascending"
          : "none",
      );
    const scores = section.scores[state.metric];
    const domain = rangeOf(
      state.runs.flatMap((run) => (scores[run] ? scores[run].slice(0, 3) : [])),
    );
    plotHead.replaceChildren(axisHead(domain));
    rows.forEach((row, i) =>
      cells[i].replaceChildren(
        inlinePlot(Number(row.dataset.run), scores[row.dataset.run], domain),
      ),
    );
    for (const run of ranked(section, { ...state, runs: section.runs.map((_, i) => i) }))
      order.append(rows.find((row) => Number(row.dataset.run) === run));
  };
  onState(section, show);
  DRAWN.add(show);
  const scoreRows = () => {
    const state = stateOf(section);
    return ranked(section, state)
      .filter((run) => section.scores[state.metric][run])
      .map((run) => dotOf(section, state.metric, run));
  };
  const heading = () =>
    `${metricOf(section, stateOf(section).metric).title}, ${section.title} ${section.config}, with 95% intervals`;
  const draw = (width, colors) =>
    dotChart(
      {
        title: heading(),
        rows: scoreRows().map((dot) => ({
          label: dot.label,
          sub: `n = ${count(dot.n)}`,
          dots: [dot],
        })),
      },
      width,
      colors,
    );
  const data = () =>
    scoreRows().map(({ label, mean, low, high, n }) => ({
      run: label,
      metric: stateOf(section).metric,
      mean,
      low,
      high,
      n,
    }));
  const name = () => fileName(section.key, "scores", stateOf(section).metric);
  const buttons = ["svg", "png", "csv"].map((kind) =>
    el(
      "button",
      {
        type: "button",
        "aria-label": `Chart ${kind.toUpperCase()}: save the chart of scores`,
        click: () => saveChart(kind, name(), heading(), draw, data),
      },
      `Chart ${kind.toUpperCase()}`,
    ),
  );
  $(".table-tools", table.closest(".table")).append(...buttons);
}

function dotOf(section, metric, run) {
  const [mean, low, high, n] = section.scores[metric][run];
  const { label } = section.runs[run];
  const { unit } = metricOf(section, metric);
  return {
    run,
    label,
    mean,
    low,
    high,
    n,
    tip: `${label}: ${range3({ mean, low, high })}, n = ${count(n)} ${n === 1 ? unit.replace(/s$/, "") : unit}`,
  };
}

/** The width of the chart within the table. */
const plotWidth = () => (innerWidth < 720 ? 92 : 170);

function axisHead([low, high]) {
  const colors = palette();
  const width = plotWidth();
  const svg = node("svg", { width, height: 16, viewBox: `0 0 ${width} 16`, "aria-hidden": "true" });
  const { values, digits } = ticks(low, high, width < 100 ? 2 : 3);
  for (const value of values)
    svg.append(
      words(
        10 + ((value - low) / (high - low || 1)) * (width - 20),
        12,
        value.toFixed(digits),
        colors.muted,
        11,
        { "text-anchor": "middle" },
      ),
    );
  return svg;
}

function inlinePlot(run, score, [low, high]) {
  const colors = palette();
  const width = plotWidth();
  const svg = node("svg", { width, height: 22, viewBox: `0 0 ${width} 22` });
  const x = (value) => 10 + ((value - low) / (high - low || 1)) * (width - 20);
  for (const value of ticks(low, high, width < 100 ? 2 : 3).values)
    svg.append(line(x(value), 0, x(value), 22, colors.line));
  if (score && score[1] !== null)
    svg.append(...whiskers(x(score[1]), x(score[2]), 11, colorOf(run, colors)));
  const hollow =
    score?.[1] === null
      ? { fill: colors.ground, stroke: colorOf(run, colors), "stroke-width": 0.36 }
      : {};
  if (score) svg.append(marker(run, x(score[0]), 11, 3.6, colors, hollow));
  return svg;
}

function outcomeChart(section, { metric, runs }) {
  const rows = ranked(section, { metric, runs }).map((run) => {
    const found = outcomesOf(section, run);
    return {
      label: section.runs[run].label,
      parts: Object.entries(OUTCOMES)
        .filter(([key]) => found[key])
        .map(([key, name]) => ({ key, name, n: found[key] })),
    };
  });
  const kinds = new Set(rows.flatMap((row) => row.parts.map((part) => part.key)));
  if (kinds.size === 1 && (kinds.has("scored") || kinds.has("unscored")))
    return el(
      "p",
      { class: "sub" },
      kinds.has("scored") ? "All questions were answered and scored." : "No answer has a score.",
    );
  const heading = section.graded ? `Answers: ${lowered(section.itemTitle)}` : "Answers by status";
  const data = () =>
    rows.flatMap((row) =>
      row.parts.map((part) => ({ run: row.label, outcome: part.name, n: part.n })),
    );
  return figure(
    heading,
    fileName(section.key, "answers"),
    (width, colors) => barChart({ rows, title: heading }, width, colors),
    data,
  );
}

/** A title within a sentence; abbreviations keep their capitals. */
const lowered = (text) =>
  /^.[A-Z0-9]|@/.test(text) ? text : text[0].toLowerCase() + text.slice(1);
