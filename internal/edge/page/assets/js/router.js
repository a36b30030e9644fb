// Where the page is, from the address after #: every view can be linked to,
// and the back button works.
import { cell, useCell } from "./cell.js";

function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((p) => { try { return decodeURIComponent(p); } catch { return p; } });
  return { parts, params: Object.fromEntries(new URLSearchParams(search)) };
}

const current = cell(parse(location.hash));
addEventListener("hashchange", () => current.set(parse(location.hash)));

export const useRoute = () => useCell(current);
export const route = () => current.get();

export function link(parts, params = {}) {
  const q = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== "" && v !== undefined && v !== null)).toString();
  return "#/" + parts.map(encodeURIComponent).join("/") + (q ? "?" + q : "");
}

export function go(parts, params) {
  location.hash = link(parts, params);
}

// refine changes the parameters of the place without a step for the back button.
export function refine(params) {
  const r = current.get();
  history.replaceState(null, "", link(r.parts, { ...r.params, ...params }));
  current.set(parse(location.hash));
}
