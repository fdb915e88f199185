// The reader's choice of a metric and runs for each section. It is kept in the address, so that links restore it.

/** The address after "#": a place ("/section/question" or an element's id) and parameters. */
function address() {
  const [place, query = ""] = location.hash.slice(1).split("?");
  return { place, parameters: new URLSearchParams(query) };
}

/** The address of a place with the parameters as they are. */
function linkTo(place) {
  const query = address().parameters.toString();
  return `#${place}${query ? `?${query}` : ""}`;
}

function goTo(place) {
  history.replaceState(null, "", linkTo(place));
}

const CHANGED = new Map(); // section key -> functions that show the section's state

/** The state of a section: the chosen metric, and the positions of the runs that are shown. */
function stateOf(section) {
  const { parameters } = address();
  const metric = parameters.get(`${section.key}.metric`);
  const runs = (parameters.get(`${section.key}.runs`) || "")
    .split(".")
    .filter(Boolean)
    .map((text) => Number(text) - 1);
  const known = runs.filter((run) => section.runs[run]);
  return {
    metric: section.metrics.some(({ key }) => key === metric)
      ? metric
      : (section.metrics[0]?.key ?? null),
    runs: known.length ? known : section.runs.map((_, run) => run),
  };
}

function setState(section, { metric, runs }) {
  const { place, parameters } = address();
  const put = (name, value) =>
    value === null
      ? parameters.delete(`${section.key}.${name}`)
      : parameters.set(`${section.key}.${name}`, value);
  if (metric !== undefined) put("metric", metric === section.metrics[0]?.key ? null : metric);
  if (runs !== undefined)
    put(
      "runs",
      runs.length && runs.length < section.runs.length
        ? runs.map((run) => run + 1).join(".")
        : null,
    );
  const query = parameters.toString();
  history.replaceState(null, "", `#${place}${query ? `?${query}` : ""}`);
  showState(section);
}

function showState(section) {
  for (const show of CHANGED.get(section.key) || []) show(stateOf(section));
}

/** Calls ``show`` with the section's state now and after each change. */
function onState(section, show) {
  CHANGED.set(section.key, [...(CHANGED.get(section.key) || []), show]);
  show(stateOf(section));
}

const metricOf = (section, key) => section.metrics.find((metric) => metric.key === key);

/** The runs that are shown, the best by the chosen metric first; runs without a score last. */
function ranked(section, { metric, runs }) {
  const sign = metricOf(section, metric)?.higher === false ? -1 : 1;
  const value = (run) =>
    section.scores[metric]?.[run] ? sign * section.scores[metric][run][0] : -Infinity;
  return [...runs].sort((a, b) => value(b) - value(a) || a - b);
}
