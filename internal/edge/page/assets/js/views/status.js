// The gateway itself, and the switch that stops all models.
import { html, useEffect, useState } from "../dom.js";
import { useCell } from "../cell.js";
import { signOut } from "../api.js";
import { link } from "../router.js";
import { pause, readStatus, status, statusError, unpause } from "../status.js";
import { clean, full, moment, runName } from "../format.js";
import { Ago, Failure, tell, useDo } from "../parts.js";

export function Status() {
  const s = useCell(status), error = useCell(statusError);
  const [leave, leaving, stuck] = useDo();
  useEffect(() => readStatus(), []);
  return html`<div class="page"><header class="bar"><h1>Status</h1></header><${Failure} error=${error} retry=${() => readStatus()} />
    ${s && html`<${Switch} s=${s} />
    ${(s.warnings ?? []).length > 0 && html`<section class="section" aria-label="Warnings"><h2>Warnings</h2>${s.warnings.map((w, i) => html`<p key=${i} class="note warn"><bdi>${clean(w)}</bdi></p>`)}</section>`}
    <section class="section"><h2>Gateway</h2><dl class="pairs">
      ${[["Version", s.version], ["Running since", html`<span title=${full(s.startedAt)}>${moment(s.startedAt)}</span>, <${Ago} at=${s.startedAt} />`], ["Model", s.model + (s.demo ? " (demo: canned answers)" : "")], ["Providers", s.providers.join(", ")],
        ["Runs", html`<a class="down" href=${link(["runs"], { show: "active" })}>${s.active} under way, ${s.queued} queued</a>`], ["Parked", html`<a class="down" href="#/parked">${s.parked}</a>`],
        ["Store", s.store], ["Sandbox of exec", s.sandbox], ["Home", s.home], ["Workspace", s.workspace]].map(([k, v]) => html`<div key=${k}><dt>${k}</dt><dd>${typeof v === "string" ? clean(v) : v}</dd></div>`)}</dl></section>
    <section class="section"><h2>This browser</h2><p class="line">Signed in by a link of <code>goclaw page</code>. <button disabled=${leaving} onClick=${() => leave(signOut)}>Sign out</button></p><${Failure} error=${stuck} /></section>
    ${(s.recovered ?? []).length > 0 && html`<section class="section"><h2>Taken over since it started</h2><ul class="list">${s.recovered.map((r) => html`<li key=${r.runId}><a class="down" href=${link(["runs", r.runId])}>${runName(r)}</a></li>`)}</ul></section>`}`}</div>`;
}

function Switch({ s }) {
  const [why, setWhy] = useState("");
  const [act, busy, error] = useDo();
  const on = s.paused?.at > 0;
  const flip = async (e) => {
    e.preventDefault();
    await act(() => (on ? unpause() : pause(why.trim())));
    tell(on ? "Models are called again" : "Paused: no model is called");
    setWhy("");
  };
  return html`<form class=${"switch" + (on ? " on" : "")} onSubmit=${flip} aria-label="Kill switch"><div><h2>${on ? "Paused" : "Kill switch"}</h2>
      <p class="dim">${on ? html`Since ${moment(s.paused.at)}${s.paused.why ? html`: <bdi>${clean(s.paused.why)}</bdi>` : ""}. Runs wait where they are.` : "Stops every model call at once. Runs wait where they are, and go on when it is lifted."}</p></div>
    ${!on && html`<input aria-label="Why" placeholder="Why (optional)" value=${why} onInput=${(e) => setWhy(e.target.value)} />`}
    <button class=${on ? "primary" : "danger"} disabled=${busy}>${on ? "Resume" : "Pause everything"}</button><${Failure} error=${error} /></form>`;
}
