// Definitions, and what is wrong with them: read again while one looks.
import { html } from "../dom.js";
import { at, get } from "../api.js";
import { link } from "../router.js";
import { clean } from "../format.js";
import { Empty, Failure, Fold, Pre, useLoad } from "../parts.js";

const every = 2000;
const order = { rejected: 0, degraded: 1, warning: 2, ok: 3 };
const marks = { rejected: "bad", degraded: "bad", warning: "warn", ok: "good" };

export function Definitions({ route }) {
  const { value, error, loading, again } = useLoad(() => get("/api/definitions"), [], every);
  const list = [...(value ?? [])].sort((a, b) => (order[a.status] ?? 3) - (order[b.status] ?? 3) || a.name.localeCompare(b.name));
  const broken = list.filter((d) => d.problems?.length).length;
  return html`<div class="page"><header class="bar"><h1>Definitions</h1><span class="dim">${value ? `${list.length}${broken ? `, ${broken} with problems` : ""}` : ""}</span></header>
    <${Failure} error=${error} retry=${again} />
    ${loading && !value && !error && html`<p class="dim">Loading…</p>`}
    ${value && list.length === 0 && html`<${Empty} title="No definition.">A markdown file in <code>.goclaw/agents</code> of the workspace makes one: <code>goclaw agents new NAME</code>.</${Empty}>`}
    <ul class="list" aria-live="polite">${list.map((d) => html`<${One} key=${d.path + d.name} d=${d} open=${d.name === route.parts[1]} />`)}</ul></div>`;
}

function One({ d, open }) {
  const facts = [["Model", d.model], ["Scope", d.scope], ["Visibility", d.visibility], ["Overrides", [d.overrides].flat().filter(Boolean).join(", ")], ["Tools", [d.tools].flat().filter(Boolean).join(", ")], ["Denied", [d.denied].flat().filter(Boolean).join(", ")], ["File", d.path]].filter(([, v]) => v);
  return html`<li class="definition" id=${"definition-" + d.name}><div class="line"><b>${clean(d.name)}</b><span class=${"tag " + (marks[d.status] ?? "")}>${d.status}</span>
      ${d.active === false && html`<span class="tag" title="A nearer file has its name">overridden</span>`}${d.trusted === false && html`<span class="tag warn" title="Trust the workspace with: goclaw trust">not trusted</span>`}${d.scope && html`<span class="dim">${clean(d.scope)}</span>`}${d.model && html`<span class="dim">${clean(d.model)}</span>`}</div>
    ${d.description && html`<p class="dim" dir="auto">${clean(d.description)}</p>`}
    ${d.problems?.length > 0 && html`<ul class=${d.status === "warning" || d.status === "ok" ? "problems mild" : "problems"} aria-label=${"Problems of " + d.name}>${d.problems.map((p, i) => html`<li key=${i}><code>${clean(short(d.path))}${p.line ? `:${p.line}` : ""}${p.line && p.col ? `:${p.col}` : ""}</code>
      <span><bdi>${clean(p.message)}</bdi>${p.hint && html`<small>${clean(p.hint)}</small>`}</span></li>`)}</ul>`}
    <${Fold} open=${open} summary="Details">${() => html`<dl class="pairs">${facts.map(([k, v]) => html`<div key=${k}><dt>${k}</dt><dd>${clean(String(v))}</dd></div>`)}</dl>
      <${Text} name=${d.name} />
      <p class="text"><a href=${link(["runs"], { definition: d.name })}>Runs of it</a></p>`}</${Fold}></li>`;
}

function Text({ name }) {
  const { value } = useLoad(() => get(at("definitions", name)), [name]);
  return value?.body ? html`<${Fold} summary="Instructions">${() => html`<${Pre} text=${value.body} label="instructions" />`}</${Fold}>` : null;
}

// short is a path without the folders that all share.
const short = (path) => (path ?? "").split("/").slice(-2).join("/");
