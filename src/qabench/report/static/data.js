// The page's data: an index that is read at once, and packed records and numbers, which are read when needed.

const DATA = JSON.parse($("#data").textContent);
const SECTIONS = new Map(DATA.sections.map((section) => [section.key, section]));

async function unpacked(element) {
  const packed = atob(element.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** The content of report.json. */
const numbers = () => unpacked($("#numbers"));

const reading = new Map();

/** The records of a section: for each run an object from question id to the records of its epochs. */
function recordsOf(section) {
  if (!reading.has(section.key)) {
    const elements = $$("script.records").filter((element) => element.dataset.section === section.key);
    reading.set(section.key, Promise.all([Promise.all(elements.map(unpacked)), laterOf(section)]).then(([records]) => records));
  }
  return reading.get(section.key);
}

const completing = new Map();

/** Completes a section with its references and the numbers of all metrics. */
function laterOf(section) {
  if (!completing.has(section.key)) {
    const element = $$("script.later").find((one) => one.dataset.section === section.key);
    const complete = ({ references, byMetric }) => {
      section.questions.forEach((question, i) => (question.reference = references[i]));
      Object.assign(section.byMetric, byMetric);
    };
    completing.set(section.key, unpacked(element).then(complete));
  }
  return completing.get(section.key);
}

/** Calls ``show`` with the section's state when the numbers of the chosen metric are there, now and after each change. */
function onNumbers(section, show) {
  onState(section, (state) => {
    if (section.byMetric[state.metric ?? ""]) show(state, section.byMetric[state.metric ?? ""]);
    else laterOf(section).then(() => stateOf(section).metric === state.metric && show(stateOf(section), section.byMetric[state.metric]));
  });
}

/** Makes the scores by one metric those of the questions. */
function useMarks(section, metric) {
  const found = metricOf(section, metric);
  section.graded = Boolean(found?.graded);
  section.itemTitle = found?.item ?? "score";
  section.byMetric[metric ?? ""].marks.forEach((marks, i) => (section.questions[i].marks = marks));
}

for (const section of DATA.sections) {
  section.questions.forEach((question, i) => (question.statuses = section.statuses[i]));
  useMarks(section, section.metrics[0]?.key);
}

/** The [score, status] pairs of a run on a question, one for each epoch; [] if it has no record. */
function marksOf(question, run) {
  const statuses = question.statuses[run];
  if (statuses === "missing") return [];
  return [question.marks[run]].flat().map((score, epoch) => [score, statuses?.[epoch] ?? "answered"]);
}

/** The mean score of a run on a question over its epochs, null where it has none. */
function scoreOf(question, run) {
  const marks = question.marks[run];
  if (!Array.isArray(marks)) return marks;
  const scores = marks.filter((score) => score !== null);
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
  const outcomes = new Set(marksOf(question, run).map(([score, status]) => outcomeIs(section, score, status)));
  if (!outcomes.size) return "missing";
  return outcomes.size === 1 ? [...outcomes][0] : outcomeIs(section, scoreOf(question, run), "answered");
}

/** How many answers of a run have each outcome. */
function outcomesOf(section, run) {
  const counts = { missing: section.runs[run].missing };
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
  return Array.isArray(statuses) ? statuses.find((status) => status !== "answered") : (statuses ?? "answered");
}

/** What a search looks through, by question: question, id, reference and answers, in lower case. */
const searching = new Map();

async function haystacks(section) {
  if (!searching.has(section.key)) {
    const runs = await recordsOf(section);
    const texts = section.questions.map((question) =>
      [question.id, question.question, question.reference]
        .concat(runs.flatMap((run) => (run[question.id] || []).map((record) => record.answer || "")))
        .join("\n")
        .toLowerCase(),
    );
    searching.set(section.key, texts);
  }
  return searching.get(section.key);
}
