// Files to take away: tables as CSV, objects as JSON or JSON lines, charts as SVG or PNG.

function save(name, type, content) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
  say(`${name} saved`);
}

/** One cell of CSV. A text that a spreadsheet would run as a formula gets an apostrophe in front. */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = String(value);
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csv(rows) {
  const columns = [...new Set(rows.flatMap(Object.keys))];
  return [columns, ...rows.map((row) => columns.map((column) => row[column]))].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** A name for a file that every system takes. */
const fileName = (...parts) => parts.join("-").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");

/** All figures of the report as rows: overall, by group, by cutoff. */
function figureRows() {
  const rows = [];
  for (const section of JSON.parse($("#numbers").textContent).sections) {
    const about = { benchmark: section.benchmark, config: section.config };
    const add = (grouping, group, row) =>
      rows.push({ ...about, run: row.run, grouping, group, figure: row.figure, mean: row.mean, low: row.low, high: row.high, n: row.n });
    for (const row of section.scores) add("", "", row);
    for (const breakdown of section.breakdowns) for (const row of breakdown.rows) add(breakdown.name, row.group, row);
    for (const row of section.curves) add("k", row.k, row);
  }
  return rows;
}

function saveFigures(kind) {
  const name = fileName(DATA.title);
  if (kind === "csv") save(`${name}.csv`, "text/csv", csv(figureRows()));
  else save(`${name}.json`, "application/json", `${JSON.stringify(JSON.parse($("#numbers").textContent), null, 1)}\n`);
}

/** The questions, and of each run its answer and scores, as they are (JSON lines) or a row an answer (CSV). */
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
