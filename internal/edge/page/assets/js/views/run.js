// One run: what it is, what it did, what it was sent.
import { html, useEffect, useState } from "../dom.js";
import { useCell } from "../cell.js";
import { link } from "../router.js";
import { useRun, refresh, loadTree, ended, known, childrenOf, changed } from "../runs.js";
import { useLog, useLive, load } from "../logs.js";
import { useKeys } from "../keys.js";
import { clean, cost, exact, full, moment, oneLine, percent, pretty, runName, sessionName, short, span, tokens } from "../format.js";
import { Elapsed, Failure, Fold, Pre, State, useDo } from "../parts.js";
import { Markdown } from "../markdown.js";
import { AgainDialog, CancelDialog, SteerDialog, resume } from "./actions.js";
import { Waterfall } from "./waterfall.js";
import { PromptTab } from "./prompt.js";
import { Artifacts } from "./artifacts.js";
import { Family } from "./family.js";

const tabs = { steps: "Steps", prompt: "Prompt", artifacts: "Artifacts", handoffs: "Hand-offs", family: "Tree" };

export function Run({ route }) {
  const [, name, tab = "steps"] = route.parts;
  const [id, setId] = useState(known(name) ? name : "");
  const [error, setError] = useState(null);
  // A link may hold the beginning of an id only.
  const find = () => refreshed(name).then((run) => { setId(run.runId); setError(null); loadTree(run).catch(() => {}); }, setError);
  useEffect(() => { find(); }, [name]);
  if (!id) return html`<div class="page"><header class="bar"><h1>Run ${short(name)}</h1></header><${Failure} error=${error} retry=${find} />${!error && html`<p class="dim">Loading…</p>`}</div>`;
  return html`<${One} key=${id} id=${id} tab=${tabs[tab] ? tab : "steps"} route=${route} />`;
}

async function refreshed(name) {
  await load(name);
  const run = known(name) ?? await refresh(name);
  if (!run) throw new Error(`there is no run ${name}`);
  return run;
}

function One({ id, tab, route }) {
  const run = useRun(id), log = useLog(id), live = useLive(id);
  useCell(changed);
  const [dialog, setDialog] = useState("");
  const [act, busy, error] = useDo();
  const close = () => setDialog("");
  const name = runName(run);
  useEffect(() => {
    document.title = `${name} · GoClaw`;
    return () => { document.title = "Runs · GoClaw"; };
  }, [name]);
  const over = ended(run), worker = run.trigger === "spawn";
  const forPerson = run.status === "waiting" && run.waitsFor === "person";
  const events = log?.events ?? [];
  const attempts = 1 + events.filter((e) => e.kind === "handoff").length;
  useKeys({
    x: () => { if (!over) setDialog("cancel"); },
    s: () => { if (!over && worker) setDialog("steer"); },
    a: () => setDialog("again"),
  });
  return html`<div class="page wide"><${Crumbs} run=${run} />
    <div class="runhead"><h1><bdi>${runName(run)}</bdi></h1><${State} run=${run} />
      ${run.recovery && html`<span class="tag warn">recovered</span>`}
      <span class="actions">
        ${forPerson && html`<button class="primary" disabled=${busy} onClick=${() => act(() => resume(id))}>Resume</button>`}
        ${!over && worker && html`<button onClick=${() => setDialog("steer")} title="s">Steer</button>`}
        <button onClick=${() => setDialog("again")} title="a">Run again…</button>
        ${!over && html`<button onClick=${() => setDialog("cancel")} title="x">Cancel…</button>`}
      </span></div>
    <${Failure} error=${error} /><${Facts} run=${run} attempts=${attempts} />
    <div class="lead">
      ${run.task && html`<div><h2 class="cap">${worker ? "Task" : "Message"}</h2><p class="task" dir="auto">${clean(run.task)}</p></div>`}
      ${run.context && html`<${Fold} summary="Context">${() => html`<${Pre} text=${run.context} />`}</${Fold}>`}
      ${run.error && html`<p class="failure"><b>${run.status}:</b> <bdi>${clean(run.error)}</bdi></p>`}
      ${run.recovery && html`<${Recovery} of=${run.recovery} />`}
      ${over ? run.result && html`<div><h2 class="cap">Result</h2><${Result} run=${run} /></div>` : html`<${Now} live=${live} />`}
    </div>
    <nav class="tabs" aria-label="Parts of the run">${Object.entries(tabs).map(([name, title]) => html`<a key=${name} href=${link(["runs", id, name])} aria-current=${name === tab ? "page" : undefined}>${title}${name === "handoffs" && attempts > 1 ? ` · ${attempts - 1}` : ""}${name === "family" && childrenOf(id).length ? ` · ${childrenOf(id).length}` : ""}</a>`)}</nav>
    <${Failure} error=${log?.error} retry=${() => load(id)} />
    ${tab === "steps" && html`<${Waterfall} run=${run} events=${events} chosen=${route.params.step} />`}
    ${tab === "prompt" && html`<${PromptTab} run=${run} events=${events} />`}
    ${tab === "artifacts" && html`<${Artifacts} run=${run} />`}
    ${tab === "handoffs" && html`<${Handoffs} events=${events} run=${run} />`}
    ${tab === "family" && html`<${Family} run=${run} />`}
    ${dialog === "cancel" && html`<${CancelDialog} id=${id} close=${close} />`}
    ${dialog === "steer" && html`<${SteerDialog} id=${id} close=${close} />`}
    ${dialog === "again" && html`<${AgainDialog} run=${run} events=${events} close=${close} />`}</div>`;
}

