// What a run's model was shown, by section.
import { html } from "../dom.js";
import { get } from "../api.js";
import { slicesOf, said } from "../transcript.js";
import { clean, exact, percent, tokens } from "../format.js";
import { Failure, Fold, Pre, useLoad } from "../parts.js";

export function PromptTab({ run, events }) {
  const { value: p, error, loading, again } = useLoad(() => get("/api/context", { run: run.runId }), [run.runId, events.length > 0]);
  if (run.profile.flow) return html`<p class="note">A flow calls no model.</p>`;
  if (!p) return html`<${Failure} error=${error} retry=${again} />${loading && html`<p class="dim pad">Loading…</p>`}`;
  const input = events[0]?.prompt ? said(events[0].prompt.input) : "";
  const slices = slicesOf(input);
  const parts = [{ id: "tools", title: `${p.tools.length} tools`, source: "", tokens: p.toolTokens, kind: "tools" },
    ...p.sections.map((s) => ({ ...s, kind: s.stable ? "stable" : "volatile" }))].filter((s) => s.tokens > 0);
  return html`<div class="section"><p>${exact(p.total)} tokens before the first message: ${tokens(p.toolTokens)} of tools, ${tokens(p.systemTokens)} of ${p.sections.length} sections.</p>
    <${Shares} parts=${parts} total=${p.total} prefix=${p.prefixTokens} />
    <p class="legend" aria-hidden="true"><span><i class="tools"></i>tools</span><span><i class="stable"></i>stable</span><span><i class="volatile"></i>changes</span></p></div>
    ${p.warnings.map((w) => html`<p class="note warn">${clean(w)}</p>`)}
    <div class="section sections"><h2>Sections</h2>
      <${Fold} summary=${html`<${Line} name="Tools" source="" kind="tools" tokens=${p.toolTokens} total=${p.total} />`}>${() => p.tools.map((t) => html`<${Fold} key=${t.name} summary=${html`<code>${clean(t.name)}</code>`}>${() => html`<p class="dim">${clean(t.description)}</p><${Pre} text=${JSON.stringify(t.schema, null, 2)} />`}</${Fold}>`)}</${Fold}>
      ${p.sections.map((s) => html`<${Fold} key=${s.id} summary=${html`<${Line} name=${s.title || s.id} source=${s.source} kind=${s.stable ? "stable" : "changes"} tokens=${s.tokens} total=${p.total} />`}>${() => html`<${Pre} text=${s.text} label=${s.title || s.id} />`}</${Fold}>`)}</div>
    <div class="section"><h2>First message</h2>
      ${slices.length > 0 && html`<h3 class="pad">Slices</h3><div class="sections">${slices.map((s, i) => html`<${Fold} key=${i} summary=${html`<${Line} name=${s.tag} source=${s.source} kind="slice" tokens=${s.tokens} total=${0} />`}>${() => html`<${Pre} text=${s.text} label=${s.source} />`}</${Fold}>`)}</div>`}
      ${input ? html`<${Fold} summary="The whole message">${() => html`<${Pre} text=${input} label="first message" />`}</${Fold}>` : html`<p class="note">Not assembled yet.</p>`}</div>
    ${p.omitted.length > 0 && html`<div class="section"><h2>Left out</h2><${Fold} summary=${`${p.omitted.length} pieces`}>${() => html`<table><tbody>${p.omitted.map((o, i) => html`<tr key=${i}><td>${clean(o.source)}</td><td class="dim">${clean(o.why)}</td></tr>`)}</tbody></table>`}</${Fold}></div>`}`;
}

function Line({ name, source, kind, tokens: n, total }) {
  return html`<span class="name">${clean(name)}<span>${clean(source)}</span></span><span class=${"tag" + (kind === "changes" ? " warn" : "")}>${kind}</span><span class="num">${exact(n)}</span><span class="num dim share-of">${total ? percent(n / total) : ""}</span>`;
}

function Shares({ parts, total, prefix }) {
  let x = 0;
  const label = parts.map((s) => `${s.title || s.id} ${percent(s.tokens / total)}`).join(", ");
  return html`<svg class="share" viewBox="0 0 1000 22" preserveAspectRatio="none" role="img" aria-label=${"Shares of the prompt: " + label}>
      ${parts.map((s) => { const w = (s.tokens / total) * 1000, at = x; x += w; return html`<rect key=${s.id} class=${s.kind} x=${at} y="0" width=${w} height="22"><title>${clean(s.title || s.id)}: ${exact(s.tokens)} tokens</title></rect>`; })}</svg>
    <svg class="prefixline" viewBox="0 0 1000 6" preserveAspectRatio="none" aria-hidden="true"><path d=${`M1 0V5H${Math.max((prefix / total) * 1000 - 1, 2)}V0`} /></svg>
    <p class="dim">Stays cached between calls: ${exact(prefix)} tokens, ${percent(prefix / total)}.</p>`;
}
