// A run's steps over time. Every step opens to its content.
import { html, memo, useMemo, useState } from "../dom.js";
import { text } from "../api.js";
import { refine } from "../router.js";
import { rows, extent, ticks } from "../steps.js";
import { said } from "../transcript.js";
import { clean, clockSeconds, cost, exact, oneLine, pretty, span, tokens } from "../format.js";
import { Failure, Fold, Pre, useLoad, useNow } from "../parts.js";
import { Markdown } from "../markdown.js";
import { ended } from "../runs.js";

const manySteps = 300;

export function Waterfall({ run, events, chosen }) {
  const [open, setOpen] = useState(() => new Set(chosen ? [chosen] : []));
  const [all, setAll] = useState(false);
  const list = useMemo(() => rows(run, events), [run.status, run.startedAt, events]);
  const busy = !ended(run), now = useNow();
  const { from, to } = extent(list, busy ? now : run.finishedAt || now);
  const length = to - from, grid = ticks(length);
  const shown = all ? list : list.slice(0, manySteps);
  const toggle = (key) => {
    setOpen((keys) => {
      const next = new Set(keys);
      if (!next.delete(key)) next.add(key);
      return next;
    });
    refine({ step: open.has(key) ? "" : key });
  };
  if (list.length === 0) return html`<p class="note">No step yet.</p>`;
  return html`<div class="fall"><div class="axis" aria-hidden="true"><span></span><div class="scale">${grid.map((t, i) => html`<${Tick} key=${t} at=${t / length} text=${i === 0 ? "0" : span(t)} />`)}</div><span></span></div>
    <ol aria-label="Steps">${shown.map((r) => html`<${Step} key=${r.key} row=${r} from=${from} length=${length} end=${r.to || to} open=${open.has(String(r.key))} toggle=${toggle} grid=${grid} run=${run.runId} />`)}</ol>
    ${shown.length < list.length && html`<p class="pad"><button class="quiet" onClick=${() => setAll(true)}>Show all ${list.length} steps</button></p>`}
    <p class="legend" aria-hidden="true"><span><i class="model"></i>model</span><span><i class="tool"></i>tool</span><span><i class="wait"></i>waits</span><span><i class="hand"></i>hand-off, summing up</span></p></div>`;
}

function Tick({ at, text }) {
  return html`<span style=${{ left: at * 100 + "%" }}>${text}</span>`;
}

const names = { model: "model call", tool: "tool call", wait: "wait", queue: "queue", hand: "hand-off", mark: "event" };

const Step = memo(function Step({ row: r, from, length, end, open, toggle, grid, run }) {
  const key = String(r.key), mark = r.lane === "mark";
  const left = (Math.max(0, r.from - from) / length) * 1000, width = Math.max(((end - r.from) / length) * 1000, mark ? 0 : 2.5);
  const took = mark ? "" : span(end - r.from);
  const usage = r.usage ? `${tokens(r.usage.input)} → ${tokens(r.usage.output)}` : "";
  return html`<li class=${`step ${r.lane}${open ? " open" : ""}`}>
    <button aria-expanded=${open} onClick=${() => toggle(key)}>
      <span class="label"><b>${clean(r.name)}</b><span><bdi>${usage ? usage : clean(oneLine(r.note, 90))}</bdi></span></span>
      <span class="track"><svg class="bars" viewBox="0 0 1000 26" preserveAspectRatio="none" aria-hidden="true">
        ${grid.map((t) => html`<line class="grid" x1=${(t / length) * 1000} x2=${(t / length) * 1000} y1="0" y2="26" />`)}
        <rect class=${`${r.lane}${r.failed ? " failed" : ""}${r.to ? "" : " open"}`} x=${mark ? Math.min(left, 997) : Math.min(left, 997.5)} y=${mark ? 7 : r.lane === "wait" || r.lane === "queue" ? 11 : 8} width=${mark ? 3 : Math.min(width, 1000 - Math.min(left, 997.5))} height=${mark ? 12 : r.lane === "wait" || r.lane === "queue" ? 4 : 10} /></svg></span>
      <span class="num">${r.failed && !mark ? html`<span class="bad">failed</span> ` : ""}${took}</span>
      <span class="unseen">, ${names[r.lane]}, ${span(r.from - from)} after the start${r.to ? "" : ", under way"}</span></button>
    ${open && html`<div class="detail"><${Detail} row=${r} run=${run} /></div>`}</li>`;
});

