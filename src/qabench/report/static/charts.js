// Charts: functions from data, width and colors to an SVG element with its labels next to the values.

const LABEL = 12.5;
const SMALL = 11.5;
const range3 = (dot) =>
  `${dot.mean.toFixed(3)} (95% CI ${bounds(dot, (value) => value.toFixed(3))})`;

function canvas(width, height, colors, title) {
  const made = node("svg", {
    xmlns: SVG,
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": title,
  });
  made.append(node("rect", { width, height, fill: colors.ground }));
  return made;
}

function axisX(svg, scale, [low, high], [left, right, top, bottom], colors) {
  const { values, digits } = ticks(low, high, Math.max(2, Math.round((right - left) / 80)));
  for (const value of values) {
    const zero = Math.abs(value) < 1e-12;
    svg.append(
      line(
        scale(value),
        top,
        scale(value),
        bottom,
        zero && low < 0 ? colors.axis : colors.line,
        1,
        zero && low < 0 ? { "stroke-dasharray": "4 3" } : {},
      ),
    );
    svg.append(
      words(scale(value), bottom + 16, value.toFixed(digits), colors.muted, SMALL, {
        "text-anchor": "middle",
      }),
    );
  }
}

/** Dots with whiskers. rows: [{ label, sub, dots: [{ run, mean, low, high, name, open }] }]; several dots are named next to them. */
function dotChart({ rows, title, zero = false }, width, colors) {
  const left = Math.min(
    width * 0.42,
    Math.max(
      60,
      ...rows.map((row) => widthOf(row.label, LABEL) + 14),
      ...rows.map((row) => widthOf(row.sub || "", SMALL) + 14),
    ),
  );
  const named = rows.some((row) => row.dots.some((dot) => dot.name));
  const names = named
    ? Math.min(
        width * 0.3,
        Math.max(...rows.flatMap((row) => row.dots.map((dot) => widthOf(dot.name || "", SMALL)))),
      ) + 12
    : 0;
  const right = width - 14 - names;
  const domain = rangeOf(
    rows.flatMap((row) => row.dots.flatMap((dot) => [dot.low, dot.mean, dot.high])),
    { zero },
  );
  const scale = (value) =>
    left + ((value - domain[0]) / (domain[1] - domain[0] || 1)) * (right - left);
  const blocks = rows.map((row) => {
    const lines = wrapped(row.label, left - 12, LABEL);
    return {
      ...row,
      lines,
      height: Math.max(lines.length * 15 + (row.sub ? 14 : 0), row.dots.length * 15, 15) + 9,
    };
  });
  const height = blocks.reduce((sum, block) => sum + block.height, 0) + 30;
  const svg = canvas(width, height, colors, title);
  axisX(svg, scale, domain, [left, right, 4, height - 26], colors);
  let y = 4;
  for (const block of blocks) {
    let at = y + (block.height - block.lines.length * 15 - (block.sub ? 14 : 0)) / 2 + 11;
    for (const text of block.lines)
      (svg.append(words(left - 12, at, text, colors.ink, LABEL, { "text-anchor": "end" })),
        (at += 15));
    if (block.sub)
      svg.append(words(left - 12, at, block.sub, colors.muted, SMALL, { "text-anchor": "end" }));
    const start = y + (block.height - block.dots.length * 15) / 2 + 7.5;
    block.dots.forEach((dot, i) =>
      svg.append(...whisker(dot, start + i * 15, scale, colors, right + 8, names)),
    );
    y += block.height;
  }
  return svg;
}

function whisker(dot, y, scale, colors, nameAt, names) {
  const color = dot.run === null ? colors.muted : colorOf(dot.run, colors);
  const unsure = dot.low === null && dot.run !== null; // no interval: hollow, and said next to it
  const mark = marker(
    dot.run,
    scale(dot.mean),
    y,
    4,
    colors,
    dot.open || unsure ? { fill: colors.ground, stroke: color, "stroke-width": 0.36 } : {},
  );
  const group = node(
    "g",
    {},
    ...(dot.low === null ? [] : whiskers(scale(dot.low), scale(dot.high), y, color)),
    mark,
  );
  group.append(node("title", {}, shown(dot.tip)));
  if (unsure) group.append(noInterval(scale(dot.mean), y, nameAt - 8, colors));
  if (!dot.name) return [group];
  const [text] = wrapped(dot.name, names - 4, SMALL, 1);
  return [
    group,
    words(nameAt, y + 4, text === shown(dot.name) ? text : `${text.slice(0, -1)}…`, color, SMALL),
  ];
}

/** The words next to a point without an interval, on its left if there is no room on its right. */
function noInterval(x, y, right, colors) {
  const text = "no interval";
  const fits = x + 10 + widthOf(text, SMALL) <= right;
  return words(fits ? x + 10 : x - 10, y + 4, text, colors.muted, SMALL, {
    "text-anchor": fits ? "start" : "end",
  });
}

