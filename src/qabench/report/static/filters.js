// Which questions the list shows, in which order, and the difference of two runs.

/** A select with a label; options are [value, name] pairs. */
function choice(name, label, options, changed) {
  const made = options.map(([value, text]) => el("option", { value }, text));
  return el(
    "label",
    { class: "filter" },
    el("span", {}, label),
    el("select", { name, change: changed }, made),
  );
}

/** The filters of a section's list as a form; calls ``changed`` when one changes. */
function filterForm(section, changed) {
  const several = section.runs.length > 1;
  const runs = section.runs.map((run, i) => [String(i), run.label]);
  const statuses = new Set(
    section.questions.flatMap((question) => section.runs.map((_, run) => statusOf(question, run))),
  );
  const groups = section.groupings.map(({ key, name }) => {
    const sizes = new Map();
    for (const question of section.questions)
      for (const group of question.groups[key] || []) sizes.set(group, (sizes.get(group) || 0) + 1);
    const names = [...sizes]
      .sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
      .map(([group, n]) => [group, `${shown(group)} (${count(n)})`]);
    return names.length > 1 ? choice(`group:${key}`, name, [["", "all"], ...names], changed) : null;
  });
  const orders = [
    ["", "as in the benchmark"],
    ["low", "lowest score first"],
    ["high", "highest score first"],
    ["long", "longest question first"],
  ];
  if (several) orders.splice(1, 0, ["apart", "most disagreement first"]);
  const difference = several
    ? el(
        "fieldset",
        { class: "difference" },
        el("legend", {}, "Difference of two runs"),
        choice("first", "first run", [["", "–"], ...runs], changed),
        choice("second", "second run", [["", "–"], ...runs], changed),
        choice(
          "side",
          "show",
          [
            ["", "all differences"],
            ["first", "first is better"],
            ["second", "second is better"],
          ],
          changed,
        ),
      )
    : null;
  return el(
    "form",
    {
      class: "filters",
      role: "search",
      "aria-label": `Filter the questions of ${section.title}`,
      submit: (event) => event.preventDefault(),
    },
    el(
      "label",
      { class: "filter wide" },
      el("span", {}, "Search"),
      el("input", {
        type: "search",
        name: "search",
        placeholder: "words in question, reference or answer",
        autocomplete: "off",
        spellcheck: "false",
        input: later(120, changed),
      }),
    ),
    choice("outcome", "", [], changed),
    several ? choice("run", "of run", [["", "any run"], ...runs], changed) : null,
    statuses.size > 1
      ? choice(
          "status",
          "status",
          [["", "all"], ...[...statuses].map((status) => [status, status])],
          changed,
        )
      : null,
    groups,
    choice("order", "order", orders, changed),
    difference,
  );
}

/** Makes the form offer the outcomes that occur with the chosen metric. */
function showOutcomes(section, form) {
  const found = new Set(
    section.questions.flatMap((question) =>
      section.runs.map((_, run) => outcomeOf(section, question, run)),
    ),
  );
  const known = Object.entries(OUTCOMES)
    .filter(([key]) => found.has(key))
    .map(([key, name]) => [key, `${SIGNS[key]} ${name}`.trim()]);
  const select = form.elements.outcome;
  const before = select.value;
  select.replaceChildren(
    ...[["", "all"], ...known].map(([value, text]) => el("option", { value }, text)),
  );
  select.value = found.has(before) ? before : "";
  select.previousSibling.textContent = section.itemTitle;
  for (const one of [select, form.elements.run])
    if (one) one.closest("label").hidden = known.length < 2;
}

/** The two runs whose difference is asked for; null if none is. */
function differenceOf(form) {
  const { first = "", second = "", side = "" } = values(form);
  return first && second && first !== second
    ? { first: Number(first), second: Number(second), side }
    : null;
}

/** The first run's score minus the second's on a question; null if one has no score. */
function gainOf(question, { first, second }) {
  const [one, other] = [scoreOf(question, first), scoreOf(question, second)];
  return one === null || other === null ? null : one - other;
}

/** What each of two runs found that the other missed, in one sentence. */
function differenceText(section, pair) {
  const gains = section.questions
    .map((question) => gainOf(question, pair))
    .filter((gain) => gain !== null);
  const [more, less] = [
    gains.filter((gain) => gain > 1e-9).length,
    gains.filter((gain) => gain < -1e-9).length,
  ];
  const name = (run) => shown(section.runs[run].label);
  const better = `${name(pair.first)} is better on ${count(more)}, ${name(pair.second)} on ${count(less)}`;
  const equal = count(gains.length - more - less);
  return `${better}, and they are equal on ${equal} of ${count(gains.length)} questions`;
}

const values = (form) => Object.fromEntries(new FormData(form));

/** The questions that pass the filters of a form, in the order that it says; only the shown runs count. */
async function chosen(section, form) {
  const wanted = values(form);
  const runs = wanted.run ? [Number(wanted.run)] : stateOf(section).runs;
  const needles = wanted.search.toLowerCase().split(/\s+/).filter(Boolean);
  const texts = needles.length ? await haystacks(section) : [];
  const groups = Object.entries(wanted).filter(([key, value]) => key.startsWith("group:") && value);
  const pair = differenceOf(form);
  const kept = section.questions.filter(
    (question, i) =>
      needles.every((word) => texts[i].includes(word)) &&
      groups.every(([key, value]) => (question.groups[key.slice(6)] || []).includes(value)) &&
      (!pair || differs(gainOf(question, pair), pair.side)) &&
      runs.some(
        (run) =>
          (!wanted.outcome || outcomeOf(section, question, run) === wanted.outcome) &&
          (!wanted.status || statusOf(question, run) === wanted.status) &&
          (!wanted.run || question.statuses[run].length),
      ),
  );
  if (pair && !wanted.order) return sorted(kept, (question) => -Math.abs(gainOf(question, pair)));
  return wanted.order ? sorted(kept, (question) => sortKey(question, wanted.order, runs)) : kept;
}

const differs = (gain, side) =>
  gain !== null &&
  (side === "first" ? gain > 1e-9 : side === "second" ? gain < -1e-9 : Math.abs(gain) > 1e-9);

/** The questions by ascending keys; those without a key (without a score) come last. */
function sorted(questions, key) {
  const keys = new Map(questions.map((question) => [question, key(question)]));
  return [...questions].sort((a, b) => (keys.get(a) ?? Infinity) - (keys.get(b) ?? Infinity) || 0);
}

function sortKey(question, order, runs) {
  if (order === "long") return -question.question.length;
  const scores = runs.map((run) => scoreOf(question, run)).filter((score) => score !== null);
  if (!scores.length) return null;
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  if (order === "apart")
    return -scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length;
  return order === "low" ? mean : -mean;
}
