// Downloads and copies: tables as CSV, Markdown and LaTeX, all numbers as CSV or JSON, questions as JSON Lines.

function save(name, type, content) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
  say(`${name} saved`);
}

/** One cell of CSV. A string that a spreadsheet would run as a formula gets an apostrophe in front. */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = String(value);
  // Spreadsheets skip spaces and invisible characters, and read full-width signs as the ASCII ones.
  const formula = /^[\s\p{C}]*[=+\-@]|^[\t\r]/u.test(text.normalize("NFKC"));
  const safe = formula && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csv(rows) {
  const columns = [...new Set(rows.flatMap(Object.keys))];
  return [columns, ...rows.map((row) => columns.map((column) => row[column]))].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** A file name that is valid on every system. */
const fileName = (...parts) => parts.join("-").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");

/** A cell as plain text: what ``data-copy`` says, or the text that is seen. */
function cellText(cell) {
  const said = cell.dataset.copy ?? $("[data-copy]", cell)?.dataset.copy;
  if (said !== undefined) return said;
  const copy = cell.cloneNode(true);
  for (const hidden of $$(".sub, svg, .unseen", copy)) hidden.remove();
  return copy.textContent.replace(/\s+/g, " ").trim();
}

/** The visible rows of a table as lists of texts; columns that only hold a chart are left out. */
function rowsOfTable(table) {
  return $$("tr", table)
    .filter((row) => !row.hidden)
    .map((row) => [...row.cells].filter((one) => !one.classList.contains("plot-cell")).map(cellText));
}

const FORMATS = {
  CSV: (rows) => rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n",
  Markdown([heads, ...rows]) {
    const line = (row) => `| ${row.map((text) => text.replaceAll("\\", "\\\\").replaceAll("|", "\\|")).join(" | ")} |\n`;
    return line(heads) + line(heads.map((_, i) => (i ? "---:" : "---"))) + rows.map(line).join("");
  },
  LaTeX([heads, ...rows]) {
    const escaped = (text) => text.replace(/[\\&%$#_{}~^−]/g, (found) => ({ "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "−": "$-$" })[found] || `\\${found}`);
    const line = (row) => `${row.map(escaped).join(" & ")} \\\\\n`;
    return `\\begin{tabular}{l${"r".repeat(heads.length - 1)}}\n\\toprule\n${line(heads)}\\midrule\n${rows.map(line).join("")}\\bottomrule\n\\end{tabular}\n`;
  },
};

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Some browsers allow no clipboard on pages from files, but the older command.
    const area = el("textarea", { class: "unseen" });
    area.value = text;
    (dialog.open ? dialog : document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(`${what} copied`);
}

/** Buttons that copy a table. */
function copyButtons(table, what) {
  return Object.entries(FORMATS).map(([name, format]) => el("button", { type: "button", "aria-label": `Copy ${name}: the table "${what}"`, click: () => copy(format(rowsOfTable(table)), `Table as ${name}`) }, `Copy ${name}`));
}

/** A table with a heading, in a box that scrolls, with buttons to copy it. heads: texts or nodes; rows: lists of cells. */
function dataTable(kind, title, heads, rows) {
  const head = el("tr", {}, heads.map((one, i) => el("th", { scope: "col", class: i ? "number" : null }, one)));
  const made = el("table", { class: kind }, el("thead", {}, head), el("tbody", {}, rows.map((cells) => el("tr", {}, cells))));
  return el("div", { class: "table" }, el("div", { class: "table-head" }, el("h4", {}, title), el("span", { class: "tools table-tools" }, copyButtons(made, title))), el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": title }, made));
}

/** All numbers of the report as rows: scores, groups, and the benchmarks' own sections. */
function numberRows() {
  const rows = [];
  for (const section of NUMBERS.sections) {
    const about = { benchmark: section.benchmark, config: section.config };
    const add = (grouping, group, metric, row) => rows.push({ ...about, run: row.run, grouping, group, metric, mean: row.mean, low: row.low, high: row.high, n: row.n });
    for (const row of section.scores) add("", "", row.metric, row);
    for (const row of section.groups) add(row.grouping, row.group, row.metric, row);
    for (const extra of section.sections) for (const row of extra.rows) add(extra.title, row.at, row.score, row);
  }
  return rows;
}

function saveNumbers(kind) {
  const name = fileName(DATA.title);
  if (kind === "csv") save(`${name}.csv`, "text/csv", csv(numberRows()));
  else save(`${name}.json`, "application/json", `${JSON.stringify(NUMBERS, null, 1)}\n`);
}

/** The questions with the answers and scores of all runs: complete as JSON Lines, or as CSV with one row per answer. */
async function saveQuestions(section, questions, kind) {
  const runs = await recordsOf(section);
  const objects = questions.flatMap((question) =>
    runs.flatMap((records, run) =>
      (records[question.id] || []).map((record) => ({
        id: question.id,
        question: question.question,
        reference: question.reference,
        run: section.runs[run].label,
        epoch: record.epoch,
        status: record.status,
        answer: record.answer,
        groups: question.groups,
        scores: record.scores,
        detail: record.detail,
      })),
    ),
  );
  const name = fileName(section.key, "questions");
  if (kind === "jsonl") {
    save(`${name}.jsonl`, "application/jsonl", objects.map((object) => `${JSON.stringify(object)}\n`).join(""));
    return;
  }
  const rows = objects.map(({ groups, scores, detail, ...row }) => ({
    ...row,
    ...Object.fromEntries(Object.entries(groups).map(([key, of]) => [key, of.join("; ")])),
    ...scores,
  }));
  save(`${name}.csv`, "text/csv", csv(rows));
}
