// A question in full: its reference, and each run's answer with what scoring found in it.

const dialog = $("#question");
let opened = null; // { list, question, run, shown }; run is null for all runs side by side

const MARKING =
  "Scoring compares normal forms: lowercase, lemmas, no thousands separators. " +
  "Strings found are marked in an answer if they are written as in the reference.";

async function openQuestion(
  list,
  question,
  run = list.section.runs.length > 1 ? (opened?.run ?? null) : 0,
) {
  const { section } = list;
  opened = { list, question, run, shown: false };
  const records = await recordsOf(section);
  if (!opened || opened.question !== question) return;
  const of = records.map((by) => by[question.id] || []);
  const runs = list.runs;
  dialog.replaceChildren(
    head(list, question),
    body(section, question, of, runs.includes(run) ? run : runs.length > 1 ? null : runs[0], runs),
  );
  if (!dialog.open) dialog.showModal();
  opened.shown = true;
  dialog.scrollTop = 0;
  dialog.focus();
}

function head(list, question) {
  const place = list.chosen.indexOf(question);
  const step = (by, sign, name) =>
    el(
      "button",
      {
        type: "button",
        disabled: !list.chosen[place + by] || place < 0,
        "aria-label": `${name} question`,
        title: name,
        click: () => stepTo(by),
      },
      sign,
    );
  return el(
    "header",
    { class: "question-head" },
    el("code", {}, shown(question.id)),
    el(
      "span",
      { class: "sub" },
      place < 0 ? "" : `${count(place + 1)} of ${count(list.chosen.length)}`,
    ),
    el(
      "span",
      { class: "tools" },
      el("button", { type: "button", click: copyLink }, "Copy link"),
      step(-1, "↑", "Previous"),
      step(1, "↓", "Next"),
      el(
        "button",
        { type: "button", "aria-label": "Close", title: "Close (Esc)", click: closeQuestion },
        "✕",
      ),
    ),
  );
}

function body(section, question, of, run, runs) {
  const several = runs.length > 1;
  const groups = section.groupings.flatMap(({ key, name }) =>
    (question.groups[key] || []).map((group) =>
      el("li", { class: "chip", title: name }, el("bdi", {}, shown(group))),
    ),
  );
  const strings = of.flat().some((record) => stringsIn(section, record));
  const shownRuns = run === null ? runs : [run];
  const othersOf = (i) => (runs.length === 2 ? of[runs.find((one) => one !== i)] : []);
  return el(
    "div",
    { class: "question-body" },
    el("h3", { id: "question-title", class: "text", dir: "auto" }, shown(question.question)),
    groups.length ? el("ul", { class: "chips", role: "list" }, groups) : null,
    question.reference
      ? part(
          "Reference",
          el("div", { class: "text reference", dir: "auto" }, shown(question.reference)),
          strings ? el("p", { class: "sub" }, MARKING) : null,
        )
      : null,
    several ? tabs(section, question, run, runs) : null,
    el(
      "div",
      { class: run === null ? "side-by-side" : "" },
      shownRuns.map((i) => runPart(section, question, of[i], i, several, othersOf(i))),
    ),
  );
}

function tabs(section, question, run, runs) {
  const tab = (to, ...children) =>
    el(
      "button",
      {
        type: "button",
        "aria-pressed": String(run === to),
        click: () => openQuestion(opened.list, question, to),
      },
      ...children,
    );
  const each = runs.map((i) =>
    tab(
      i,
      swatch(i),
      el("bdi", {}, shown(section.runs[i].label)),
      " ",
      badge(section, question, i),
    ),
  );
  return el("div", { class: "tabs", role: "group", "aria-label": "Runs" }, tab(null, "All"), each);
}

function runPart(section, question, records, run, several, others) {
  const title = several
    ? el("h4", { class: "run-title" }, swatch(run), el("bdi", {}, shown(section.runs[run].label)))
    : null;
  if (!records.length)
    return el(
      "article",
      { class: "run-part" },
      title,
      el("p", { class: "note" }, "This run has no record of the question."),
    );
  return el(
    "article",
    { class: "run-part" },
    title,
    records.map((record) => recordPart(section, question, record, records.length > 1, others)),
  );
}

