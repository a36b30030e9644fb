// Folds a run's events into the rows of its waterfall: {key, lane, name, note,
// from, to, open, …}. A row without an end is under way. Plain functions.
import { gist } from "./transcript.js";

// rows lists the steps of a run, in order of their beginning.
export function rows(run, events) {
  const out = [];
  if (run.startedAt > run.createdAt + 5 || !run.startedAt) {
    out.push({ key: "queue", lane: "queue", name: "queued", from: run.createdAt, to: run.startedAt || 0 });
  }
  const calls = new Map();
  let model = 0, waiting = null;
  const over = (at) => { if (waiting) { waiting.to = at; waiting = null; } };
  for (const e of events) {
    if (e.kind !== "waiting") over(e.at);
    switch (e.kind) {
      case "prompt":
        out.push({ key: e.seq, lane: "mark", name: "prompt", note: "assembled", from: e.at, to: e.at, event: e });
        break;
      case "model":
        model++;
        out.push({ key: e.seq, lane: "model", name: `model ${model}`, note: e.model.model, from: e.at - e.model.tookMs, to: e.at, event: e, usage: e.model.usage, tries: e.model.tries, call: model });
        for (const p of e.model.message.parts) if (p.kind === "tool_call") calls.set(p.call.id, { call: p.call, at: e.at });
        break;
      case "intent":
        for (const i of e.intent.calls) {
          const c = calls.get(i.callId);
          const row = { key: `${e.seq}.${i.callId}`, lane: "tool", name: i.name, note: c ? gist(c.call) : "", from: e.at, to: 0, call: c?.call, event: e };
          calls.set(i.callId, { ...c, row });
          out.push(row);
        }
        break;
      case "result": {
        const row = calls.get(e.result.callId)?.row;
        if (row) Object.assign(row, { to: e.at, result: e.result, failed: e.result.isError });
        break;
      }
      case "waiting":
        if (!waiting) out.push(waiting = { key: e.seq, lane: "wait", name: "waits", note: waits(e.waiting.for), from: e.at, to: 0, event: e });
        break;
      case "input":
        out.push({ key: e.seq, lane: "mark", name: e.input.repair ? "sent back" : e.input.reminder ? "reminded" : "message", note: "came in", from: e.at, to: e.at, event: e });
        break;
      case "handoff":
      case "compact": {
        const it = e[e.kind];
        const took = it.call?.tookMs ?? 0;
        out.push({ key: e.seq, lane: "hand", name: e.kind === "handoff" ? `hand-off to attempt ${it.attempt}` : "summed up", note: "", from: e.at - took, to: e.at, event: e, usage: it.call?.usage });
        break;
      }
      case "resumed":
        out.push({ key: e.seq, lane: "mark", name: "taken over", note: e.resumed.planned ? "after a planned stop" : "its process had died", from: e.at, to: e.at, event: e });
        break;
      case "end":
        for (const { row } of calls.values()) if (row && !row.to) Object.assign(row, { to: e.at, failed: true });
        out.push({ key: e.seq, lane: "mark", name: e.end.state, note: e.end.error ?? "", from: e.at, to: e.at, event: e, failed: e.end.state !== "completed" });
        break;
    }
  }
  const last = events.at(-1);
  const idle = run.status === "running" && !waiting && last && last.kind !== "end" && ![...calls.values()].some((c) => c.row && !c.row.to);
  if (idle) out.push({ key: "now", lane: "model", name: `model ${model + 1}`, note: "under way", from: last.at, to: 0 });
  return out;
}

export function waits(reason) {
  return { workers: "for its workers", person: "for a person", caller: "for its caller's tools" }[reason] ?? reason ?? "";
}

// extent is the time that the rows cover.
export function extent(list, now) {
  let from = Infinity, to = 0;
  for (const r of list) {
    from = Math.min(from, r.from);
    to = Math.max(to, r.to || now);
  }
  return from === Infinity ? { from: now, to: now + 1 } : { from, to: Math.max(to, from + 1) };
}

// ticks are round moments to draw lines at, at most six.
export function ticks(length) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5];
  const step = steps.find((s) => length / s <= 6) ?? Math.ceil(length / 6);
  const out = [];
  for (let t = 0; t <= length; t += step) out.push(t);
  return out;
}
