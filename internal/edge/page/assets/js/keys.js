// Shortcuts. They wait for a key outside of all fields, and every one of them
// is also a button or a link.
import { useLayoutEffect } from "./dom.js";
import { cell } from "./cell.js";
import { go } from "./router.js";

const layers = []; // the newest view's keys come first
export const helpOpen = cell(false);

export const places = { c: "chat", r: "runs", d: "definitions", o: "cron", u: "usage", p: "parked", m: "memory", s: "status" };

let leader = 0; // when g was pressed

addEventListener("keydown", (e) => {
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey) return;
  const field = e.target.closest?.("input, textarea, select, [contenteditable], dialog");
  if (field) {
    if (e.key === "Escape" && !e.target.closest("dialog")) e.target.blur();
    return;
  }
  if (Date.now() - leader < 5000 && places[e.key]) {
    leader = 0;
    e.preventDefault();
    go([places[e.key]]);
    return;
  }
  leader = e.key === "g" ? Date.now() : 0;
  if (e.key === "?") {
    e.preventDefault();
    helpOpen.set(true);
    return;
  }
  for (const keys of layers.toReversed()) {
    if (keys[e.key]) {
      e.preventDefault();
      keys[e.key](e);
      return;
    }
  }
});

// useKeys gives a view shortcuts of its own while it is shown.
export function useKeys(keys) {
  useLayoutEffect(() => {
    layers.push(keys);
    return () => layers.splice(layers.indexOf(keys), 1);
  });
}
