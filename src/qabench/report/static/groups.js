// Scores by group, the leaderboard, and the sections that a benchmark adds: charts for few runs, tables for many.

const CHARTED = 4; // runs whose dots and names fit into a chart

function startGroups(section) {
  const place = $(".groups", document.getElementById(section.key));
  if (place) {
    onState(section, (state) => {
      const metric = metricOf(section, state.metric);
      place.replaceChildren(
        ...section.breakdowns.map((one, i) =>
          grouped(
            section,
            state,
            `${metric.title} by ${one.title}`,
            fileName(section.key, one.key, metric.key),
            one.groups,
            section.groups[metric.key][i],
            metric.unit,
          ),
        ),
      );
    });
  }
  section.extra.forEach((extra, i) => {
    const parts = $(`.extra[data-extra="${i}"]`, document.getElementById(section.key));
    onState(section, (state) => parts.replaceChildren(...extraParts(section, state, extra)));
  });
}

/** The n of a group's scores: "n = 12", or "n = 10 to 12" if the runs differ. */
function sizeOf(runs, scores, i) {
  const sizes = runs.filter((run) => scores[run][i]).map((run) => scores[run][i][3]);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  if (!sizes.length) return "n = 0";
  return least === most ? `n = ${count(most)}` : `n = ${count(least)} to ${count(most)}`;
}

/** A chart or a table of scores by group. scores: for each run a [mean, low, high, n] or null per group. */
function grouped(section, state, heading, name, groups, scores, unit) {
  const runs = ranked(section, state).filter((run) => scores[run]?.some(Boolean));
  const several = section.runs.length > 1;
  const data = () =>
    runs.flatMap((run) =>
      groups.flatMap((group, i) =>
        scores[run][i]
          ? [
              {
                run: section.runs[run].label,
                group,
                mean: scores[run][i][0],
                low: scores[run][i][1],
                high: scores[run][i][2],
                n: scores[run][i][3],
              },
            ]
          : [],
      ),
    );
  if (runs.length > CHARTED)
    return el(
      "div",
      { class: "group wide-group" },
      groupTable(section, heading, groups, scores, runs, unit),
    );
  const rows = groups
    .map((group, i) => ({
      label: group,
      sub: sizeOf(runs, scores, i),
      dots: runs
        .filter((run) => scores[run][i])
        .map((run) => {
          const [mean, low, high, n] = scores[run][i];
          const { label } = section.runs[run];
          return {
            run,
            mean,
            low,
            high,
            name: several ? label : null,
            tip: `${several ? `${label}, ` : ""}${group}: ${range3({ mean, low, high })}, n = ${count(n)}`,
          };
        }),
    }))
    .filter((row) => row.dots.length);
  if (!rows.length) return el("p", { class: "sub" }, `${heading}: no scores.`);
  const table = el(
    "details",
    { class: "as-table" },
    el("summary", {}, "As a table"),
    groupTable(section, heading, groups, scores, runs, unit),
  );
  return el(
    "div",
    { class: "group" },
    figure(
      heading,
      name,
      (width, colors) => dotChart({ rows, title: heading }, width, colors),
      data,
    ),
    table,
  );
}

function groupTip(label, group, [mean, low, high, n], unit) {
  return `${label}, ${group}: ${range3({ mean, low, high })}, n = ${count(n)} ${unit}`;
}

/** Runs as rows, groups as columns; the darker, the higher. */
function groupTable(section, heading, groups, scores, runs, unit) {
  const all = runs.flatMap((run) => scores[run].filter(Boolean).map(([mean]) => mean));
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const heads = [
    "Run",
    ...groups.map((group, i) =>
      el(
        "span",
        { "data-copy": `${group} (${sizeOf(runs, scores, i)})`, "data-name": group },
        el("bdi", {}, shown(group)),
        el("span", { class: "sub n" }, sizeOf(runs, scores, i)),
      ),
    ),
  ];
  const rows = runs.map((run) => [
    el("th", { scope: "row" }, swatch(run), el("bdi", {}, shown(section.runs[run].label))),
    ...groups.map((group, i) => {
      const score = scores[run][i];
      if (!score) return el("td", { class: "number", "data-copy": "" }, "–");
      const share = high > low ? (score[0] - low) / (high - low) : 0;
      return el(
        "td",
        {
          class: "number heat",
          style: `--strength:${Math.round(share * 38)}%`,
          title: groupTip(section.runs[run].label, group, score, unit),
          "data-copy": bracketed({ mean: score[0], low: score[1], high: score[2] }, (value) =>
            number(value),
          ),
          "data-numbers": JSON.stringify(score),
        },
        number(score[0], 2),
        score[1] === null
          ? null
          : el("span", { class: "interval" }, `${number(score[1], 2)}–${number(score[2], 2)}`),
      );
    }),
  ]);
  return dataTable("heat-table", heading, heads, rows);
}

