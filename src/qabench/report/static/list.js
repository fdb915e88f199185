// The list of questions of a section: filters above, rows below, more rows when asked for.

const AT_ONCE = 60;

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
      el("button", { type: "button", click: () => this.show(this.rows + 4 * AT_ONCE) }, "Show more"),
      el("button", { type: "button", click: () => this.show(Infinity) }, "Show all"),
    );
    const tools = el(
      "div",
      { class: "tools" },
      el("button", { type: "button", click: () => this.reset() }, "Reset"),
      el("button", { type: "button", click: () => saveQuestions(section, this.chosen, "csv") }, "CSV"),
      el("button", { type: "button", click: () => saveQuestions(section, this.chosen, "jsonl") }, "JSON lines"),
    );
    element.replaceChildren(this.form, el("div", { class: "above" }, this.told, tools), this.heads(), this.list, this.more);
    this.redraw();
  }

  heads() {
    const runs = this.section.runs.map((run, i) => el("span", { title: run.label }, swatch(i), el("bdi", {}, shown(run.label))));
    return el("div", { class: "heads", "aria-hidden": "true" }, el("span", {}, "Question"), el("span", { class: "marks" }, runs));
  }

  async filter() {
    const asked = ++this.asked;
    this.list.setAttribute("aria-busy", "true");
    const found = await chosen(this.section, this.form);
    if (asked !== this.asked) return;
    this.chosen = found;
    this.redraw();
  }

  reset() {
    this.form.reset();
    this.filter();
  }

  redraw() {
    this.list.replaceChildren();
    this.list.removeAttribute("aria-busy");
    this.rows = 0;
    const all = this.section.questions.length;
    this.told.textContent = this.chosen.length === all ? `${count(all)} questions` : `${count(this.chosen.length)} of ${count(all)} questions`;
    this.show(AT_ONCE);
  }

  show(upTo) {
    const end = Math.min(upTo, this.chosen.length);
    this.list.append(...this.chosen.slice(this.rows, end).map((question) => this.row(question)));
    this.rows = end;
    this.more.hidden = end >= this.chosen.length;
  }

  row(question) {
    const marks = this.section.runs.map((run, i) => {
      const marked = question.marks[i];
      const made = marked ? badge(scoreOf(question, i), statusOf(question, i)) : badge(null, "missing");
      return el("span", { class: "mark" }, el("span", { class: "unseen" }, `${shown(run.label)}: `), made);
    });
    const groups = Object.values(question.groups).flat().map(shown).join(" · ");
    return el(
      "li",
      {},
      el(
        "a",
        { href: linkTo(this.section, question) },
        el("span", { class: "about" }, el("span", { class: "ask", dir: "auto" }, shown(question.question)), el("span", { class: "sub" }, el("code", {}, shown(question.id)), groups ? ` ${groups}` : "")),
        el("span", { class: "marks" }, marks),
      ),
    );
  }

  /** The question ``step`` places after this one, in the list as it is filtered now. */
  next(question, step) {
    const at = this.chosen.indexOf(question);
    return at < 0 ? this.chosen[0] : this.chosen[at + step];
  }

  /** Moves the focus by so many rows, or to the row of a question. */
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

function linkTo(section, question) {
  return `#/${section.key}/${encodeURIComponent(fit(question.id))}`;
}

// encodeURIComponent refuses half surrogates.
const fit = (text) => text.replace(UNSEEN, (found) => (found.charCodeAt(0) >= 0xd800 ? "\ufffd" : found));

function swatch(run) {
  return el("svg", { class: `swatch run${run % 8}`, viewBox: "-1.3 -1.3 2.6 2.6", "aria-hidden": "true" }, el("path", { d: DATA.shapes[run % 8] }));
}
