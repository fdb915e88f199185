// Downloads and copies: tables as CSV, Markdown and LaTeX, all numbers as CSV or JSON, questions as JSON Lines.

function save(name, type, content) {
  const url = URL.createObjectURL(
    content instanceof Blob ? content : new Blob([content], { type }),
  );
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
  return (
    [columns, ...rows.map((row) => columns.map((column) => row[column]))]
      .map((row) => row.map(cell).join(","))
      .join("\r\n") + "\r\n"
  );
}

/** A file name that is valid on every system. */
const fileName = (...parts) =>
  parts
    .join("-")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");

/** A cell as text: what ``data-copy`` says, or the text that is seen, with its lines separated by semicolons. */
function cellText(cell) {
  const said = cell.dataset.copy ?? $("[data-copy]", cell)?.dataset.copy;
  if (said !== undefined) return said;
  const copy = cell.cloneNode(true);
  for (const hidden of $$(".sub, svg, .unseen", copy)) hidden.remove();
  for (const line of $$("div, .interval", copy)) line.prepend("; ");
  return copy.textContent
    .replace(/\s+/g, " ")
    .replace(/^[; ]+|[; ]+$/g, "")
    .replace(/ ;/g, ";");
}

/** The cells of the visible rows; columns that only hold a chart are left out. */
function cellsOfTable(table) {
  return $$("tr", table)
    .filter((row) => !row.hidden)
    .map((row) => [...row.cells].filter((one) => !one.classList.contains("plot-cell")));
}

/** A sign that programs read; a typographic minus is text to them. */
const plainSigns = (text) => text.replaceAll("−", "-");

/** The numbers of a cell: value, low, high and n of a score, with all digits. */
function numbersOf(cell) {
  const numbers = cell?.dataset.numbers ?? (cell && $("[data-numbers]", cell)?.dataset.numbers);
  return numbers && JSON.parse(numbers);
}

/** A cell for a program: its number with all digits, or its text. Names such as "007" stay text. */
function cellValue(cell, isNumber) {
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  const text = plainSigns(cellText(cell));
  if (text === "–") return null;
  const isCount = isNumber && /^\d{1,3}(,\d{3})*$/.test(text);
  return isCount ? Number(text.replaceAll(",", "")) : text;
}

const NUMBER_PARTS = ["", " low", " high", " n"];

/** The name of a column for programs: ``data-name``, or its text. */
const nameOfColumn = (head) =>
  $("[data-name]", head)?.dataset.name ?? plainSigns(cellText(head));

/** The rows of a table for programs: a score is four columns, its value, the bounds of its interval, and its n. */
function rowsOfNumbers(table) {
  const [heads, ...body] = cellsOfTable(table);
  const isNumber = numeric(table);
  const isScore = heads.map((_, i) => body.some((cells) => numbersOf(cells[i])));
  // Columns that only repeat numbers of the scores, which have their own n, are left out.
  const kept = heads.map((head) => !("repeats" in head.dataset && isScore.includes(true)));
  const row = (cells, scored, other) =>
    cells.flatMap((cell, i) => {
      if (!kept[i]) return [];
      return isScore[i] ? scored(cell) : [other(cell, isNumber[i])];
    });
  const names = row(
    heads,
    (head) => NUMBER_PARTS.map((part) => nameOfColumn(head) + part),
    nameOfColumn,
  );
  return [
    names,
    ...body.map((cells) =>
      row(cells, (cell) => numbersOf(cell) ?? NUMBER_PARTS.map(() => null), cellValue),
    ),
  ];
}

const rowsOfTexts = (table) => cellsOfTable(table).map((cells) => cells.map(cellText));

/** Which columns have numbers, by position. */
const numeric = (table) => cellsOfTable(table)[0].map((head) => head.classList.contains("number"));

// As qabench.io.escaping: in the default fonts, "<", ">", "|" and double quotes print as other characters.
const LATEX = {
  "\\": "\\textbackslash{}",
  "~": "\\textasciitilde{}",
  "^": "\\textasciicircum{}",
  "<": "\\textless{}",
  ">": "\\textgreater{}",
  "|": "\\textbar{}",
  '"': "{\\ttfamily\\char34}",
  "`": "\\textasciigrave{}",
  "[": "{[}",
  "]": "{]}",
  "*": "{*}",
  "−": "$-$",
  "–": "--",
};

