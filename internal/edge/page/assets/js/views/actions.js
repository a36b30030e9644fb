// What one can do with a run: cancel, steer, resume, run again with changes.
import { html, useRef, useState } from "../dom.js";
import { at, get, once, post } from "../api.js";
import { known, take } from "../runs.js";
import { load } from "../logs.js";
import { go } from "../router.js";
import { Dialog, Failure, useDo, useLoad, tell } from "../parts.js";
import { runName } from "../format.js";
import { inputOf, said } from "../transcript.js";

export function CancelDialog({ id, close }) {
  const [act, busy, error] = useDo();
  const [why, setWhy] = useState("");
  const cancel = async (e) => {
    e.preventDefault();
    const done = await act(() => post(at("runs", id, "cancel"), why ? { why } : {}));
    if (!done) return;
    done.forEach(take);
    tell(done.length ? `${done.length} cancelled` : "It had ended already");
    close();
  };
  return html`<${Dialog} title=${"Cancel " + runName(known(id))} close=${close}><form onSubmit=${cancel}>
    <p>The run ends, and so do all workers that it started.</p>
    <label class="field"><span>Why <i>optional</i></span><input value=${why} onInput=${(e) => setWhy(e.target.value)} autofocus /></label>
    <${Failure} error=${error} />
    <footer><button type="button" onClick=${close}>Leave it</button><button class="danger" disabled=${busy}>Cancel the run</button></footer></form></${Dialog}>`;
}

export function SteerDialog({ id, close }) {
  const [act, busy, error] = useDo();
  const [message, setMessage] = useState("");
  const key = useRef(once());
  const steer = async (e) => {
    e.preventDefault();
    const run = await act(() => post(at("runs", id, "steer"), { message }, key.current));
    if (!run) return;
    take(run);
    tell("The message is on its way");
    close();
  };
  return html`<${Dialog} title=${"Steer " + runName(known(id))} close=${close}><form onSubmit=${steer}>
    <label class="field"><span>Message</span><textarea rows="4" dir="auto" required value=${message} onInput=${(e) => setMessage(e.target.value)} autofocus></textarea><small>The worker reads it before its next step.</small></label>
    <${Failure} error=${error} />
    <footer><button type="button" onClick=${close}>Close</button><button class="primary" disabled=${busy || !message.trim()}>Send</button></footer></form></${Dialog}>`;
}

export async function resume(id) {
  const run = await post(at("runs", id, "resume"));
  take(run);
  load(id);
  return run;
}

// AgainDialog starts a new worker, with what the run had as its beginning.
export function AgainDialog({ run, events, close }) {
  const first = events[0]?.prompt ? said(events[0].prompt.input) : "";
  const definitions = useLoad(() => get("/api/definitions"), []);
  const [f, setF] = useState(() => ({
    task: run.task || first, context: run.context ?? "", label: run.label ?? "", model: run.profile.model, thinking: run.profile.thinking,
    agent: run.profile.definition ?? "", input: inputOf(first), timeoutSeconds: run.profile.timeoutMs ? String(Math.round(run.profile.timeoutMs / 1000)) : "",
  }));
  const [act, busy, error] = useDo();
  const key = useRef(once());
  const set = (name) => (e) => { key.current = once(); setF({ ...f, [name]: e.target.value }); };
  const start = async (e) => {
    e.preventDefault();
    const reply = await act(async () => {
      const body = { task: f.task, session: run.requesterKey || (run.trigger === "spawn" ? undefined : run.sessionKey) };
      for (const name of ["context", "label", "model", "thinking", "agent"]) if (f[name]) body[name] = f[name];
      if (f.timeoutSeconds) body.timeoutSeconds = Number(f.timeoutSeconds);
      if (f.input.trim()) {
        try { body.input = JSON.parse(f.input); } catch (err) { throw new Error("input is not JSON: " + err.message); }
      }
      return post("/api/runs", body, key.current);
    });
    if (!reply) return;
    close();
    go(["runs", reply.runId]);
  };
  const names = (definitions.value ?? []).filter((d) => d.kind !== "skill").map((d) => d.name);
  return html`<${Dialog} title="Run again, with changes" close=${close} wide><form onSubmit=${start}>
    <label class="field"><span>Task</span><textarea rows="5" dir="auto" required value=${f.task} onInput=${set("task")} autofocus></textarea></label>
    <label class="field"><span>Context <i>optional</i></span><textarea rows="2" dir="auto" value=${f.context} onInput=${set("context")}></textarea></label>
    <div class="fields">
      <label class="field"><span>Label <i>optional</i></span><input value=${f.label} onInput=${set("label")} /></label>
      <label class="field"><span>Definition <i>optional</i></span><input list="definitions" value=${f.agent} onInput=${set("agent")} /><datalist id="definitions">${names.map((n) => html`<option key=${n} value=${n} />`)}</datalist></label>
      <label class="field"><span>Model</span><input value=${f.model} onInput=${set("model")} spellcheck="false" /></label>
      <label class="field"><span>Thinking</span><select value=${f.thinking} onChange=${set("thinking")}>${["off", "low", "medium", "high"].map((t) => html`<option key=${t} value=${t} selected=${t === f.thinking}>${t}</option>`)}</select></label>
      <label class="field"><span>Timeout in seconds <i>optional</i></span><input type="number" min="0" value=${f.timeoutSeconds} onInput=${set("timeoutSeconds")} /></label></div>
    <label class="field"><span>Input, as JSON <i>for typed definitions</i></span><textarea class="mono" rows="3" spellcheck="false" value=${f.input} onInput=${set("input")}></textarea></label>
    <${Failure} error=${error} />
    <footer><button type="button" onClick=${close}>Close</button><button class="primary" disabled=${busy || !f.task.trim()}>Start</button></footer></form></${Dialog}>`;
}
