// The start: lists first, which need nothing; charts when Vega, which stands behind this script, is there.

const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = $("#theme");
  button.textContent = theme[0].toUpperCase() + theme.slice(1);
  button.setAttribute("aria-label", `Colours: ${theme === "auto" ? "as the system has them" : theme}`);
}

function storedTheme() {
  try {
    return THEMES.includes(localStorage.getItem("qabench-theme")) ? localStorage.getItem("qabench-theme") : "auto";
  } catch {
    return "auto"; // a page opened from a file may have no storage
  }
}

function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "auto") + 1) % THEMES.length];
  setTheme(theme);
  try {
    localStorage.setItem("qabench-theme", theme);
  } catch {
    // It holds for this visit only.
  }
  redraw();
}

document.documentElement.classList.add("scripted");
setTheme(storedTheme());
const lists = $$(".browser").map((element) => new Questions(SECTIONS.get(element.dataset.section), element));
performance.mark("qabench-list");
startKeys(lists);
$("#theme").addEventListener("click", nextTheme);
$("#help").addEventListener("click", () => $("#shortcuts").showModal());
$("#save-csv").addEventListener("click", () => saveFigures("csv"));
$("#save-json").addEventListener("click", () => saveFigures("json"));
for (const select of $$("select[data-choice]")) select.addEventListener("change", () => chooseFigure(select));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
addEventListener("hashchange", () => follow(lists));
document.addEventListener("DOMContentLoaded", () => {
  startCharts();
  $$("select[data-choice]").forEach(chooseFigure);
  follow(lists);
  performance.mark("qabench-ready");
});
