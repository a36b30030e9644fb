// What was spent, and what caches saved: a plot, and the same numbers beside it.
import { html } from "../dom.js";
import { get } from "../api.js";
import { refine } from "../router.js";
import { clean, cost, count, day, dollars, exact, percent, tokens } from "../format.js";
import { Empty, Failure, useLoad } from "../parts.js";
import { Bars } from "./bars.js";

const groups = { day: "Day", agent: "Agent", definition: "Definition", model: "Model", trigger: "Trigger" };
const spans = { 7: "7 days", 30: "30 days", 90: "90 days", all: "all time" };

export function Usage({ route }) {
  const by = groups[route.params.by] ? route.params.by : "day";
  const days = spans[route.params.days] ? route.params.days : "30";
  const since = days === "all" ? "" : day(Date.now() - (Number(days) - 1) * 86_400_000);
  const rows = useLoad(() => get("/api/usage", { by, since }), [by, since], 30_000);
  const sum = useLoad(() => get("/api/usage", { since }), [since], 30_000);
  const total = sum.value?.[0];
  const list = arranged(rows.value ?? [], by, since);
  return html`<div class="page wide"><header class="bar"><h1>Usage</h1>
      <div class="segments" role="group" aria-label="Group by">${Object.entries(groups).map(([v, t]) => html`<button key=${v} aria-pressed=${v === by} onClick=${() => refine({ by: v })}>${t}</button>`)}</div>
      <span class="grow"></span><label><span class="unseen">Time</span><select class="plain" value=${days} onChange=${(e) => refine({ days: e.target.value })}>${Object.entries(spans).map(([v, t]) => html`<option key=${v} value=${v} selected=${v === days}>${t}</option>`)}</select></label></header>
    <${Failure} error=${rows.error ?? sum.error} retry=${() => { rows.again(); sum.again(); }} />
    ${total && total.calls > 0 && html`<dl class="facts-grid sums">
      <div><dt>Cost</dt><dd>${total.usage.costUSD === null ? "–" : dollars(total.usage.costUSD)}</dd></div><div><dt>Model calls</dt><dd>${exact(total.calls)}</dd></div>
      <div><dt>Tokens in</dt><dd>${tokens(total.usage.input)}</dd></div><div><dt>Tokens out</dt><dd>${tokens(total.usage.output)}</dd></div>
      <div><dt>Read from cache</dt><dd>${percent(total.cacheReadShare)}</dd></div>
      ${total.unpriced > 0 && html`<div><dt>Without a known price</dt><dd>${count(total.unpriced, "call")}</dd></div>`}
      ${total.lost > 0 && html`<div><dt>Perhaps lost</dt><dd>${tokens(total.lost)} tokens</dd></div>`}</dl>`}
    ${rows.value && (total?.calls ?? 0) === 0 && html`<${Empty} title="Nothing was spent in this time." />`}
    ${list.length > 0 && (total?.calls ?? 0) > 0 && html`<${Plots} list=${list} by=${by} />`}</div>`;
}

// arranged puts days in their order, with those between, and all else by size.
function arranged(rows, by, since) {
  const named = rows.map((r) => ({ ...r, name: clean(r[by] || (by === "definition" ? "no definition" : "–")) }));
  if (by !== "day") return named.sort((a, b) => b.usage.input + b.usage.output - a.usage.input - a.usage.output);
  const known = new Map(named.map((r) => [r.name, r]));
  const first = since || [...known.keys()].sort()[0];
  if (!first) return [];
  const out = [];
  for (let t = new Date(first + "T12:00:00").getTime(); day(t) <= day(Date.now()) && out.length < 400; t += 86_400_000) {
    out.push(known.get(day(t)) ?? { name: day(t), calls: 0, usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, costUSD: 0 }, cacheReadShare: null });
  }
  return out;
}

// spent writes a cost, and does not call nothing what nobody knows.
const spent = (usd, row) => (row?.calls > 0 && row.usage.costUSD === null ? "?" : dollars(usd));

function Plots({ list, by }) {
  const over = by === "day";
  const shown = over ? list.toReversed().filter((r) => r.calls > 0) : list;
  return html`<div class="plots">
      <figure><figcaption>Tokens <span class="legend"><span><i class="cached"></i>in, from cache</span><span><i class="fresh"></i>in, new</span><span><i class="out"></i>out</span></span></figcaption>
        <${Bars} list=${list} upright=${over} write=${tokens} label=${`Tokens by ${by}`} parts=${[["cached", (r) => r.usage.cacheRead], ["fresh", (r) => r.usage.input - r.usage.cacheRead], ["out", (r) => r.usage.output]]} /></figure>
      <figure><figcaption>Cost</figcaption><${Bars} list=${list} upright=${over} write=${spent} label=${`Cost by ${by}`} parts=${[["cost", (r) => r.usage.costUSD ?? 0]]} /></figure></div>
    <div class="scroll section" tabindex="0" role="group" aria-label="Table of the usage"><table><caption class="unseen">Usage by ${by}</caption><thead><tr><th>${groups[by]}</th><th class="num">Calls</th><th class="num">Tokens in</th><th class="num">From cache</th><th class="num">Share</th><th class="num">Tokens out</th><th class="num">Cost</th></tr></thead>
      <tbody>${shown.map((r) => html`<tr key=${r.name}><td>${r.name}</td><td class="num">${exact(r.calls)}</td><td class="num">${exact(r.usage.input)}</td><td class="num">${exact(r.usage.cacheRead)}</td><td class="num">${percent(r.cacheReadShare)}</td><td class="num">${exact(r.usage.output)}</td><td class="num" title=${r.unpriced ? `${count(r.unpriced, "call")} without a known price` : undefined}>${cost(r.usage)}${r.unpriced && r.usage.costUSD !== null ? " + ?" : ""}</td></tr>`)}</tbody></table></div>`;
}
