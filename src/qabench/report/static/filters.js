// Which questions the list shows, and in which order.

/** A select with a label; options are [value, name] pairs. */
function choice(name, label, options, changed) {
  const made = options.map(([value, text]) => el("option", { value }, text));
  return el("label", { class: "filter" }, el("span", {}, label), el("select", { name, change: changed }, made));
}

/** The filters of a section's list as a form; calls ``changed`` when one changes. */
function filterForm(section, changed) {
  const several = section.runs.length > 1;
  const runs = section.runs.map((run, i) => [String(i), run.label]);
  const statuses = new Set(section.questions.flatMap((question) => section.runs.map((_, run) => statusOf(question, run))));
  const groups = section.groupings.map(({ key, name }) => {
    const sizes = new Map();
    for (const question of section.questions) for (const group of question.groups[key] || []) sizes.set(group, (sizes.get(group) || 0) + 1);
    const names = [...sizes].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([group, n]) => [group, `${shown(group)} (${count(n)})`]);
    return names.length > 1 ? choice(`group:${key}`, name, [["", "all"], ...names], changed) : null;
  });
  const outcomes = Object.entries(OUTCOMES).map(([key, { sign, name }]) => [key, `${sign} ${name}`]);
  const orders = [["", "as in the benchmark"], ["low", "lowest score first"], ["high", "highest score first"], ["long", "longest question first"]];
  if (several) orders.push(["apart", "where runs differ most"]);
  return el(
    "form",
    { class: "filters", role: "search", "aria-label": `Filter the questions of ${section.title}`, submit: (event) => event.preventDefault() },
    el("label", { class: "filter wide" }, el("span", {}, "Search"), el("input", { type: "search", name: "search", placeholder: "words in question, reference or answer", autocomplete: "off", spellcheck: "false", input: later(120, changed) })),
    several ? choice("run", "run", [["", "any run"], ...runs], changed) : null,
    choice("outcome", section.headline, [["", "all"], ...outcomes], changed),
    statuses.size > 1 ? choice("status", "status", [["", "all"], ...[...statuses].map((status) => [status, status])], changed) : null,
    groups,
    choice("order", "order", orders, changed),
  );
}

const values = (form) => Object.fromEntries(new FormData(form));

/** The questions that pass the filters of a form, in the order that it says. */
async function chosen(section, form) {
  const wanted = values(form);
  const runs = wanted.run ? [Number(wanted.run)] : section.runs.map((_, run) => run);
  const words = wanted.search.toLowerCase().split(/\s+/).filter(Boolean);
  const texts = words.length ? await haystacks(section) : [];
  const groups = Object.entries(wanted).filter(([key, value]) => key.startsWith("group:") && value);
  const kept = section.questions.filter(
    (question, i) =>
      words.every((word) => texts[i].includes(word)) &&
      groups.every(([key, value]) => (question.groups[key.slice(6)] || []).includes(value)) &&
      runs.some(
        (run) =>
          (!wanted.outcome || outcomeOf(scoreOf(question, run)) === wanted.outcome) &&
          (!wanted.status || statusOf(question, run) === wanted.status) &&
          (!wanted.run || question.marks[run]),
      ),
  );
  return ordered(kept, wanted.order, runs);
}

function ordered(questions, order, runs) {
  if (!order) return questions;
  const keys = new Map(questions.map((question) => [question, sortKey(question, order, runs)]));
  // What has no score comes last in every order.
  return [...questions].sort((a, b) => (keys.get(a) ?? Infinity) - (keys.get(b) ?? Infinity) || 0);
}

function sortKey(question, order, runs) {
  if (order === "long") return -question.question.length;
  const scores = runs.map((run) => scoreOf(question, run)).filter((score) => score !== null);
  if (!scores.length) return null;
  if (order === "apart") return Math.min(...scores) - Math.max(...scores);
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  return order === "low" ? mean : -mean;
}