function Sent({ run, step }) {
  const { value, error, again } = useLoad(() => text(`/api/context/sent?run=${run}&step=${step}`), [run, step]);
  return value === undefined ? html`<${Failure} error=${error} retry=${again} />${!error && html`<p class="dim">Loading…</p>`}` : html`<${Pre} text=${pretty(value)} label="request" />`;
}

function Detail({ row: r, run }) {
  const e = r.event;
  const when = html`<p class="dim">${clockSeconds(r.from)}${r.to && r.to !== r.from ? ` to ${clockSeconds(r.to)}` : ""}${r.tries > 1 ? ` · ${r.tries} requests` : ""}${r.usage ? ` · ${exact(r.usage.input)} tokens in (${exact(r.usage.cacheRead)} from cache, ${exact(r.usage.cacheWrite)} written to it), ${exact(r.usage.output)} out · ${cost(r.usage)}` : ""}</p>`;
  if (r.lane === "tool") {
    return html`${when}<h3 class="cap">Arguments</h3><${Pre} text=${pretty(r.call?.arguments)} label="arguments" />
      ${r.result ? html`<h3 class="cap">${r.result.isError ? "Failure" : "Result"}</h3><${Pre} text=${pretty(r.result.content)} label="result" />` : html`<p class="dim">${r.to ? "Ended without a result." : "Under way."}</p>`}`;
  }
  if (e?.kind === "model") {
    return html`${when}${e.model.message.parts.map((p, i) => html`<${PartOf} key=${i} part=${p} />`)}
      <${Fold} summary="The request as it was sent">${() => html`<${Sent} run=${run} step=${r.call} />`}</${Fold}>
      ${e.model.stop !== "end" && e.model.stop !== "tools" && html`<p class="note">It stopped because of ${e.model.stop}.</p>`}`;
  }
  if (e?.kind === "prompt") return html`${when}<h3 class="cap">Input</h3><${Pre} text=${said(e.prompt.input)} label="input" />`;
  if (e?.kind === "input") return html`${when}<${Pre} text=${said(e.input.message) || pretty(JSON.stringify(e.input.message.parts))} label="message" />`;
  if (e?.kind === "handoff") return html`${when}<${Markdown} text=${e.handoff.text} />`;
  if (e?.kind === "compact") return html`${when}<p class="dim">${exact(e.compact.before)} → ${exact(e.compact.after)} tokens</p>${e.compact.summary && html`<${Markdown} text=${e.compact.summary} />`}`;
  if (e?.kind === "end") return html`${when}${e.end.error && html`<p class="failure"><bdi>${clean(e.end.error)}</bdi></p>`}${e.end.result && html`<${Markdown} text=${e.end.result} />`}${e.end.dropped > 0 && html`<p class="note">${exact(e.end.dropped)} bytes outside of the answer were dropped.</p>`}`;
  if (e?.kind === "resumed") return html`${when}<p>By <code>${clean(e.resumed.owner)}</code> at step ${e.resumed.step}.${e.resumed.modelCallLost ? " A model call may have been paid for without its reply." : ""}</p>`;
  return html`${when}${r.note && html`<p>${clean(r.note)}</p>`}`;
}

function PartOf({ part: p }) {
  if (p.kind === "text") return html`<${Markdown} text=${p.text} />`;
  if (p.kind === "thinking") return p.text ? html`<${Fold} summary="Thought">${() => html`<${Pre} text=${p.text} />`}</${Fold}>` : null;
  if (p.kind === "tool_call") return html`<${Fold} summary=${html`<code>${clean(p.call.name)}</code>`}>${() => html`<${Pre} text=${pretty(p.call.arguments)} />`}</${Fold}>`;
  return null;
}