/** Stacked bars of shares. rows: [{ label, parts: [{ key, name, n }] }]. */
function barChart({ rows, title }, width, colors) {
  const left = Math.min(
    width * 0.42,
    Math.max(60, ...rows.map((row) => widthOf(row.label, LABEL) + 14)),
  );
  const right = width - 14;
  const found = new Set(rows.flatMap((row) => row.parts.map((part) => part.key)));
  const keys = Object.entries(OUTCOMES).filter(([key]) => found.has(key));
  const key = legend(keys, width, colors);
  const blocks = rows.map((row) => ({ ...row, lines: wrapped(row.label, left - 12, LABEL, 2) }));
  const height =
    key.height +
    blocks.reduce((sum, block) => sum + Math.max(24, block.lines.length * 15 + 8), 0) +
    6;
  const svg = canvas(width, height, colors, title);
  svg.append(...key.nodes);
  let y = key.height;
  for (const block of blocks) {
    const room = Math.max(24, block.lines.length * 15 + 8);
    block.lines.forEach((text, i) =>
      svg.append(
        words(
          left - 12,
          y + room / 2 + 4 + (i - (block.lines.length - 1) / 2) * 15,
          text,
          colors.ink,
          LABEL,
          { "text-anchor": "end" },
        ),
      ),
    );
    const total = block.parts.reduce((sum, part) => sum + part.n, 0) || 1;
    let x = left;
    for (const part of block.parts) {
      const wide = (part.n / total) * (right - left);
      const bar = node("rect", {
        x,
        y: y + room / 2 - 9,
        width: Math.max(0.5, wide - 1),
        height: 18,
        fill: colors.outcomes[part.key],
      });
      bar.append(
        node(
          "title",
          {},
          shown(
            `${block.label}: ${count(part.n)} ${part.name} (${((100 * part.n) / total).toFixed(1)}%)`,
          ),
        ),
      );
      svg.append(bar);
      if (wide > widthOf(count(part.n), SMALL) + 8)
        svg.append(
          words(
            x + wide / 2,
            y + room / 2 + 4,
            count(part.n),
            inkOn(colors.outcomes[part.key]),
            SMALL,
            { "text-anchor": "middle" },
          ),
        );
      x += wide;
    }
    y += room;
  }
  return svg;
}

