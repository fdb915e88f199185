// Creating and finding elements. Strings always become text nodes: no data is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (functions are listeners, null is left out) and children (strings or nodes). */
function el(name, attributes = {}, ...children) {
  const made =
    name === "svg" || name === "path"
      ? document.createElementNS(SVG, name)
      : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return made;
}

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

/** Tells a screen reader what happened. */
function say(text) {
  $("#said").textContent = text;
}

/** Shows a message for a moment, and tells screen readers. */
function toast(text) {
  say(text);
  const made = el("p", { class: "toast", "aria-hidden": "true" }, text);
  ($("dialog[open]") || document.body).append(made);
  setTimeout(() => made.remove(), 1800);
}

/** Calls the function once no further call has come for a while. */
function later(milliseconds, call) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), milliseconds);
  };
}
