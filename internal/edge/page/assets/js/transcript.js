// Folds a run's events into what a reader of the conversation sees. Plain
// functions of the record.

const envelope = /^<turn_context>[\s\S]*?<\/turn_context>\s*/;

// said is the text of a message without what the runtime put before it.
export function said(message) {
  return (message?.parts ?? []).filter((p) => p.kind === "text").map((p) => p.text).join("\n\n").replace(envelope, "");
}

// pieces lists what a run's events show, in order: {kind: thinking | text |
// call | input | note | end, …}. A call carries its result once there is one.
export function pieces(events) {
  const out = [], calls = new Map();
  for (const e of events) {
    switch (e.kind) {
      case "model":
        reply(e.model, out, calls, e);
        break;
      case "result": {
        const c = calls.get(e.result.callId);
        if (c) Object.assign(c, { result: e.result, until: e.at });
        break;
      }
      case "intent":
        for (const i of e.intent.calls) if (calls.get(i.callId)) calls.get(i.callId).since = e.at;
        break;
      case "input":
        out.push({ key: e.seq, kind: "input", text: said(e.input.message), repair: e.input.repair, reminder: e.input.reminder, results: resultsOnly(e.input.message) });
        break;
      case "compact":
        out.push({ key: e.seq, kind: "note", text: `Summed up what was said: ${e.compact.before} → ${e.compact.after} tokens`, more: e.compact.summary });
        break;
      case "handoff":
        out.push({ key: e.seq, kind: "note", text: `Attempt ${e.handoff.attempt} goes on from here with a hand-off`, more: e.handoff.text });
        break;
      case "resumed":
        out.push({ key: e.seq, kind: "note", text: e.resumed.planned ? "Went on after the gateway was started again" : "Taken over after its process had died" });
        break;
      case "end":
        out.push({ key: e.seq, kind: "end", ...e.end });
        break;
    }
  }
  return out;
}

const resultsOnly = (message) => (message?.parts ?? []).some((p) => p.kind === "tool_result");

function reply(model, out, calls, e) {
  model.message.parts.forEach((p, i) => {
    const key = `${e.seq}.${i}`;
    if (p.kind === "thinking" && p.text) out.push({ key, kind: "thinking", text: p.text });
    if (p.kind === "text" && p.text) out.push({ key, kind: "text", text: p.text });
    if (p.kind === "tool_call") {
      const c = { key, kind: "call", call: p.call, result: null };
      calls.set(p.call.id, c);
      out.push(c);
    }
  });
}

// spawned is the id of the run that a call of a spawning tool started.
export function spawned(call) {
  if (!call.result || !["sessions_spawn", "spawn_agent"].includes(call.call.name)) return "";
  try { return JSON.parse(call.result.content).runId ?? ""; } catch { return ""; }
}

// gist is a call's arguments in one line.
export function gist(call) {
  try {
    const args = JSON.parse(call.arguments);
    const first = args.command ?? args.pattern ?? args.query ?? args.path ?? args.label ?? args.task ?? args.name ?? args.url ?? args.message;
    if (typeof first === "string") return first;
    const text = Object.entries(args).map(([k, v]) => `${k}=${typeof v === "string" ? v : JSON.stringify(v)}`).join(" ");
    return text;
  } catch {
    return call.arguments;
  }
}

// slicesOf finds the pieces of context in a worker's first message.
export function slicesOf(text) {
  const found = [];
  for (const m of text.matchAll(/<([\w.-]+) path="([^"]*)">\n([\s\S]*?)\n?<\/\1>/g)) {
    found.push({ tag: m[1], source: unescaped(m[2]), text: m[3], tokens: Math.ceil(new TextEncoder().encode(m[3]).length / 4) });
  }
  return found;
}

// inputOf is the JSON input of a typed worker, "" without one.
export function inputOf(text) {
  const at = text.lastIndexOf("\n# INPUT\n\n");
  try { return at < 0 ? "" : JSON.stringify(JSON.parse(text.slice(at + 10)), null, 2); } catch { return ""; }
}

const marks = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&#34;": '"', "&#39;": "'", "&#10;": "\n", "&#13;": "\r" };
const unescaped = (s) => s.replace(/&(?:lt|gt|amp|#34|#39|#10|#13);/g, (m) => marks[m]);