function recordPart(section, question, record, epochs, others) {
  const scores = Object.entries(record.scores).map(([name, value]) =>
    el(
      "li",
      {},
      `${section.columns[name] || columnName(name)} `,
      el("strong", {}, Number.isInteger(value) ? count(value) : number(value)),
    ),
  );
  const cost = [
    record.input_tokens !== null && `${count(record.input_tokens)} tokens in`,
    record.output_tokens !== null && `${count(record.output_tokens)} out`,
    record.seconds !== null && `${record.seconds.toFixed(1)} s`,
    record.cost !== null && `$${record.cost.toFixed(4)}`,
  ].filter(Boolean);
  const findings = findingsOf(section, record, question, others);
  return el(
    "div",
    { class: "record" },
    epochs ? el("h5", {}, `Epoch ${record.epoch}`) : null,
    record.status === "answered" && !record.problem
      ? null
      : el(
          "p",
          { class: "note warning" },
          el("strong", {}, record.status),
          record.problem ? ` ${shown(record.problem)}` : "",
        ),
    record.answer === null ? null : part("Answer", answerOf(section, question, record)),
    findings,
    scores.length ? part("Scores", el("ul", { class: "values", role: "list" }, scores)) : null,
    folded(
      `Conversation (${plural(record.messages.length, "message")}${cost.length ? `; ${cost.join(", ")}` : ""})`,
      record.messages.map(([role, text]) =>
        el(
          "div",
          { class: `message ${role === "assistant" ? "assistant" : ""}` },
          el("div", { class: "role" }, shown(role)),
          block(text),
        ),
      ),
    ),
  );
}

const columnName = (name) => name.replace(/[._]+/g, " ");

function answerOf(section, question, record) {
  if (!record.answer.trim()) return el("p", { class: "sub" }, "The answer is empty.");
  const found = stringsIn(section, record)?.found;
  const pattern = found ? matcher([...found, ...found.map(originals(question.reference))]) : null;
  return el(
    "div",
    { class: "text answer", dir: "auto" },
    marked(record.answer, pattern, { title: "a string of the reference" }),
  );
}

/** The strings of the reference that were found and missed, or null where none were compared. */
function stringsIn(section, { detail }) {
  const form = stringsForm(section);
  if (!form || !(detail[form.found] || detail[form.missing])) return null;
  return { found: detail[form.found] || [], missing: detail[form.missing] || [] };
}

function stepTo(by) {
  if (!opened) return;
  const { list } = opened;
  const next = list.next(opened.question, by);
  if (!next) return;
  goTo(questionPlace(list.section, next));
  openQuestion(list, next);
}

const copyLink = () => copy(location.href, "Link");

/** Opens the question that the address names, or closes what is open. */
function follow(lists) {
  const { place } = address();
  const found = /^\/([^/]+)\/(.*)$/.exec(place);
  if (!found) {
    closeQuestion();
    document.getElementById(place)?.scrollIntoView();
    return;
  }
  const list = lists.find((one) => one.section.key === found[1]);
  let id = found[2];
  try {
    id = decodeURIComponent(found[2]);
  } catch {
    // An address typed by hand is used unchanged.
  }
  const question = list?.section.questions.find((one) => fit(one.id) === id);
  if (question) openQuestion(list, question);
  else toast(`The question ${id} does not exist`);
}

/** Closes the open question at once: the next key may come before the browser's own event. */
function closeQuestion() {
  if (dialog.open) dialog.close();
  if (!opened) return;
  const { list, question } = opened;
  opened = null;
  if (location.hash.startsWith("#/")) goTo(`${list.section.key}-questions`);
  list.focusOn(question);
}

// Closed in another way, such as a phone's back gesture; by the time of the event another question may be opening.
dialog.addEventListener("close", () => {
  if (!dialog.open && opened?.shown) closeQuestion();
});
dialog.addEventListener("click", (event) => event.target === dialog && closeQuestion());