function extraParts(section, state, extra) {
  const place = new Map(section.runs.map(({ label }, run) => [label, run]));
  const rows = extra.rows.filter((row) => state.runs.includes(place.get(row.run)));
  const titles = [...new Set(rows.map((row) => row.score))];
  const parts = titles.map((title) => {
    const of = rows.filter((row) => row.score === title);
    return extra.kind === "curve"
      ? curves(section, state, extra, title, of, place)
      : extraGroups(section, state, extra, title, of, place);
  });
  return extra.note ? [...parts, el("p", { class: "sub note-below" }, extra.note)] : parts;
}

function extraGroups(section, state, extra, title, rows, place) {
  const names = [...new Set(rows.map((row) => row.at))];
  const scores = section.runs.map(() => names.map(() => null));
  for (const row of rows)
    scores[place.get(row.run)][names.indexOf(row.at)] = [row.mean, row.low, row.high, row.n];
  return grouped(
    section,
    state,
    `${title} by ${lowered(extra.title)}`,
    fileName(section.key, title, extra.title),
    names.map(String),
    scores,
    extra.unit,
  );
}

function curves(section, state, extra, title, rows, place) {
  const series = ranked(section, state)
    .map((run) => ({
      run,
      name: section.runs[run].label,
      points: rows.filter((row) => place.get(row.run) === run).sort((a, b) => a.at - b.at),
    }))
    .filter((one) => one.points.length);
  const heading = `${title} over ${extra.axis || "k"}, with 95% intervals`;
  return figure(
    heading,
    fileName(section.key, title),
    (width, colors) =>
      lineChart({ series, title: heading, axis: extra.axis || "k" }, width, colors),
    () => rows,
  );
}

/** Published systems and runs by the main metric: a chart for each group of comparable scores. */
function startLeaderboard(section) {
  const place = $(".leaderboard", document.getElementById(section.key));
  if (place)
    onState(section, ({ runs }) =>
      place.replaceChildren(
        ...leaderboards(
          section,
          section.leaderboard.filter(({ run }) => run === null || runs.includes(run)),
        ),
      ),
    );
}

function leaderboards(section, entries) {
  const groups = new Map();
  for (const entry of entries) {
    const name = [entry.setting, entry.config, entry.judge && `judged by ${entry.judge}`]
      .filter(Boolean)
      .join(", ");
    groups.set(name, [...(groups.get(name) || []), entry]);
  }
  return [...groups].map(([name, members]) => {
    const heading = `${metricOf(section, members[0].metric).title}: ${name}`;
    const interval = (entry) => (entry.n === null ? "–" : bounds(entry, (value) => number(value)));
    const rows = members.map((entry) => {
      const { low, high } = entry;
      const tip = `${entry.system}: ${entry.n === null ? `${number(entry.score)}, published` : range3({ mean: entry.score, low, high })}`;
      return {
        label: `${entry.rank ? `${entry.rank}. ` : ""}${entry.system}`,
        sub: entry.rank ? null : "not ranked",
        dots: [{ run: entry.run, mean: entry.score, low, high, open: entry.run === null, tip }],
      };
    });
    const cells = members.map((entry) => [
      el("th", { scope: "row" }, el("bdi", {}, shown(entry.system))),
      el("td", { class: "number" }, String(entry.rank ?? "–")),
      el(
        "td",
        {
          class: "number",
          "data-numbers": JSON.stringify([entry.score, entry.low, entry.high, entry.n]),
        },
        number(entry.score),
      ),
      ...[interval(entry), entry.n ?? "–"].map((cell) =>
        el("td", { class: "number" }, String(cell)),
      ),
    ]);
    const table = el(
      "details",
      { class: "as-table" },
      el("summary", {}, "As a table"),
      dataTable("heat-table", heading, ["System", "Rank", "Score", "95% interval", "n"], cells),
    );
    const draw = (width, colors) =>
      dotChart(
        { rows, title: `${heading}; ${members.length} systems, the best first` },
        width,
        colors,
      );
    return el(
      "div",
      { class: "group" },
      figure(heading, fileName(section.key, "leaderboard", name), draw, () => members),
      table,
    );
  });
}