const FORMATS = {
  CSV: (table) => rowsOfNumbers(table).map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n",
  Markdown(table) {
    const [heads, ...rows] = rowsOfTexts(table);
    const escaped = (text) => plainSigns(text).replace(/[\\`*_|~<]|\](?=\()/g, "\\$&");
    const line = (row) => `| ${row.map(escaped).join(" | ")} |\n`;
    const sides = numeric(table).map((is) => (is ? "---:" : "---"));
    return `${line(heads)}| ${sides.join(" | ")} |\n${rows.map(line).join("")}`;
  },
  LaTeX(table) {
    const [heads, ...rows] = rowsOfTexts(table);
    const escaped = (text) =>
      text
        .replace(/([-',])(?=\1)/g, "$1\0") // two of these become one character, such as a dash
        .replace(/[\\&%$#_{}~^<>|"`[\]*−–]/g, (found) => LATEX[found] ?? `\\${found}`)
        .replaceAll("\0", "{}");
    const line = (row) => `${row.map(escaped).join(" & ")} \\\\\n`;
    const sides = numeric(table)
      .map((is) => (is ? "r" : "l"))
      .join("");
    const body = `${line(heads)}\\midrule\n${rows.map(line).join("")}`;
    return `\\begin{tabular}{${sides}}\n\\toprule\n${body}\\bottomrule\n\\end{tabular}\n`;
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

/** The table of a section's scores for a paper, as ``qabench score`` prints it; undefined for other tables and formats. */
function paperTable(table, format) {
  const section = DATA.sections.find(({ key }) => table.id === `${key}-score-table`);
  const isWhole = $$("tbody tr", table).every((row) => !row.hidden);
  return isWhole ? section?.paper[format] : undefined;
}

/** Buttons that copy a table. */
function copyButtons(table, what) {
  return Object.entries(FORMATS).map(([name, format]) =>
    el(
      "button",
      {
        type: "button",
        "aria-label": `Copy ${name}: the table "${what}"`,
        click: () => copy(paperTable(table, name) ?? format(table), `Table as ${name}`),
      },
      `Copy ${name}`,
    ),
  );
}

// Heads of columns that repeat numbers of a score for readers.
const REPEATS = ["n", "95% interval"];
const VERDICT = "At 5%"; // a column of text

/** A table with a heading, in a box that scrolls, with buttons to copy it. heads: texts or nodes; rows: lists of cells. */
function dataTable(kind, title, heads, rows) {
  const head = el(
    "tr",
    {},
    heads.map((one, i) =>
      el(
        "th",
        {
          scope: "col",
          class: i && one !== VERDICT ? "number" : null,
          "data-repeats": REPEATS.includes(one),
        },
        one,
      ),
    ),
  );
  const made = el(
    "table",
    { class: kind },
    el("thead", {}, head),
    el(
      "tbody",
      {},
      rows.map((cells) => el("tr", {}, cells)),
    ),
  );
  return el(
    "div",
    { class: "table" },
    el(
      "div",
      { class: "table-head" },
      el("h4", {}, title),
      el("span", { class: "tools table-tools" }, copyButtons(made, title)),
    ),
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": title }, made),
  );
}

/** All numbers of the report as rows: scores, groups, the benchmarks' own sections, and differences. */
function numberRows() {
  const rows = [];
  for (const section of NUMBERS.sections) {
    const about = { benchmark: section.benchmark, config: section.config };
    const add = (grouping, group, metric, row) =>
      rows.push({
        ...about,
        run: row.run,
        versus: row.versus ?? "",
        grouping,
        group,
        metric,
        mean: row.mean,
        low: row.low,
        high: row.high,
        n: row.n,
        p: row.p ?? "",
        corrected_p: row.corrected_p ?? "",
        wins: row.wins ?? "",
        ties: row.ties ?? "",
        losses: row.losses ?? "",
      });
    for (const row of section.scores) add("", "", row.metric, row);
    for (const row of section.groups) add(row.grouping, row.group, row.metric, row);
    for (const extra of section.sections)
      for (const row of extra.rows) add(extra.title, row.at, row.score, row);
    for (const { metric, pairs } of section.comparisons)
      for (const { first, second, difference, ...pair } of pairs)
        add("", "", metric, { ...pair, run: first, versus: second, mean: difference });
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
    save(
      `${name}.jsonl`,
      "application/jsonl",
      objects.map((object) => `${JSON.stringify(object)}\n`).join(""),
    );
    return;
  }
  const rows = objects.map(({ groups, scores, detail, ...row }) => ({
    ...row,
    ...Object.fromEntries(Object.entries(groups).map(([key, of]) => [key, of.join("; ")])),
    ...scores,
  }));
  save(`${name}.csv`, "text/csv", csv(rows));
}
