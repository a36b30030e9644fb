// The events of the runs that some view shows. They are the record; between
// them the stream shows text that is not recorded yet.
import { useEffect } from "./dom.js";
import { keyed, useKey } from "./cell.js";
import { get, at } from "./api.js";
import { onNotice, onResync } from "./feed.js";
import { take } from "./runs.js";

const logs = keyed(); // run → {events, error}
const live = keyed(); // run → {text, thinking, retry, recorded}
const underway = new Map(), again = new Set();

// seed keeps a log that came with something else.
export function seed(log) {
  take(log.run);
  logs.set(log.run.runId, { events: log.events, error: null });
  const id = log.run.runId;
  if (live.get(id) && (live.get(id).recorded || log.events.at(-1)?.kind === "end")) live.set(id, undefined);
}

export async function load(id) {
  if (underway.has(id)) {
    again.add(id);
    return;
  }
  underway.set(id, true);
  try {
    seed(await get(at("runs", id, "log")));
  } catch (error) {
    logs.set(id, { events: logs.get(id)?.events ?? [], error });
  }
  underway.delete(id);
  if (again.delete(id)) load(id);
}

export function useLog(id) {
  useEffect(() => { if (!logs.get(id)) load(id); }, [id]);
  return useKey(logs, id);
}

export const useLive = (id) => useKey(live, id);

const soon = new Map();
function reload(id, after) {
  if (soon.has(id)) return;
  soon.set(id, setTimeout(() => { soon.delete(id); load(id); }, after));
}

const texts = new Map(); // what came since the last frame
let frame = 0;

function flush() {
  frame = 0;
  for (const [id, add] of texts) {
    const l = live.get(id);
    const before = !l || l.recorded ? { text: "", thinking: "" } : l;
    live.set(id, { text: before.text + add.text, thinking: before.thinking + add.thinking, retry: "" });
  }
  texts.clear();
}

// close notes that what was streamed is on record: it is shown until the
// record is read, and what is streamed next is another reply's.
function close(id) {
  if (texts.has(id)) {
    clearTimeout(frame);
    flush();
  }
  if (live.get(id)) live.set(id, { ...live.get(id), recorded: true });
}

onNotice((n) => {
  const id = n.runId;
  switch (n.kind) {
    case "text":
    case "thinking": {
      const add = texts.get(id) ?? { text: "", thinking: "" };
      add[n.kind] += n.text;
      texts.set(id, add);
      frame ||= setTimeout(flush, 40);
      return;
    }
    case "reset":
      texts.delete(id);
      live.set(id, undefined);
      return;
    case "retry":
      live.set(id, { text: "", thinking: "", ...live.get(id), retry: n.text });
      return;
  }
  if (n.kind === "usage") close(id);
  if (!logs.watched(id)) {
    // Nobody looks: it is read when somebody does.
    if (logs.get(id) && ["usage", "tool_result", "run"].includes(n.kind)) logs.values.delete(id);
    return;
  }
  const over = n.kind === "run" && n.run && ["completed", "failed", "timeout", "cancelled"].includes(n.run.status);
  if (over) reload(id, 30);
  else if (["usage", "tool_result", "run", "compact"].includes(n.kind)) reload(id, 60);
});

onResync(() => {
  for (const id of [...logs.values.keys()]) {
    if (logs.watched(id)) load(id);
    else logs.values.delete(id);
  }
});
