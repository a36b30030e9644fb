// The live stream of notices. It is best effort: after each loss all who keep
// something are told to read the record again.
import { cell } from "./cell.js";
import { get, signedOut } from "./api.js";

const kinds = ["run", "text", "thinking", "reset", "tool_call", "tool_result", "usage", "retry", "warning", "compact", "lag"];
const hiddenFor = 20_000; // a browser has six connections for all its tabs

// connection is connecting, open, lost or resting (the tab is hidden).
export const connection = cell("connecting");

const readers = new Set(), syncers = new Set();
let source = null, timer = 0, wait = 500, hidden = 0;

// onNotice hands every notice to read, until the returned function is called.
export function onNotice(read) {
  readers.add(read);
  return () => readers.delete(read);
}

// onResync calls load whenever notices may have been missed.
export function onResync(load) {
  syncers.add(load);
  return () => syncers.delete(load);
}

function resync() {
  for (const load of [...syncers]) load();
}

function close() {
  clearTimeout(timer);
  source?.close();
  source = null;
}

function lose() {
  close();
  connection.set("lost");
  timer = setTimeout(connect, wait);
  wait = Math.min(wait * 1.7, 8000);
  // A stream can't tell why it was refused; any other request can.
  get("/api/status").catch(() => {});
}

export function connect() {
  close();
  if (signedOut.get()) return;
  const s = source = new EventSource("/api/events");
  s.onopen = () => {
    connection.set("open");
    wait = 500;
    // What happened before the first connection is loaded by whoever shows it,
    // but perhaps it was loaded before the stream began.
    resync();
  };
  s.onerror = () => { if (s === source) lose(); };
  for (const kind of kinds) {
    s.addEventListener(kind, (message) => {
      const notice = JSON.parse(message.data);
      if (kind === "lag") resync();
      else for (const read of [...readers]) read(notice);
    });
  }
}

signedOut.watch(close);

document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) {
    hidden = setTimeout(() => { close(); connection.set("resting"); }, hiddenFor);
  } else if (!source && !signedOut.get()) {
    connection.set("connecting");
    connect();
  }
});
addEventListener("online", () => { if (!source) connect(); });
