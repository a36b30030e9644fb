// What agents do by the clock.
import { html, useEffect, useState } from "../dom.js";
import { at, get, post, remove } from "../api.js";
import { onNotice } from "../feed.js";
import { go, link } from "../router.js";
import { inWords } from "../schedule.js";
import { clean, cost, full, moment, oneLine, sessionName, short, span } from "../format.js";
import { Ago, Dialog, Empty, Failure, Fold, State, tell, useDo, useLoad } from "../parts.js";
import { JobDialog } from "./cronform.js";

export function Cron({ route }) {
  const { value, error, loading, again } = useLoad(() => get("/api/cron"), [], 10_000);
  const [dialog, setDialog] = useState(null);
  useEffect(() => onNotice((n) => { if (n.kind === "run" && n.run?.sessionKey.includes(":cron:")) again(); }), []);
  const jobs = [...(value ?? [])].sort((a, b) => Number(b.enabled) - Number(a.enabled) || (a.nextAt || Infinity) - (b.nextAt || Infinity));
  const close = () => { setDialog(null); again(); };
  return html`<div class="page"><header class="bar"><h1>Cron</h1><span class="grow"></span>${value && html`<button onClick=${() => setDialog({ kind: "edit" })}>Add a job</button>`}</header>
    <${Failure} error=${error} retry=${again} />
    ${loading && !value && !error && html`<p class="dim">Loading…</p>`}
    ${value && jobs.length === 0 && html`<${Empty} title="Nothing is done by the clock.">Add a job here, with <code>goclaw cron add</code>, or ask the agent to do something later.</${Empty}>`}
    <ul class="list">${jobs.map((j) => html`<${Job} key=${j.id} job=${j} again=${again} dialog=${setDialog} open=${j.id === route.parts[1]} />`)}</ul>
    ${dialog?.kind === "edit" && html`<${JobDialog} job=${dialog.job} close=${close} />`}
    ${dialog?.kind === "remove" && html`<${RemoveDialog} job=${dialog.job} close=${close} />`}</div>`;
}

function Job({ job: j, again, dialog, open }) {
  const [act, busy, error] = useDo();
  const does = (what, words) => act(async () => { await post(at("cron", j.id, what)); tell(words); again(); });
  const last = j.last;
  const over = !j.enabled && j.schedule.kind === "at" && last?.at >= j.schedule.at; // it was due once
  return html`<li class=${"job" + (j.enabled ? "" : " off")}><div class="line"><b><bdi>${clean(j.name || j.id)}</bdi></b>
      ${j.heartbeat && html`<span class="tag good">heartbeat</span>`}${j.agentId && j.agentId !== "main" && html`<span class="tag" title="The agent whose job it is">${clean(j.agentId)}</span>`}${!j.enabled && html`<span class="tag">${over ? "over" : "paused"}</span>`}${j.failures > 0 && html`<span class="tag bad">failed ${j.failures === 1 ? "once" : `${j.failures} times in a row`}</span>`}
      ${j.running && html`<a href=${link(["runs", j.running])}><${State} run=${{ status: "running" }} /></a>`}<span class="grow"></span>
      <span class="actions"><button disabled=${busy} onClick=${() => does("run", "Started")}>Run now</button>
        ${!j.heartbeat && html`<button disabled=${busy} onClick=${() => does(j.enabled ? "pause" : "resume", j.enabled ? "Paused" : "Resumed")}>${j.enabled ? "Pause" : "Resume"}</button>
          <button disabled=${busy} onClick=${() => dialog({ kind: "edit", job: j })}>Edit…</button><button disabled=${busy} onClick=${() => dialog({ kind: "remove", job: j })}>Remove…</button>`}</span></div>
    <p>${inWords(j.schedule)}${j.nextAt && j.enabled ? html` <span class="dim">· next <${Ago} at=${j.nextAt} /></span>` : ""}</p>
    <p class="dim" dir="auto">${clean(oneLine(j.message, 200))}</p>
    ${last && html`<p class="dim">Last <${Ago} at=${last.at || last.due} />${last.status ? html`: ${last.runId ? html`<a class="plain" href=${link(["runs", last.runId])}>${last.status}</a>` : last.status}` : ""}${last.finishedAt && last.startedAt ? ` in ${span(last.finishedAt - last.startedAt)}` : ""}</p>`}
    ${last?.skipped && html`<p class="dim">Skipped: <bdi>${clean(last.skipped)}</bdi></p>`}
    ${j.lastError && html`<p class="failure"><bdi>${clean(j.lastError)}</bdi></p>`}
    <${Failure} error=${error} />
    <${Fold} summary="Firings" open=${open}>${() => html`<${Firings} job=${j} />`}</${Fold}></li>`;
}

