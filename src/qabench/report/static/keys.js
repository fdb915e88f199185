// The keyboard.

/** Whether the key goes into a field and is not a command. */
const typing = (target) => target.closest("input, select, textarea") !== null;

let lastUsed = null; // the section that had the focus last, until the reader scrolls (charts that are drawn late move it, too)
document.addEventListener(
  "focusin",
  (event) => (lastUsed = event.target.closest(".benchmark")?.id ?? lastUsed),
);
for (const scrolling of ["wheel", "touchmove"])
  document.addEventListener(scrolling, () => (lastUsed = null), { passive: true });

/** The list that a key is for: the one used last, or the first one whose section is on the screen. */
function listInUse(lists) {
  const focused = document.activeElement?.closest(".benchmark")?.id;
  const last = lists.find((list) => list.section.key === lastUsed);
  return (
    lists.find((list) => list.section.key === focused) ||
    last ||
    lists.find(
      (list) => list.list.closest(".benchmark").getBoundingClientRect().bottom > innerHeight / 2,
    ) ||
    lists[0]
  );
}

function startKeys(lists) {
  const help = $("#shortcuts");
  const inList = (event, step) => {
    const list = listInUse(lists);
    const arrow = event.key.startsWith("Arrow");
    if (arrow && !document.activeElement?.closest(".questions")) return;
    event.preventDefault();
    list.focus(step);
  };
  const commands = {
    "/": (event) => {
      event.preventDefault();
      $("input[type=search]", listInUse(lists).form).focus();
    },
    "?": () => help.showModal(),
    t: nextTheme,
    j: (event) => inList(event, 1),
    k: (event) => inList(event, -1),
    ArrowDown: (event) => inList(event, 1),
    ArrowUp: (event) => inList(event, -1),
  };
  const leave = (event) => {
    event.preventDefault();
    closeQuestion();
  };
  const inQuestion = {
    Escape: leave,
    j: () => stepTo(1),
    k: () => stepTo(-1),
    ArrowRight: () => stepTo(1),
    ArrowLeft: () => stepTo(-1),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing(event.target)) event.target.blur();
    if (typing(event.target) || help.open) return;
    if (!dialog.open) commands[event.key]?.(event);
    else if (/^\d$/.test(event.key)) chooseRun(Number(event.key) - 1);
    else inQuestion[event.key]?.(event);
  });
}

/** Shows the run at position ``place`` (from 0, the best first) of the open question; -1: all. */
function chooseRun(place) {
  const { runs } = opened.list;
  if (runs.length > 1 && place < runs.length)
    openQuestion(opened.list, opened.question, place < 0 ? null : runs[place]);
}