function Crumbs({ run }) {
  const above = [];
  for (let r = known(run.parent) ?? (run.root !== run.runId ? known(run.root) : null); r && above.length < 9; r = known(r.parent) ?? (r.root !== r.runId ? known(r.root) : null)) above.unshift(r);
  return html`<nav aria-label="Where this run belongs"><ol class="crumbs"><li><a href="#/runs">Runs</a></li>
    ${above.map((r) => html`<li key=${r.runId}><a href=${link(["runs", r.runId])}><bdi>${runName(r)}</bdi></a></li>`)}<li><code title=${run.runId}>${short(run.runId)}</code></li></ol></nav>`;
}

function Facts({ run, attempts }) {
  const u = run.usage, waited = (run.startedAt || Date.now()) - run.createdAt;
  const chat = !run.sessionKey.includes(":subagent:");
  const rows = [
    ["Model", clean(run.profile.model) + (run.profile.thinking && run.profile.thinking !== "off" ? `, thinking ${run.profile.thinking}` : "")],
    run.profile.definition && ["Definition", html`<a href=${link(["definitions", run.profile.definition])}>${clean(run.profile.definition)}</a>`],
    ["Started by", html`${run.trigger}${run.requesterKey ? html` of <a href=${link(["chat", run.requesterKey])}>${clean(sessionName(run.requesterKey))}</a>` : chat ? html` in <a href=${link(["chat", run.sessionKey])}>${clean(sessionName(run.sessionKey))}</a>` : ""}`],
    ["Accepted", html`<span title=${full(run.createdAt)}>${moment(run.createdAt)}</span>${waited > 100 ? `, queued ${span(waited)}` : ""}`],
    ["Elapsed", html`<${Elapsed} run=${run} />${run.profile.timeoutMs ? ` of ${span(run.profile.timeoutMs)}` : ""}`],
    ["Tokens", html`<span title=${`${exact(u.input)} in, ${exact(u.output)} out`}>${tokens(u.input)} in, ${tokens(u.output)} out</span>`],
    ["From cache", u.input ? percent(u.cacheRead / u.input) : "–"],
    ["Cost", cost(u)],
    attempts > 1 && ["Attempts", attempts],
    run.position > 0 && ["In the queue", `${run.position}.`],
    run.cancelWhy && ["Cancelled because", html`<bdi>${clean(run.cancelWhy)}</bdi>`],
  ].filter(Boolean);
  return html`<dl class="facts-grid">${rows.map(([k, v]) => html`<div key=${k}><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>`;
}

function Recovery({ of }) {
  return html`<p class="note warn">${of.planned ? "Went on after a planned stop" : "Taken over after its process had died"}${of.times > 1 ? `, ${of.times} times` : ""}, at step ${of.step}.
    ${of.uncertain?.length ? ` Nobody knows what became of: ${clean(of.uncertain.join(", "))}.` : ""}</p>`;
}

function Result({ run }) {
  if (run.profile.answer === "json") return html`<${Pre} text=${pretty(run.result)} label="result" />`;
  return run.result.length > 4000 ? html`<${Fold} summary=${oneLine(clean(run.result), 140)}>${() => html`<${Markdown} text=${run.result} />`}</${Fold}>` : html`<${Markdown} text=${run.result} />`;
}

function Now({ live }) {
  if (!live?.text && !live?.thinking && !live?.retry) return null;
  return html`<div aria-busy="true">${live.retry && html`<p class="note warn">${clean(live.retry)}</p>`}
    ${live.text ? html`<h2 class="cap">Writing</h2><${Markdown} text=${live.text} />` : live.thinking && html`<p class="thinking">${clean(live.thinking.slice(-400))}</p>`}</div>`;
}

function Handoffs({ events, run }) {
  const list = events.filter((e) => e.kind === "handoff");
  if (list.length === 0) return html`<p class="note">Nothing was handed over: one attempt did it all.</p>`;
  return html`<ol class="list">${list.map((e) => html`<li key=${e.seq}><p class="line"><b>Attempt ${e.handoff.attempt}</b>
      <span class="dim">began ${moment(e.at)} after ${e.handoff.steps === 1 ? "1 reply" : `${e.handoff.steps} replies`}, at ${tokens(e.handoff.before)} tokens of context; written by the ${e.handoff.by}</span>
      ${e.handoff.artifact && html`<a class="tag" href=${`/api/artifacts/${run.runId}/${e.handoff.artifact.split("/").map(encodeURIComponent).join("/")}`} download>${clean(e.handoff.artifact)}</a>`}</p>
    <${Fold} summary="What was passed on">${() => html`<${Markdown} text=${e.handoff.text} />`}</${Fold}></li>`)}</ol>`;
}
