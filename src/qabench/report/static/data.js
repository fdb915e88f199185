// What the page carries: an index that is there at once, and the records, which are packed and read when needed.

const DATA = JSON.parse($("#data").textContent);
const SECTIONS = new Map(DATA.sections.map((section) => [section.key, section]));

async function unpacked(element) {
  const packed = atob(element.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

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

/** The status of a run on a question: of its epochs the first that is not "answered". */
function statusOf(question, run) {
  const statuses = (question.marks[run] || []).map(([, status]) => status);
  return statuses.length ? statuses.find((status) => status !== "answered") || "answered" : "missing";
}

/** What a search looks through: question, id, reference and answers, in small letters, by question. */
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
