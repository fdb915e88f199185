// The page's data: questions and numbers, which are read at once, and the answers, which are read when needed.

async function unpacked(element) {
  const packed = atob(element.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const DATA = await unpacked($("#data"));
const NUMBERS = await unpacked($("#numbers")); // the content of report.json
DATA.sections.forEach((section, i) => complete(section, NUMBERS.sections[i]));
const SECTIONS = new Map(DATA.sections.map((section) => [section.key, section]));

/** Adds the numbers of a section to it: by metric the scores of runs and groups and the pairs, with runs by position. */
function complete(section, numbers) {
  const { config, runs, findings, sections: extra } = numbers;
  const place = new Map(runs.map(({ label }, run) => [label, run]));
  const byMetric = (empty) => Object.fromEntries(section.metrics.map(({ key }) => [key, empty()]));
  const cellOf = ({ mean, low, high, n }) => [mean, low, high, n];
  Object.assign(section, { config, runs, findings, extra });
  section.scores = byMetric(() => runs.map(() => null));
  // An undefined score has a row without numbers.
  for (const row of numbers.scores.filter(({ mean }) => mean !== null))
    section.scores[row.metric][place.get(row.run)] = cellOf(row);
  section.groups = byMetric(() =>
    section.breakdowns.map(({ groups }) => runs.map(() => groups.map(() => null))),
  );
  const breakdowns = new Map(section.breakdowns.map(({ key }, i) => [key, i]));
  for (const row of numbers.groups.filter(({ metric }) => section.groups[metric])) {
    const i = breakdowns.get(row.grouping);
    section.groups[row.metric][i][place.get(row.run)][
      section.breakdowns[i].groups.indexOf(row.group)
    ] = cellOf(row);
  }
  section.pairs = byMetric(() => []);
  for (const { metric, pairs } of numbers.comparisons) {
    section.pairs[metric] = pairs.map(({ first, second, difference, corrected_p, ...pair }) => ({
      ...pair,
      first: place.get(first),
      second: place.get(second),
      mean: difference,
      corrected: corrected_p,
    }));
  }
  section.leaderboard = numbers.leaderboard.map((entry) => ({
    ...entry,
    run: entry.source === "published" ? null : place.get(entry.system),
  }));
  useMarks(section, section.metrics[0]?.key);
}

const reading = new Map();

/** The records of a section: for each run an object from question id to the records of its epochs. */
function recordsOf(section) {
  if (!reading.has(section.key)) {
    const elements = $$("script.records").filter(
      (element) => element.dataset.section === section.key,
    );
    reading.set(section.key, Promise.all(elements.map(unpacked)));
  }
  return reading.get(section.key);
}

/** Makes the scores by one metric those of the questions: for each run a list, empty where it has none. */
function useMarks(section, metric) {
  const place = section.metrics.findIndex(({ key }) => key === metric);
  const found = section.metrics[place];
  section.graded = Boolean(found?.graded);
  section.itemTitle = found?.item ?? "score";
  for (const question of section.questions)
    question.chosen = question.marks[place] ?? question.statuses.map((all) => all.map(() => null));
}

/** The [score, status] pairs of a run on a question, one for each epoch; [] if it has no record. */
const marksOf = (question, run) =>
  question.chosen[run].map((score, epoch) => [score, question.statuses[run][epoch]]);

/** The mean score of a run on a question over its epochs, null where it has none. */
function scoreOf(question, run) {
  const scores = question.chosen[run].filter((score) => score !== null);
  return scores.length ? scores.reduce((sum, score) => sum + score, 0) / scores.length : null;
}

const UNANSWERED = ["empty", "refused", "failed", "missing"];

/** The outcome of an answer; a refused, failed, missing or empty one is that and not "wrong", whatever its score. */
function outcomeIs(section, score, status) {
  if (UNANSWERED.includes(status)) return status;
  if (score === null) return "unscored";
  if (!section.graded) return "scored";
  return score > 1 - 1e-9 ? "right" : score > 1e-9 ? "partly" : "wrong";
}

/** The outcome of a run on a question: that of all its epochs if they agree, otherwise by their mean score. */
function outcomeOf(section, question, run) {
  const outcomes = new Set(
    marksOf(question, run).map(([score, status]) => outcomeIs(section, score, status)),
  );
  if (!outcomes.size) return "missing";
  return outcomes.size === 1
    ? [...outcomes][0]
    : outcomeIs(section, scoreOf(question, run), "answered");
}

/** How many answers of a run have each outcome. */
function outcomesOf(section, run) {
  const records = section.questions.reduce(
    (sum, question) => sum + question.statuses[run].length,
    0,
  );
  const counts = { missing: Math.max(0, section.runs[run].expected - records) };
  for (const question of section.questions) {
    for (const [score, status] of marksOf(question, run)) {
      const outcome = outcomeIs(section, score, status);
      counts[outcome] = (counts[outcome] || 0) + 1;
    }
  }
  return counts;
}

/** The status of a run on a question: the first one of its epochs that is not "answered". */
function statusOf(question, run) {
  const statuses = question.statuses[run];
  return statuses.length
    ? (statuses.find((status) => status !== "answered") ?? "answered")
    : "missing";
}

/** What a search looks through, by question: question, id, reference and answers, in lower case. */
const searching = new Map();

async function haystacks(section) {
  if (!searching.has(section.key)) {
    const runs = await recordsOf(section);
    const texts = section.questions.map((question) =>
      [question.id, question.question, question.reference]
        .concat(
          runs.flatMap((run) => (run[question.id] || []).map((record) => record.answer || "")),
        )
        .join("\n")
        .toLowerCase(),
    );
    searching.set(section.key, texts);
  }
  return searching.get(section.key);
}
