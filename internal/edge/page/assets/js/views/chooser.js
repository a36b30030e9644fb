// Which conversation is shown, and how another one begins.
import { html, useEffect, useState } from "../dom.js";
import { cell, useCell } from "../cell.js";
import { at, get, post } from "../api.js";
import { onResync } from "../feed.js";
import { go } from "../router.js";
import { clean, count, relative, sessionName } from "../format.js";
import { Icon } from "../icons.js";
import { Dialog, Failure, tell, useDo, useLoad } from "../parts.js";

const sessions = cell([]);

// talks says of a session that a person talks in it.
const talks = (s) => !/^agent:[^:]+:(subagent|spawn|cron):/.test(s.key);

export function Chooser({ session, turns, reload }) {
  const list = useCell(sessions);
  const [dialog, setDialog] = useState(false);
  const load = () => get("/api/sessions").then((s) => sessions.set(s.filter((x) => talks(x) && !x.deletedAt)), () => {});
  useEffect(() => { load(); return onResync(load); }, [session]);
  const keys = list.map((s) => s.key);
  const extra = ["agent:main:main", session].filter((k, i, a) => !keys.includes(k) && a.indexOf(k) === i);
  const options = [...extra.map((key) => ({ key })), ...list];
  return html`<label class="chooser"><span class="unseen">Conversation</span>
    <select value=${session} onMouseDown=${load} onFocus=${load} onChange=${(e) => go(["chat", e.target.value])}>
      ${options.map((s) => html`<option key=${s.key} value=${s.key} selected=${s.key === session}>${clean(sessionName(s.key))}${s.turns ? ` · ${count(s.turns, "turn")} · ${relative(s.updatedAt)}` : ""}</option>`)}</select></label>
    <button class="icon" aria-label="New conversation" title="New conversation" onClick=${() => setDialog(true)}><${Icon} name="plus" /></button>
    ${dialog && html`<${NewDialog} session=${session} turns=${turns} taken=${keys} reload=${reload} close=${() => setDialog(false)} />`}`;
}

// escaped is how a name stands in a session's key.
const escaped = (name) => name.replace(/[:%\u0000-\u0020\u007f]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0"));

function NewDialog({ session, turns, taken, reload, close }) {
  const models = useLoad(() => get("/v1/models"), []);
  const agents = (models.value?.data ?? []).map((m) => m.id.split("/")[1]).filter(Boolean);
  const [name, setName] = useState("");
  const [agent, setAgent] = useState(session.split(":")[1]);
  const [act, busy, error] = useDo();
  const key = `agent:${agent}:api:user:${escaped(name.trim())}`;
  const begin = (e) => {
    e.preventDefault();
    close();
    go(["chat", key]);
  };
  const over = () => act(async () => {
    await post(at("sessions", session, "reset"));
    tell("The conversation begins anew");
    close();
    reload();
  });
  return html`<${Dialog} title="New conversation" close=${close}><form onSubmit=${begin}>
    <p class="dim">It has a line of its own beside the others: what is said in one is not heard in the next.</p>
    <div class="fields"><label class="field"><span>Name</span><input required maxlength="60" value=${name} onInput=${(e) => setName(e.target.value)} autofocus /></label>
      ${agents.length > 1 && html`<label class="field"><span>Agent</span><select value=${agent} onChange=${(e) => setAgent(e.target.value)}>${agents.map((a) => html`<option key=${a} value=${a} selected=${a === agent}>${clean(a)}</option>`)}</select></label>`}</div>
    <${Failure} error=${error} />
    <footer>${turns > 0 && html`<button type="button" disabled=${busy} title="What was said is kept on record, and not shown to the model any more" onClick=${over}>Start ${clean(sessionName(session))} over</button>`}<span class="grow"></span>
      <button type="button" onClick=${close}>Close</button><button class="primary" disabled=${!name.trim()}>${taken.includes(key) ? "Open it" : "Begin"}</button></footer></form></${Dialog}>`;
}