function Firings({ job: j }) {
  const { value, error, loading, again } = useLoad(() => get(at("cron", j.id, "history")), [j.id, j.revision, j.running, j.last?.status]);
  return html`${j.upcoming?.length > 0 && html`<p>Next: ${j.upcoming.map((t, i) => html`<time key=${t} dateTime=${new Date(t).toISOString()} title=${full(t)}>${i ? ", " : ""}${moment(t)}</time>`)}</p>`}
    <dl class="pairs"><div><dt>Target</dt><dd>${j.target !== "isolated" ? `a turn of ${clean(sessionName(j.session))}` : `a run of its own${j.session ? `; ${clean(sessionName(j.session))} is told` : ", told to nobody"}`}</dd></div>
      ${j.model && html`<div><dt>Model</dt><dd>${clean(j.model)}</dd></div>`}${j.agent && html`<div><dt>Definition</dt><dd>${clean(j.agent)}</dd></div>`}
      <div><dt>Missed</dt><dd>${j.missed === "skip" ? "are skipped" : "are made up for once"}</dd></div></dl>
    <${Failure} error=${error} retry=${again} />
    ${loading && !value && html`<p class="dim">Loading…</p>`}
    ${value && (value.length === 0 ? html`<p class="note">It has not fired yet.</p>` : html`<div class="scroll"><table><thead><tr><th>Due</th><th>What became of it</th><th>Run</th><th class="num">Took</th><th class="num">Cost</th></tr></thead>
      <tbody>${value.map((f, i) => html`<tr key=${i}><td title=${full(f.due)}>${moment(f.due)}${f.manual ? " by hand" : ""}</td>
        <td>${f.skipped ? html`<span class="dim">skipped: ${clean(f.skipped)}</span>` : html`<${State} run=${{ status: f.status ?? "queued" }} />`}${f.missed > 0 ? ` (for ${f.missed + 1} due times)` : ""}${f.error && html`<p class="failure"><bdi>${clean(f.error)}</bdi></p>`}</td>
        <td>${f.runId && html`<a class="down" href=${link(["runs", f.runId])}><code>${short(f.runId)}</code></a>`}</td>
        <td class="num">${f.finishedAt && f.startedAt ? span(f.finishedAt - f.startedAt) : "–"}</td><td class="num">${cost(f.usage)}</td></tr>`)}</tbody></table></div>`)}`;
}

function RemoveDialog({ job, close }) {
  const [act, busy, error] = useDo();
  const gone = async (e) => {
    e.preventDefault();
    await act(async () => { await remove(at("cron", job.id)); tell("Removed"); go(["cron"]); close(); });
  };
  return html`<${Dialog} title=${"Remove " + clean(job.name || job.id)} close=${close}><form onSubmit=${gone}>
    <p>It will not be due again. The runs that it had stay on record.</p><${Failure} error=${error} />
    <footer><button type="button" onClick=${close}>Keep it</button><button class="danger" disabled=${busy}>Remove the job</button></footer></form></${Dialog}>`;
}
