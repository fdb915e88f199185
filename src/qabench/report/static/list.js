// The list of questions of a section: filters, then rows, and more rows on request.

const MARKS_AT_ONCE = 600; // results of runs in the first rows
const AT_ONCE = 60;
const COMPACT = 5; // with this many runs or more, results are small squares

class Questions {
  constructor(section, element) {
    this.section = section;
    this.chosen = section.questions;
    this.rows = 0;
    this.asked = 0;
    this.form = filterForm(section, () => this.filter());
    this.told = el("p", { class: "told", "aria-live": "polite" });
    this.list = el("ol", { class: "questions", role: "list" });
    this.more = el(
      "p",
      { class: "more" },
      el(
        "button",
        { type: "button", click: () => this.show(this.rows + 4 * AT_ONCE) },
        "Show more",
      ),
      el("button", { type: "button", click: () => this.show(Infinity) }, "Show all"),
    );
    const tools = el(
      "div",
      { class: "tools" },
      el("button", { type: "button", click: () => this.reset() }, "Reset"),
      el(
        "button",
        { type: "button", click: () => saveQuestions(section, this.chosen, "csv") },
        "CSV",
      ),
      el(
        "button",
        { type: "button", click: () => saveQuestions(section, this.chosen, "jsonl") },
        "JSON Lines",
      ),
    );
    this.heads = el("div", { class: "heads", "aria-hidden": "true" });
    element.replaceChildren(
      this.form,
      el("div", { class: "above" }, this.told, tools),
      this.heads,
      this.list,
      this.more,
    );
    onState(section, ({ metric }) => {
      useMarks(section, metric);
      showOutcomes(section, this.form);
      this.filter();
    });
  }

  /** The runs whose results are shown: those of the difference, or all that the reader chose, the best first. */
  get runs() {
    const pair = differenceOf(this.form);
    return pair ? [pair.first, pair.second] : ranked(this.section, stateOf(this.section));
  }

  get compact() {
    return this.runs.length >= COMPACT;
  }

  showHeads() {
    const { section, runs, compact } = this;
    const heads = compact
      ? el("span", { class: "squares-head" }, `${count(runs.length)} runs, the best first`)
      : runs.map((run) =>
          el(
            "span",
            { title: section.runs[run].label },
            swatch(run),
            el("bdi", {}, shown(section.runs[run].label)),
          ),
        );
    this.heads.replaceChildren(el("span", {}, "Question"), el("span", { class: "marks" }, heads));
  }

  async filter() {
    const asked = ++this.asked;
    this.list.setAttribute("aria-busy", "true");
    const found = await chosen(this.section, this.form);
    if (asked !== this.asked) return;
    const focused = this.chosen[$$("li > a", this.list).indexOf(document.activeElement)];
    this.chosen = found;
    this.redraw();
    this.focusOn(focused); // also when a late filter replaces the rows under the reader
  }

  reset() {
    this.form.reset();
    this.filter();
  }

  redraw() {
    this.list.replaceChildren();
    this.list.removeAttribute("aria-busy");
    this.rows = 0;
    this.showHeads();
    const all = this.section.questions.length;
    const pair = differenceOf(this.form);
    const said =
      this.chosen.length === all
        ? plural(all, "question")
        : `${count(this.chosen.length)} of ${plural(all, "question")}`;
    this.told.textContent = pair ? `${said}. ${differenceText(this.section, pair)}.` : said;
    this.show(Math.min(AT_ONCE, Math.max(12, Math.round(MARKS_AT_ONCE / this.runs.length))));
  }

  show(upTo) {
    const end = Math.min(upTo, this.chosen.length);
    this.list.append(...this.chosen.slice(this.rows, end).map((question) => this.row(question)));
    this.rows = end;
    this.more.hidden = end >= this.chosen.length;
  }

  row(question) {
    const { section, runs, compact } = this;
    const marks = runs.map((run) => {
      const made = badge(section, question, run, compact);
      if (compact) return made;
      return el(
        "span",
        { class: "mark" },
        section.runs.length > 1 ? el("span", { class: "of" }, swatch(run)) : null,
        made,
      );
    });
    const groups = Object.values(question.groups).flat().map(shown).join(" · ");
    return el(
      "li",
      {},
      el(
        "a",
        { href: linkTo(questionPlace(section, question)) },
        el(
          "span",
          { class: "about" },
          el("span", { class: "ask", dir: "auto" }, shown(question.question)),
          el(
            "span",
            { class: "sub" },
            el("code", {}, shown(question.id)),
            groups ? ` ${groups}` : "",
          ),
        ),
        el("span", { class: compact ? "squares" : "marks" }, marks),
      ),
    );
  }

  /** The question ``step`` places after this one, in the filtered list. */
  next(question, step) {
    const at = this.chosen.indexOf(question);
    return at < 0 ? this.chosen[0] : this.chosen[at + step];
  }

  /** Moves the focus by this many rows, or to the row of a question. */
  focus(step) {
    const links = $$("li > a", this.list);
    const at = links.indexOf(document.activeElement);
    if (at + step >= links.length && this.rows < this.chosen.length) this.show(this.rows + AT_ONCE);
    const wanted = $$("li > a", this.list)[Math.max(0, at + step)];
    if (wanted) wanted.focus();
  }

  focusOn(question) {
    const at = this.chosen.indexOf(question);
    if (at < 0) return;
    if (at >= this.rows) this.show(at + AT_ONCE);
    $$("li > a", this.list)[at].focus();
  }
}

/** The place of a question in the address. */
const questionPlace = (section, question) =>
  `/${section.key}/${encodeURIComponent(fit(question.id))}`;

// encodeURIComponent refuses unpaired surrogates.
const fit = (text) =>
  text.replace(UNSEEN, (found) => (found.charCodeAt(0) >= 0xd800 ? "\ufffd" : found));
