// The documented API, and nothing else: docs/http.md.
import { cell } from "./cell.js";

// Problem is an answer that is an error, in the gateway's own words.
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }

  // absent: this gateway has no such thing at all, as opposed to not having
  // one by that name.
  get absent() {
    return (this.status === 404 && this.message.startsWith("there is nothing at")) || this.status === 405;
  }
}

// signedOut is set once the gateway does not know this browser any more.
export const signedOut = cell(false);

// signOut ends this browser's session.
export async function signOut() {
  await post("/api/logout");
  signedOut.set(true);
}

// version is the gateway's, as its answers say.
export const version = cell("");

async function call(method, path, body, headers = {}) {
  const init = { method, headers: { ...headers, "X-GoClaw-Page": "1" }, cache: "no-store" };
  if (body !== undefined) {
    init.headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, init);
  } catch {
    throw new Problem(0, "the gateway can't be reached");
  }
  if (answer.headers.get("X-GoClaw-Version")) version.set(answer.headers.get("X-GoClaw-Version"));
  if (answer.status === 401) signedOut.set(true);
  if (answer.status === 204) return null;
  const text = await answer.text();
  let value = null;
  try { value = JSON.parse(text); } catch { /* told below */ }
  if (!answer.ok) throw new Problem(answer.status, value?.detail ?? value?.error?.message ?? `HTTP ${answer.status} ${answer.statusText}`);
  if (value === null && text !== "null") throw new Problem(answer.status, `${path} did not answer with JSON`);
  return value;
}

// query writes the parameters that have a value.
function query(path, params = {}) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const v of [value].flat()) if (v !== undefined && v !== null && v !== "" && v !== false) q.append(name, v === true ? "true" : v);
  }
  const text = q.toString();
  return text ? `${path}?${text}` : path;
}

// at writes a path whose parts are escaped.
export const at = (...parts) => "/api/" + parts.map(encodeURIComponent).join("/");

// text reads something as it is.
export async function text(path) {
  let answer;
  try {
    answer = await fetch(path, { headers: { "X-GoClaw-Page": "1" }, cache: "no-store" });
  } catch {
    throw new Problem(0, "the gateway can't be reached");
  }
  if (answer.status === 401) signedOut.set(true);
  if (!answer.ok) throw new Problem(answer.status, `HTTP ${answer.status} ${answer.statusText}`);
  return answer.text();
}

export const get = (path, params) => call("GET", query(path, params));
export const post = (path, body = {}, once) => call("POST", path, body, once ? { "Idempotency-Key": once } : {});
export const put = (path, body = {}) => call("PUT", path, body);
export const patch = (path, body = {}) => call("PATCH", path, body);
export const remove = (path) => call("DELETE", path);

// once is a key under which a request takes effect once, however often it is sent.
export const once = () => crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