/** Black or white, whichever is easier to read on the color. */
function inkOn(color) {
  const [r, g, b] = [1, 3, 5].map((at) => (parseInt(color.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

function legend(keys, width, colors) {
  const nodes = [];
  let [x, y] = [4, 12];
  for (const [key, name] of keys) {
    const wide = widthOf(name, SMALL) + 30;
    if (x + wide > width && x > 4) [x, y] = [4, y + 18];
    nodes.push(
      node("rect", { x, y: y - 9, width: 10, height: 10, rx: 2, fill: colors.outcomes[key] }),
      words(x + 15, y, name, colors.ink, SMALL),
    );
    x += wide;
  }
  return { nodes, height: y + 10 };
}

/** The points with intervals, as lists of neighbors. */
function bounded(points) {
  const lists = [[]];
  for (const point of points) {
    if (point.low === null) lists.push([]);
    else lists.at(-1).push(point);
  }
  return lists.filter((list) => list.length > 1);
}

/** Lines with bands. series: [{ run, name, points: [{ at, mean, low, high, n }] }]; names are at the ends of their lines. */
function lineChart({ series, title, axis }, width, colors) {
  const names =
    Math.min(width * 0.34, Math.max(...series.map((one) => widthOf(one.name, SMALL)))) + 14;
  const [left, right, top] = [46, width - names, 10];
  const bottom = Math.max(230, series.length * 14 + 20);
  const all = series.flatMap((one) => one.points);
  const [first, last] = [
    Math.min(...all.map((point) => point.at)),
    Math.max(...all.map((point) => point.at)),
  ];
  const domain = rangeOf(all.flatMap((point) => [point.low, point.mean, point.high]));
  const x = (at) => left + ((at - first) / (last - first || 1)) * (right - left);
  const y = (value) =>
    bottom - ((value - domain[0]) / (domain[1] - domain[0] || 1)) * (bottom - top);
  const svg = canvas(width, bottom + 38, colors, title);
  const upright = ticks(domain[0], domain[1], 5);
  for (const value of upright.values)
    svg.append(
      line(left, y(value), right, y(value), colors.line),
      words(left - 8, y(value) + 4, value.toFixed(upright.digits), colors.muted, SMALL, {
        "text-anchor": "end",
      }),
    );
  for (const at of ticks(first, last, Math.min(10, last - first)).values.filter(Number.isInteger))
    svg.append(
      words(x(at), bottom + 16, String(at), colors.muted, SMALL, { "text-anchor": "middle" }),
    );
  svg.append(
    words((left + right) / 2, bottom + 33, axis, colors.muted, SMALL, { "text-anchor": "middle" }),
  );
  for (const one of series) {
    const path = (points, edge) =>
      points.map((point) => `${x(point.at)},${y(point[edge])}`).join(" ");
    for (const points of series.length <= 6 ? bounded(one.points) : [])
      svg.append(
        node("polygon", {
          points: `${path(points, "low")} ${path([...points].reverse(), "high")}`,
          fill: colorOf(one.run, colors),
          "fill-opacity": 0.12,
        }),
      );
    svg.append(
      node("polyline", {
        points: path(one.points, "mean"),
        fill: "none",
        stroke: colorOf(one.run, colors),
        "stroke-width": 2,
      }),
    );
    for (const point of one.points) {
      const hollow =
        point.low === null
          ? { fill: colors.ground, stroke: colorOf(one.run, colors), "stroke-width": 0.36 }
          : {};
      const mark = marker(one.run, x(point.at), y(point.mean), 3.6, colors, hollow);
      mark.append(
        node(
          "title",
          {},
          shown(`${one.name}, ${axis} = ${point.at}: ${range3(point)}, n = ${count(point.n)}`),
        ),
      );
      svg.append(mark);
    }
  }
  const ends = spread(
    series.map((one) => y(one.points.at(-1).mean)),
    14,
    top,
    bottom,
  );
  series.forEach((one, i) => {
    const [text] = wrapped(one.name, names - 12, SMALL, 1);
    svg.append(
      words(
        right + 10,
        ends[i] + 4,
        text === shown(one.name) ? text : `${text.slice(0, -1)}…`,
        colorOf(one.run, colors),
        SMALL,
      ),
    );
  });
  return svg;
}

/** Positions at least ``gap`` apart, in the order of the given ones and close to them. */
function spread(positions, gap, top, bottom) {
  const order = positions.map((_, i) => i).sort((a, b) => positions[a] - positions[b]);
  const placed = [...positions];
  order.forEach(
    (i, place) =>
      (placed[i] = Math.max(positions[i], place ? placed[order[place - 1]] + gap : top)),
  );
  const over = Math.max(0, placed[order.at(-1)] - bottom);
  for (let place = order.length - 1, limit = bottom; over && place >= 0; place--, limit -= gap)
    placed[order[place]] = Math.min(placed[order[place]], limit);
  return placed;
}

const DRAWN = new Set(); // functions that redraw the charts with the current colors and width

/** A figure with a chart and buttons to save it. draw: (width, colors) => SVG; rows: () => the data for CSV. */
function figure(heading, name, draw, rows) {
  const plot = el("div", { class: "plot" });
  const button = (kind) =>
    el(
      "button",
      {
        type: "button",
        "aria-label": `Save the chart "${heading}" as ${kind.toUpperCase()}`,
        click: () => saveChart(kind, name, heading, draw, rows),
      },
      kind.toUpperCase(),
    );
  const made = el(
    "figure",
    { class: "chart" },
    el(
      "figcaption",
      {},
      el("h4", {}, heading),
      el("span", { class: "tools" }, ["svg", "png", "csv"].map(button)),
    ),
    plot,
  );
  const show = () => {
    if (!made.isConnected) return void DRAWN.delete(show);
    if (plot.clientWidth) plot.replaceChildren(draw(plot.clientWidth, palette()));
  };
  DRAWN.add(show);
  requestAnimationFrame(show);
  return made;
}

function redraw() {
  for (const show of [...DRAWN]) show();
}

addEventListener("resize", later(150, redraw));

/** A chart as a file, 720 pixels wide, in light colors and with its title. */
async function saveChart(kind, name, heading, draw, rows) {
  if (kind === "csv") {
    save(`${name}.csv`, "text/csv", csv(rows()));
    return;
  }
  const colors = PALETTES.light;
  const chart = draw(696, colors);
  const height = Number(chart.getAttribute("height"));
  const titles = wrapped(heading, 690, 15, 3);
  const top = 14 + titles.length * 20;
  const svg = canvas(720, height + top + 10, colors, heading);
  titles.forEach((text, i) =>
    svg.append(words(12, 24 + i * 20, text, colors.ink, 15, { "font-weight": 600 })),
  );
  chart.setAttribute("x", 12);
  chart.setAttribute("y", top);
  svg.append(chart);
  const text = new XMLSerializer().serializeToString(svg);
  if (kind === "svg") save(`${name}.svg`, "image/svg+xml", text);
  else save(`${name}.png`, "image/png", await picture(text, 720, height + top + 10));
}

async function picture(text, width, height) {
  const image = new Image(width, height);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const surface = el("canvas", { width: width * 3, height: height * 3 });
  const context = surface.getContext("2d");
  context.scale(3, 3);
  context.drawImage(image, 0, 0, width, height);
  return new Promise((done) => surface.toBlob(done));
}
