// The form of a job: a new one, or changes of one.
import { html, useRef, useState } from "../dom.js";
import { at, once, patch, post } from "../api.js";
import { expression, parseEvery, writeEvery } from "../schedule.js";
import { Dialog, Failure, tell, useDo } from "../parts.js";

const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

// local is what a field of date and time takes.
function local(ms) {
  const d = new Date(ms);
  return new Date(ms - d.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function JobDialog({ job, close }) {
  const s = job?.schedule ?? {};
  const [f, setF] = useState(() => ({
    name: job?.name ?? "", message: job?.message ?? "", kind: s.kind ?? "cron", expr: s.expr ?? "0 9 * * 1-5", timezone: s.timezone ?? zone(),
    every: writeEvery(s.everyMs) || "30m", at: local(s.at || Date.now() + 3_600_000), target: job?.target ?? "isolated", session: job ? job.session : "agent:main:main",
    model: job?.model ?? "", thinking: job?.thinking ?? "", agent: job?.agent ?? "", timeoutSeconds: job?.timeoutSeconds ?? "", missed: job?.missed ?? "once",
  }));
  const [act, busy, error] = useDo();
  const key = useRef(once());
  const set = (name) => (e) => { key.current = once(); setF({ ...f, [name]: e.target.value }); };
  const save = async (e) => {
    e.preventDefault();
    await act(async () => {
      const body = { name: f.name, message: f.message, schedule: schedule(f), target: f.target, session: f.session, missed: f.missed, model: f.model, thinking: f.thinking, agent: f.agent };
      if (f.timeoutSeconds !== "") body.timeoutSeconds = Number(f.timeoutSeconds);
      for (const k of Object.keys(body)) if (body[k] === "" && !job?.[k]) delete body[k];
      if (job) await patch(at("cron", job.id), body);
      else await post("/api/cron", body, key.current);
      tell("Saved");
      close();
    });
  };
  const option = (name, value, text) => html`<option value=${value} selected=${f[name] === value}>${text}</option>`;
  return html`<${Dialog} title=${job ? "Edit " + job.name : "Add a job"} close=${close} wide><form onSubmit=${save}>
    <div class="fields"><label class="field"><span>Name</span><input required value=${f.name} onInput=${set("name")} autofocus /></label>
      <label class="field"><span>When</span><select value=${f.kind} onChange=${set("kind")}>${option("kind", "cron", "by an expression")}${option("kind", "every", "in equal steps")}${option("kind", "at", "once")}</select></label>
      ${f.kind === "cron" && html`<label class="field"><span>Expression</span><input class="mono" required value=${f.expr} onInput=${set("expr")} spellcheck="false" /><small>${expression(f.expr)}</small></label>
        <label class="field"><span>Time zone</span><input value=${f.timezone} onInput=${set("timezone")} spellcheck="false" /></label>`}
      ${f.kind === "every" && html`<label class="field"><span>Every</span><input required value=${f.every} onInput=${set("every")} /><small>such as 30m, 2h or 1d</small></label>`}
      ${f.kind === "at" && html`<label class="field"><span>At</span><input type="datetime-local" required value=${f.at} onInput=${set("at")} /></label>`}</div>
    <label class="field"><span>What to do</span><textarea rows="4" dir="auto" required value=${f.message} onInput=${set("message")}></textarea></label>
    <div class="fields"><label class="field"><span>As</span><select value=${f.target} onChange=${set("target")}>${option("target", "isolated", "a run of its own")}${option("target", "main", "a turn of the session")}</select></label>
      <label class="field"><span>Session ${f.target === "isolated" ? html`<i>that is told</i>` : ""}</span><input value=${f.session} onInput=${set("session")} spellcheck="false" /></label>
      <label class="field"><span>Missed due times</span><select value=${f.missed} onChange=${set("missed")}>${option("missed", "once", "make up for once")}${option("missed", "skip", "skip")}</select></label></div>
    <div class="fields"><label class="field"><span>Model <i>optional</i></span><input value=${f.model} onInput=${set("model")} spellcheck="false" /></label>
      <label class="field"><span>Thinking <i>optional</i></span><select value=${f.thinking} onChange=${set("thinking")}>${["", "off", "low", "medium", "high"].map((t) => option("thinking", t, t || "as the agent"))}</select></label>
      ${f.target === "isolated" && html`<label class="field"><span>Definition <i>optional</i></span><input value=${f.agent} onInput=${set("agent")} /></label>
        <label class="field"><span>Timeout in seconds <i>optional</i></span><input type="number" min="0" value=${f.timeoutSeconds} onInput=${set("timeoutSeconds")} /></label>`}</div>
    <${Failure} error=${error} />
    <footer><button type="button" onClick=${close}>Close</button><button class="primary" disabled=${busy}>Save</button></footer></form></${Dialog}>`;
}

function schedule(f) {
  if (f.kind === "cron") return { kind: "cron", expr: f.expr.trim(), ...(f.timezone ? { timezone: f.timezone.trim() } : {}) };
  if (f.kind === "at") return { kind: "at", at: new Date(f.at).getTime() };
  const everyMs = parseEvery(f.every);
  if (!everyMs) throw new Error(`"${f.every}" is no step: write 90s, 30m, 2h or 1d`);
  return { kind: "every", everyMs };
}
