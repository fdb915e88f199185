// A question in full: its reference, and what each run was told, said and was found to have said.

const dialog = $("#question");
let opened = null; // { list, question, run, shown }; run is null for all of them side by side

const COUNTED = /(^|_)(tp|tn|fp|fn)$|^claims/; // scores that are counts
const MARKING =
  "The scorer compares normal forms: small letters, lemmas, no thousands commas. Marked in an answer are the strings found, where they stand as they are in the reference.";

async function openQuestion(list, question, run = list.section.runs.length > 1 ? (opened?.run ?? null) : 0) {
  const { section } = list;
  opened = { list, question, run, shown: false };
  const records = await recordsOf(section);
  if (!opened || opened.question !== question) return;
  const of = records.map((by) => by[question.id] || []);
  dialog.replaceChildren(head(list, question), body(section, question, of, run));
  if (!dialog.open) dialog.showModal();
  opened.shown = true;
  dialog.scrollTop = 0;
  dialog.focus();
}

function head(list, question) {
  const place = list.chosen.indexOf(question);
  const step = (by, sign, name) => el("button", { type: "button", disabled: !list.chosen[place + by] || place < 0, "aria-label": `${name} question`, title: name, click: () => stepTo(by) }, sign);
  return el(
    "header",
    { class: "question-head" },
    el("code", {}, shown(question.id)),
    el("span", { class: "sub" }, place < 0 ? "" : `${count(place + 1)} of ${count(list.chosen.length)}`),
    el(
      "span",
      { class: "tools" },
      el("button", { type: "button", click: copyLink }, "Copy link"),
      step(-1, "↑", "Previous"),
      step(1, "↓", "Next"),
      el("button", { type: "button", "aria-label": "Close", title: "Close (Esc)", click: closeQuestion }, "✕"),
    ),
  );
}

function body(section, question, of, run) {
  const several = section.runs.length > 1;
  const groups = section.groupings.flatMap(({ key, name }) => (question.groups[key] || []).map((group) => el("li", { class: "chip", title: name }, el("bdi", {}, shown(group)))));
  const shownRuns = run === null ? section.runs.map((_, i) => i) : [run];
  return el(
    "div",
    { class: "question-body" },
    el("h3", { id: "question-title", class: "text", dir: "auto" }, shown(question.question)),
    groups.length ? el("ul", { class: "chips", role: "list" }, groups) : null,
    question.reference ? part("Reference", el("div", { class: "text reference", dir: "auto" }, shown(question.reference)), section.benchmark === "fanoutqa" ? el("p", { class: "sub" }, MARKING) : null) : null,
    several ? tabs(section, question, run) : null,
    el("div", { class: run === null ? "side-by-side" : "" }, shownRuns.map((i) => runPart(section, question, of[i], i, several))),
  );
}

function tabs(section, question, run) {
  const tab = (to, ...children) => el("button", { type: "button", "aria-pressed": String(run === to), click: () => openQuestion(opened.list, question, to) }, ...children);
  const each = section.runs.map((one, i) => tab(i, swatch(i), el("bdi", {}, shown(one.label)), " ", question.marks[i] ? badge(scoreOf(question, i), statusOf(question, i)) : badge(null, "missing")));
  return el("div", { class: "tabs", role: "group", "aria-label": "Runs" }, tab(null, "All"), each);
}

function runPart(section, question, records, run, several) {
  const title = several ? el("h4", { class: "run-title" }, swatch(run), el("bdi", {}, shown(section.runs[run].label))) : null;
  if (!records.length) return el("article", { class: "run-part" }, title, el("p", { class: "note" }, "This run has no record of the question."));
  return el("article", { class: "run-part" }, title, records.map((record) => recordPart(section, question, record, records.length > 1)));
}

function recordPart(section, question, record, epochs) {
  const scores = Object.entries(record.scores).map(([name, value]) => el("li", {}, `${section.figures[name] || name} `, el("strong", {}, number(value, COUNTED.test(name) ? 0 : 3))));
  const cost = [record.tokens[0] !== null && `${count(record.tokens[0])} tokens in`, record.tokens[1] !== null && `${count(record.tokens[1])} out`, record.seconds !== null && `${record.seconds.toFixed(1)} s`].filter(Boolean);
  const findings = (FINDINGS[section.benchmark] || (() => []))(record, question);
  return el(
    "div",
    { class: "record" },
    epochs ? el("h5", {}, `Epoch ${record.epoch}`) : null,
    record.status === "answered" && !record.problem ? null : el("p", { class: "note warning" }, el("strong", {}, record.status), record.problem ? ` ${shown(record.problem)}` : ""),
    record.answer === null ? null : part("Answer", answerOf(section, question, record)),
    findings,
    scores.length ? part("Scores", el("ul", { class: "values", role: "list" }, scores)) : null,
    folded(`Conversation (${record.messages.length} messages${cost.length ? `; ${cost.join(", ")}` : ""})`, record.messages.map(([role, text]) => el("div", { class: `message ${role === "assistant" ? "assistant" : ""}` }, el("div", { class: "role" }, shown(role)), block(text)))),
  );
}

function answerOf(section, question, record) {
  if (!record.answer.trim()) return el("p", { class: "sub" }, "The answer is empty.");
  const pattern = section.benchmark === "fanoutqa" ? matcher(foundStrings(question.reference, record.detail)) : null;
  return el("div", { class: "text answer", dir: "auto" }, marked(record.answer, pattern, { title: "a string of the reference" }));
}

/** What can be marked: the strings found in their normal form, and those of the reference that these stand for. */
function foundStrings(reference, { found = [] }) {
  return [...found, ...found.map(originals(reference))];
}

function stepTo(by) {
  if (!opened) return;
  const { list } = opened;
  const next = list.next(opened.question, by);
  if (!next) return;
  history.replaceState(null, "", linkTo(list.section, next));
  openQuestion(list, next);
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    say("Link copied");
  } catch {
    say("The browser does not allow copying; the link is in the address bar");
  }
}

/** Opens the question that the address names, or closes what is open. */
function follow(lists) {
  const found = /^#\/([^/]+)\/(.*)$/.exec(location.hash);
  if (!found) {
    closeQuestion();
    return;
  }
  const list = lists.find((one) => one.section.key === found[1]);
  let id = found[2];
  try {
    id = decodeURIComponent(found[2]);
  } catch {
    // An address typed by hand: taken as it is.
  }
  const question = list?.section.questions.find((one) => fit(one.id) === id);
  if (question) openQuestion(list, question);
  else say(`There is no question ${id}`);
}

/** Closes at once what is open: the next key may come before the browser's own event. */
function closeQuestion() {
  if (dialog.open) dialog.close();
  if (!opened) return;
  const { list, question } = opened;
  opened = null;
  if (location.hash.startsWith("#/")) history.replaceState(null, "", `#${list.section.key}-questions`);
  list.focusOn(question);
}

// Closed by other means, such as a telephone's back gesture; when the event comes, another question may be on its way.
dialog.addEventListener("close", () => {
  if (!dialog.open && opened?.shown) closeQuestion();
});
dialog.addEventListener("click", (event) => event.target === dialog && closeQuestion());
