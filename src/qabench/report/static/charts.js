// The charts: Vega-Lite specifications drawn in the page's colours; exports in light ones.

const CHARTS = new Map(); // element -> { chart, section, view }

// ast: expressions are interpreted, because the page's policy lets no text become a script.
const OPTIONS = { actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: { theme: "custom", disableDefaultStyle: true } };

const PALETTES = {
  light: { ink: "#1c1e21", muted: "#5b6068", line: "#e4e4e0", ground: "#ffffff", runs: ["#0b62b8", "#c8500a", "#0a8060", "#a8387e", "#8a6a00", "#2b8cb8", "#6a4bb5", "#4d4d4d"], outcomes: ["#1a8a5a", "#e0a526", "#cf4a3a", "#b3b6bb"] },
  dark: { ink: "#eceded", muted: "#a5a9b1", line: "#2e3238", ground: "#141619", runs: ["#6cb2ff", "#ff9a5c", "#4fd1a5", "#f08cc8", "#e3c04b", "#7fd3f2", "#b9a2ff", "#c9c9c9"], outcomes: ["#35b27c", "#e3b341", "#f0705f", "#5d626b"] },
};

function themeConfig(name) {
  const { ink, muted, line, ground, runs, outcomes } = PALETTES[name];
  const font = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  return {
    background: ground,
    font,
    view: { stroke: null },
    axis: { labelColor: muted, titleColor: muted, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelPadding: 6 },
    axisY: { labelColor: ink, labelFontSize: 12.5 },
    legend: { labelColor: ink, labelFontSize: 12.5, symbolSize: 80, symbolStrokeWidth: 2, symbolOpacity: 1, labelLimit: 320, offset: 8 },
    title: { color: ink, fontSize: 15, fontWeight: 600, anchor: "start", offset: 12 },
    rule: { color: muted },
    point: { color: runs[0] },
    line: { color: runs[0] },
    area: { color: runs[0] },
    range: { category: runs, symbol: DATA.shapes, ordinal: outcomes },
  };
}

const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

/** The specification with its rows (of the chosen figure, where there is a choice), for so much width. */
function specOf(state, width, theme) {
  const { chart } = state;
  const spec = structuredClone(chart.spec);
  const rows = rowsOf(state);
  spec.datasets = { rows };
  const scale = spec.layer?.[0].encoding?.x?.scale;
  if (scale?.domain && rows.some((row) => row.low < 0 || row.high > 1)) spec.layer[0].encoding.x.scale = { zero: false, nice: true };
  spec.config = themeConfig(theme);
  spec.config.axisY.labelLimit = Math.max(110, width * 0.34);
  spec.config.axisX = { tickCount: Math.min(10, Math.round(width / 90)) };
  spec.config.legend.columns = columnsOf(rows, width);
  return { spec, rows };
}

/** The select by which a chart's figure is chosen; null where it shows all of its rows. */
function selectOf({ chart, section, id }) {
  return chart.byFigure ? $(`select[data-section="${section.key}"][data-choice="${id === "pairs" ? id : "groups"}"]`) : null;
}

/** The rows that a chart shows now. */
function rowsOf(state) {
  const select = selectOf(state);
  return select ? state.chart.rows.filter((row) => row.figure === select.value) : state.chart.rows;
}

/** In how many columns the names of a legend fit side by side. */
function columnsOf(rows, width) {
  const longest = Math.max(...rows.map((row) => String(row.order === undefined ? row.run : row.name).length));
  return Math.max(1, Math.floor(width / (longest * 7.5 + 45)));
}

/** How high a chart will be, within some pixels: so much room is kept, or a link into the page would miss its place. */
function roomOf(state, width) {
  const { chart, section, id } = state;
  const { height, layer, encoding } = chart.spec;
  const names = id === "outcomes" ? 4 : id === "pairs" || section.runs.length === 1 ? 0 : section.runs.length;
  const legend = names && 12 + 15 * Math.ceil(names / columnsOf(chart.rows, width));
  if (typeof height === "number") return height + 41 + legend;
  const { y, yOffset } = encoding || layer.at(-1).encoding;
  const lines = new Set(rowsOf(state).map((row) => row[y.field])).size;
  return lines * height.step * (yOffset ? section.runs.length / 0.75 : 1) + 35 + legend;
}

async function draw(element) {
  const state = CHARTS.get(element);
  const plot = $(".plot", element);
  const { spec, rows } = specOf(state, plot.clientWidth, dark() ? "dark" : "light");
  state.view?.finalize();
  state.view = null;
  if (!rows.length) {
    plot.replaceChildren(el("p", { class: "sub" }, "This figure has no values here."));
    return;
  }
  plot.replaceChildren();
  state.view = (await vegaEmbed(plot, spec, OPTIONS)).view;
  plot.style.minHeight = "";
}

/** A moment in which the browser has nothing else to do. */
const idle = () => new Promise((done) => (window.requestIdleCallback || setTimeout)(done));

/** Draws the charts one after the other, in the order of the page, each when nothing else waits. */
async function startCharts() {
  for (const element of $$("figure.chart")) {
    const section = SECTIONS.get(element.dataset.section);
    const id = element.dataset.chart;
    CHARTS.set(element, { section, id, chart: section.charts[id] });
    for (const button of $$("[data-save]", element)) button.addEventListener("click", () => saveChart(element, button.dataset.save));
    const plot = $(".plot", element);
    plot.style.minHeight = `${roomOf(CHARTS.get(element), plot.clientWidth)}px`;
  }
  for (const element of CHARTS.keys()) {
    await idle();
    await draw(element);
  }
  performance.mark("qabench-charts");
}

function redraw(wanted = () => true) {
  for (const [element, state] of CHARTS) if (state.view && wanted(state)) draw(element);
}

/** Shows the figure that a select names, in the charts and the table that it is for. */
function chooseFigure(select) {
  if (select.dataset.choice === "pairs") {
    for (const row of $$("table.pairs tbody tr", select.closest(".benchmark"))) row.hidden = row.dataset.figure !== select.value;
  }
  redraw((state) => selectOf(state) === select);
}

/** A chart as a file, always in light colours, 720 pixels wide and with its title. */
async function saveChart(element, kind) {
  const state = CHARTS.get(element);
  const { spec, rows } = specOf(state, 720, "light");
  const select = selectOf(state);
  const name = fileName(state.section.key, state.id, select?.value || "");
  if (kind === "csv") {
    save(`${name}.csv`, "text/csv", csv(rows));
    return;
  }
  const title = `${select ? `${select.selectedOptions[0].text} ` : ""}${state.chart.title}`;
  spec.title = title[0].toUpperCase() + title.slice(1);
  spec.width = 560;
  spec.padding = 12;
  const { view } = await vegaEmbed(el("div"), spec, { ...OPTIONS, renderer: "none" });
  if (kind === "svg") save(`${name}.svg`, "image/svg+xml", await view.toSVG());
  else {
    const canvas = await view.toCanvas(3);
    save(`${name}.png`, "image/png", await new Promise((done) => canvas.toBlob(done)));
  }
  view.finalize();
}
