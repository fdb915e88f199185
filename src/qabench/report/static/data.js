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
    reading.set(section.key, Promise.all(elements.map(unpacked)));
  }
  return reading.get(section.key);
}

/** The mean score of a run on a question over its epochs, null where it has none. */
function scoreOf(question, run) {
  const scores = (question.marks[run] || []).map(([score]) => score).filter((score) => score !== null);
  return scores.length ? scores.reduce((sum, score) => sum + score, 0) / scores.length : null;
}

/** The outcome of a run on a question: that of all its epochs if they agree, otherwise by their mean score. */
function outcomeOf(section, question, run) {
  const marks = question.marks[run];
  if (!marks) return "missing";
  const outcomes = [...new Set(marks.map(([, outcome]) => outcome))];
  if (outcomes.length === 1) return outcomes[0];
  const score = scoreOf(question, run);
  if (score === null) return "unscored";
  if (!section.graded) return "scored";
  return score > 1 - 1e-9 ? "right" : score > 1e-9 ? "partly" : "wrong";
}

/** The status of a run on a question: the first one of its epochs that is not "answered". */
function statusOf(question, run) {
  if (!question.marks[run]) return "missing";
  return question.marks[run].map(([, , status]) => status).find(Boolean) || "answered";
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
