// What a run, and the workers of its tree, left for others.
import { html } from "../dom.js";
import { get } from "../api.js";
import { link } from "../router.js";
import { bytes, clean, full, moment, short } from "../format.js";
import { Failure, useLoad } from "../parts.js";

export const artifactURL = (a) => `/api/artifacts/${a.run}/${a.name.split("/").map(encodeURIComponent).join("/")}`;

export function Artifacts({ run }) {
  const own = useLoad(() => get("/api/artifacts", { run: run.runId }), [run.runId, run.status]);
  const tree = useLoad(() => get("/api/artifacts", { root: run.root || run.runId, limit: 200 }), [run.runId, run.status]);
  const others = (tree.value ?? []).filter((a) => a.run !== run.runId);
  return html`<${Failure} error=${own.error ?? tree.error} retry=${() => { own.again(); tree.again(); }} />
    ${own.value && (own.value.length ? html`<${Table} list=${own.value} />` : html`<p class="note">This run left no artifact.</p>`)}
    ${others.length > 0 && html`<div class="section"><h2>Of other workers of the tree</h2><${Table} list=${others} runs /></div>`}`;
}

function Table({ list, runs }) {
  return html`<div class="scroll"><table><thead><tr><th>Name</th>${runs && html`<th>Run</th>`}<th>Type</th><th class="num">Size</th><th class="num">Left</th></tr></thead>
    <tbody>${list.map((a) => html`<tr key=${a.handle}><td><a class="down" href=${artifactURL(a)} download>${clean(a.name)}</a></td>${runs && html`<td><a href=${link(["runs", a.run])}><code>${short(a.run)}</code></a></td>`}
      <td class="dim">${clean(a.mediaType)}</td><td class="num">${bytes(a.size)}</td><td class="num" title=${full(a.createdAt)}>${moment(a.createdAt)}</td></tr>`)}</tbody></table></div>`;
}
