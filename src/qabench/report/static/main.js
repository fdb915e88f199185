// The start: what is seen first, then the rest when the browser is idle.

const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = $("#theme");
  button.textContent = theme[0].toUpperCase() + theme.slice(1);
  button.setAttribute(
    "aria-label",
    `${button.textContent}: colors${theme === "auto" ? " as the system" : ""}`,
  );
}

function storedTheme() {
  try {
    return THEMES.includes(localStorage.getItem("qabench-theme"))
      ? localStorage.getItem("qabench-theme")
      : "auto";
  } catch {
    return "auto"; // a page opened from a file may have no storage
  }
}

function nextTheme() {
  const theme =
    THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "auto") + 1) % THEMES.length];
  setTheme(theme);
  try {
    localStorage.setItem("qabench-theme", theme);
  } catch {
    // The choice holds for this visit only.
  }
  DATA.sections.forEach(showState);
  redraw();
}

/** A moment in which the browser has nothing else to do, at the latest after 0.2 seconds: screenshots need all parts. */
const idle = () =>
  new Promise((done) =>
    window.requestIdleCallback ? requestIdleCallback(done, { timeout: 200 }) : setTimeout(done),
  );

document.documentElement.classList.add("scripted");
setTheme(storedTheme());
for (const section of DATA.sections) startSection(section);
const lists = $$(".browser").map(
  (element) => new Questions(SECTIONS.get(element.dataset.section), element),
);
performance.mark("qabench-list");
startKeys(lists);
for (const button of $$("[data-copy-table]")) {
  const table = document.getElementById(button.dataset.copyTable);
  button.replaceWith(...copyButtons(table, table.getAttribute("aria-label")));
}
for (const button of $$("[data-copy-text]"))
  button.addEventListener("click", () => copy(button.dataset.copyText, button.dataset.copyName));
for (const path of $$("svg.swatch:empty"))
  path.append(el("path", { d: shapeOf(Number(path.dataset.run)) }));
$("#theme").addEventListener("click", nextTheme);
$("#help").addEventListener("click", () => $("#shortcuts").showModal());
$("#save-csv").addEventListener("click", () => saveNumbers("csv"));
$("#save-json").addEventListener("click", () => saveNumbers("json"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
PRINTED.addEventListener("change", redraw);
addEventListener("hashchange", () => {
  DATA.sections.forEach(showState);
  follow(lists);
});
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]:not([href^="#/"])');
  if (!link) {
    for (const open of $$("details.run-filter[open]"))
      if (!open.contains(event.target)) open.open = false;
    return;
  }
  const place = link.getAttribute("href").slice(1);
  event.preventDefault(); // the browser would drop what the reader chose from the address
  goTo(place);
  document.getElementById(place)?.scrollIntoView();
  if (place === "content") $("#content").focus();
});
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#/"]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", linkTo(link.getAttribute("href").slice(1).split("?")[0]));
  follow(lists);
});
(async () => {
  follow(lists);
  for (const section of DATA.sections) {
    await idle();
    startComparison(section);
    await idle();
    startGroups(section);
    startLeaderboard(section);
  }
  if (address().place && !address().place.startsWith("/"))
    document.getElementById(address().place)?.scrollIntoView();
  performance.mark("qabench-ready");
  document.documentElement.classList.add("ready");
})();
