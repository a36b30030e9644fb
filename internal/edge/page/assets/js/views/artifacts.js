// What a run, and the workers of its tree, left for others.
import { html, useState } from "../dom.js";
import { get, text } from "../api.js";
import { link } from "../router.js";
import { bytes, clean, full, moment, pretty, short } from "../format.js";
import { Failure, Pre, useLoad } from "../parts.js";
import { Markdown } from "../markdown.js";

export const artifactURL = (a) => `/api/artifacts/${a.run}/${a.name.split("/").map(encodeURIComponent).join("/")}`;

export function Artifacts({ run }) {
  const own = useLoad(() => get("/api/artifacts", { run: run.runId }), [run.runId, run.status]);
  const tree = useLoad(() => get("/api/artifacts", { root: run.root || run.runId, limit: 200 }), [run.runId, run.status]);
  const others = (tree.value ?? []).filter((a) => a.run !== run.runId);
  return html`<${Failure} error=${own.error ?? tree.error} retry=${() => { own.again(); tree.again(); }} />
    ${own.loading && !own.value && html`<p class="dim pad">Loading…</p>`}
    ${own.value && (own.value.length ? html`<${Table} list=${own.value} />` : html`<p class="note">This run left no artifact.</p>`)}
    ${others.length > 0 && html`<div class="section"><h2>Of other runs of the tree</h2><${Table} list=${others} runs /></div>`}`;
}

function Table({ list, runs }) {
  return html`<div class="scroll"><table class="artifacts"><thead><tr><th>Name</th>${runs && html`<th>Run</th>`}<th>Type</th><th class="num">Size</th><th class="num">Written</th><th><span class="unseen">Download</span></th></tr></thead>
    <tbody>${list.map((a) => html`<${One} key=${a.handle} artifact=${a} runs=${runs} />`)}</tbody></table></div>`;
}

function One({ artifact: a, runs }) {
  const [open, setOpen] = useState(false);
  return html`<tr><td class=${open ? "open" : ""}><button class="foldhead" aria-expanded=${open} onClick=${() => setOpen(!open)}><span class="chevron" aria-hidden="true"></span><bdi>${clean(a.name)}</bdi></button></td>
      ${runs && html`<td><a class="down" href=${link(["runs", a.run])}><code>${short(a.run)}</code></a></td>`}
      <td class="dim">${clean(a.mediaType)}</td><td class="num">${bytes(a.size)}</td><td class="num" title=${full(a.createdAt)}>${moment(a.createdAt)}</td>
      <td class="num"><a class="down" href=${artifactURL(a)} download aria-label=${`Download ${a.name}`}>Download</a></td></tr>
    ${open && html`<tr><td colspan=${runs ? 6 : 5}><${Content} artifact=${a} /></td></tr>`}`;
}

const readable = /^text\/|[/+](?:json|xml|yaml|javascript)\b/;

function Content({ artifact: a }) {
  const can = readable.test(a.mediaType);
  const { value, error, again } = useLoad(() => (can ? text(artifactURL(a)) : Promise.resolve("")), [a.handle, a.sha256]);
  if (!can) return html`<p class="note">It is no text: download it.</p>`;
  if (value === undefined) return html`<${Failure} error=${error} retry=${again} />${!error && html`<p class="dim">Loading…</p>`}`;
  if (a.mediaType.startsWith("text/markdown")) return html`<${Markdown} text=${value} />`;
  return html`<${Pre} text=${a.mediaType.includes("json") ? pretty(value) : value} label="artifact" />`;
}
