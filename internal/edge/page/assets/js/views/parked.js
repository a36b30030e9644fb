// Deliveries that were given up until a person decides.
import { html, useEffect, useState } from "../dom.js";
import { at, get, post, remove } from "../api.js";
import { onNotice } from "../feed.js";
import { link } from "../router.js";
import { readStatus } from "../status.js";
import { useRun, refresh } from "../runs.js";
import { clean, runName, sessionName, short } from "../format.js";
import { Ago, Dialog, Empty, Failure, Fold, tell, useDo, useLoad } from "../parts.js";
import { Markdown } from "../markdown.js";

export function Parked() {
  const { value, error, loading, again } = useLoad(() => get("/api/parked"), [], 10_000);
  useEffect(() => onNotice((n) => { if (n.kind === "warning") again(); }), []);
  return html`<div class="page"><header class="bar"><h1>Parked</h1><span class="dim">results and replies that could not be delivered</span></header>
    <${Failure} error=${error} retry=${again} />
    ${loading && !value && !error && html`<p class="dim">Loading…</p>`}
    ${value?.length === 0 && html`<${Empty} title="Nothing is parked.">What can't be told to its requester, or sent to its chat, waits here for you.</${Empty}>`}
    <ul class="list">${(value ?? []).map((p) => html`<${Item} key=${p.id} item=${p} again=${again} />`)}</ul></div>`;
}

function Item({ item: p, again }) {
  const [act, busy, error] = useDo();
  const [asked, setAsked] = useState(false);
  const run = useRun(p.run);
  useEffect(() => { if (!run) refresh(p.run); }, [p.run]);
  const does = (work, words) => act(async () => { await work(); tell(words); readStatus(); again(); });
  return html`<li><div class="line"><b>${p.kind === "reply" ? "Reply" : "Result"} of <a class="down" href=${link(["runs", p.run])}>${run ? html`<bdi>${runName(run)}</bdi>` : html`<code>${short(p.run)}</code>`}</a></b>
      <span class="dim">for <a class="down" href=${link(["chat", p.session])}>${clean(sessionName(p.session))}</a> · parked <${Ago} at=${p.parkedAt} /> after ${p.attempts} ${p.attempts === 1 ? "try" : "tries"}</span><span class="grow"></span>
      <span class="actions"><button disabled=${busy} onClick=${() => does(() => post(at("parked", p.id, "retry")), "It is tried again")}>Try again</button>
        <button disabled=${busy} onClick=${() => setAsked(true)}>Dismiss…</button></span></div>
    <p class="failure"><bdi>${clean(p.error)}</bdi></p><${Failure} error=${error} />
    <${Fold} summary="What it says">${() => html`<${Markdown} text=${p.text} />`}</${Fold}>
    ${asked && html`<${Dialog} title=${p.kind === "reply" ? "Dismiss the reply" : "Dismiss the result"} close=${() => setAsked(false)}><form onSubmit=${(e) => { e.preventDefault(); does(() => remove(at("parked", p.id)), "Dismissed"); }}>
      <p>${clean(sessionName(p.session))} is not told of it any more. The run and what it said stay on record.</p><${Failure} error=${error} />
      <footer><button type="button" onClick=${() => setAsked(false)}>Keep it</button><button class="danger" disabled=${busy}>Dismiss</button></footer></form></${Dialog}>`}</li>`;
}
