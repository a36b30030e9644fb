// Searches an agent's memory.
import { html, useEffect, useRef, useState } from "../dom.js";
import { get } from "../api.js";
import { refine, link } from "../router.js";
import { useKeys } from "../keys.js";
import { bytes, clean, count, exact, sessionName } from "../format.js";
import { Ago, Empty, Failure, useLoad } from "../parts.js";

export function Memory({ route }) {
  const q = route.params.q ?? "";
  const [text, setText] = useState(q);
  const field = useRef(null);
  const hits = useLoad(() => (q ? get("/api/memory/search", { q, limit: 20 }) : Promise.resolve(null)), [q]);
  const status = useLoad(() => get("/api/memory/status"), []);
  useKeys({ "/": () => field.current.focus() });
  useEffect(() => setText(q), [q]);
  return html`<div class="page"><header class="bar"><h1>Memory</h1>
      <form class="search" role="search" onSubmit=${(e) => { e.preventDefault(); refine({ q: text.trim() }); }}>
        <input ref=${field} type="search" aria-label="Search the memory" placeholder="A question, or words" value=${text} onInput=${(e) => setText(e.target.value)} /><button>Search</button></form></header>
    <${Failure} error=${hits.error ?? status.error} retry=${() => { hits.again(); status.again(); }} />
    ${q && !hits.value && hits.loading && html`<p class="dim" role="status">Searching…</p>`}
    ${q && hits.value?.hits.length === 0 && html`<${Empty} title="Nothing in the memory answers this.">Other words may.</${Empty}>`}
    ${!q && status.value && html`<${Empty} title="What does the agent remember?">Its notes and what was said in its conversations are searched, with the lines they come from.</${Empty}>`}
    <ol class="list hits" aria-live="polite">${(hits.value?.hits ?? []).map((h, i) => html`<li key=${i}><div class="line"><b><${Place} hit=${h} /></b><span class="dim">${h.endLine > h.line ? `lines ${h.line}–${h.endLine}` : `line ${h.line}`}${h.at ? html` · <${Ago} at=${h.at} />` : ""}</span><span class="grow"></span><span class="dim num" title="score">${h.score.toFixed(2)}</span></div>
      <p class="snippet" dir="auto">${clean(h.snippet)}</p></li>`)}</ol>
    ${status.value && html`<footer class="section dim">${[status.value].flat().map((s) => html`<p key=${s.agentId}>${s.agentId}: ${count(s.files, "file")} and ${count(s.turns, "turn")} in ${count(s.chunks, "piece")}, ${bytes(s.bytes)}${s.updatedAt ? html`, indexed <${Ago} at=${s.updatedAt} />` : ""}${s.embedding ? `, vectors of ${s.embedding} for ${exact(s.embedded)}` : ""}</p>
      ${(s.problems ?? []).map((p) => html`<p class="note warn">${clean(p)}</p>`)}`)}</footer>`}</div>`;
}

function Place({ hit }) {
  const m = /^session:(.+)#(.+)$/.exec(hit.path);
  return m ? html`<a class="down" href=${link(["runs", m[2]])}>said in ${clean(sessionName(m[1]))}</a>` : html`<code>${clean(hit.path)}</code>`;
}
