// One turn of a conversation: what was said, what the agent thought, did and
// answered, and the workers that it started.
import { html, useEffect, useMemo } from "../dom.js";
import { useCell } from "../cell.js";
import { useRun, childrenOf, changed, refresh, ended } from "../runs.js";
import { useLog, useLive } from "../logs.js";
import { pieces, said, spawned, gist } from "../transcript.js";
import { Copy } from "../copy.js";
import { Markdown } from "../markdown.js";
import { clean, cost, oneLine, plain, pretty, runName, short, span, tokens, clock, full } from "../format.js";
import { Elapsed, Fold, Pre, State, Ticking, tell } from "../parts.js";
import { link } from "../router.js";

export function Turn({ id, grew }) {
  const run = useRun(id), log = useLog(id), live = useLive(id);
  useCell(changed);
  const list = useMemo(() => pieces(log?.events ?? []), [log?.events]);
  useEffect(grew);
  useEffect(() => {
    if (run?.status === "completed" && Date.now() - run.finishedAt < 5000 && run.result !== "NO_REPLY") tell("Reply: " + oneLine(plain(run.result), 300));
  }, [run?.status]);
  if (!run) return null;
  const end = list.find((p) => p.kind === "end");
  if (end?.returned) return null;
  const inline = new Set(list.filter((p) => p.kind === "call").map(spawned).filter(Boolean));
  const others = childrenOf(id).filter((child) => !inline.has(child));
  return html`<article class=${"turn " + run.trigger} aria-label=${`Turn of ${clock(run.createdAt)}`}>
    <${Opening} run=${run} events=${log?.events ?? []} />
    <${Pieces} list=${list} />
    ${others.length > 0 && html`<${Workers} ids=${others} />`}
    ${!ended(run) && html`<${Under} run=${run} live=${live} list=${list} />`}
    <${Closing} run=${run} end=${end} list=${list} /></article>`;
}

const from = { cron: "by its schedule", heartbeat: "heartbeat", compact: "summing up", spawn: "task" };

function Opening({ run, events }) {
  const input = events[0]?.prompt ? said(events[0].prompt.input) : run.task;
  if (run.trigger === "user") {
    return html`<div class="you"><p dir="auto" tabindex=${run.task.length > 2000 ? 0 : undefined} title=${full(run.createdAt)}>${clean(run.task)}</p></div>`;
  }
  if (run.trigger === "announcement") {
    const names = [...input.matchAll(/^\[Subagent: (.*?)\] (.*)$/gm)];
    const what = names.length === 0 ? "Results came in" : `${names.length} ${names.length === 1 ? "result" : "results"} announced: ${names.map((m) => m[1]).join(", ")}`;
    return html`<${Fold} cls="came" summary=${html`<span class="rule">${clean(oneLine(what, 160))}</span>`}>${() => html`<${Pre} text=${input} label="announcement" />`}</${Fold}>`;
  }
  return html`<${Fold} cls="came" summary=${html`<span class="rule">${from[run.trigger] ?? run.trigger}: ${clean(oneLine(run.task, 120))}</span>`}>${() => html`<${Pre} text=${input} label="input" />`}</${Fold}>`;
}

// Pieces shows calls that follow each other as one block, and the workers that
// they started as one list.
function Pieces({ list }) {
  const out = [];
  let calls = [], workers = [];
  const flush = () => {
    if (calls.length) out.push(html`<div class="calls" key=${"c" + calls[0].key}>${calls.map((p) => html`<${Call} key=${p.key} piece=${p} />`)}</div>`);
    if (workers.length) out.push(html`<${Workers} key=${"w" + workers[0]} ids=${workers} />`);
    calls = [];
    workers = [];
  };
  for (const p of list) {
    if (p.kind === "call") {
      const id = spawned(p);
      if (id) workers.push(id);
      else calls.push(p);
      continue;
    }
    flush();
    if (p.kind === "text") out.push(html`<${Markdown} key=${p.key} text=${p.text} />`);
    if (p.kind === "thinking") out.push(html`<${Fold} key=${p.key} cls="thought" summary="Thought">${() => html`<${Pre} text=${p.text} label="thinking" />`}</${Fold}>`);
    if (p.kind === "note") out.push(html`<${Fold} key=${p.key} cls="came" summary=${html`<span class="rule">${p.text}</span>`}>${() => html`<${Pre} text=${p.more || "Nothing more is on record."} />`}</${Fold}>`);
    if (p.kind === "input" && !p.results) {
      out.push(html`<${Fold} key=${p.key} cls="came" summary=${html`<span class="rule">${p.repair ? "Sent back by the gateway" : p.reminder ? "Reminded by the gateway" : "Came in meanwhile"}: ${clean(oneLine(p.text, 100))}</span>`}>${() => html`<${Pre} text=${p.text} />`}</${Fold}>`);
    }
  }
  flush();
  return out;
}

export function Call({ piece }) {
  const { call, result } = piece;
  const mark = !result ? "running" : result.isError ? "failed" : "completed";
  const took = piece.until && piece.since ? span(piece.until - piece.since) : "";
  const summary = html`<span class=${"dot " + mark} role="img" aria-label=${{ running: "under way", failed: "failed", completed: "done" }[mark]}></span>
    <code class="tool">${clean(call.name)}</code><span class="gist"><bdi>${clean(oneLine(gist(call), 160))}</bdi></span>
    <span class="took">${result ? took : html`<${Ticking} since=${piece.since ?? Date.now()} />`}</span>`;
  return html`<${Fold} cls="call" summary=${summary}>${() => html`
    <h3 class="cap">Arguments</h3><${Pre} text=${pretty(call.arguments)} label=${"arguments of " + call.name} />
    <h3 class="cap">${result?.isError ? "Failure" : "Result"}</h3>${result ? html`<${Pre} text=${pretty(result.content)} label=${"result of " + call.name} />` : html`<p class="dim">Under way.</p>`}`}</${Fold}>`;
}

export function Workers({ ids }) {
  return html`<ul class="workers" aria-label="Workers">${ids.map((id) => html`<${Worker} key=${id} id=${id} />`)}</ul>`;
}

function Worker({ id }) {
  const run = useRun(id);
  const live = useLive(id);
  useEffect(() => { if (!run) refresh(id); }, [id]);
  if (!run) return html`<li class="worker"><a href=${link(["runs", id])}><span class="name">${short(id)}</span></a></li>`;
  const below = ended(run) ? run.error || plain(run.result) : plain(live?.text) || live?.retry || run.task;
  return html`<li class=${"worker " + run.status}><a href=${link(["runs", id])}>
    <span class="name"><bdi>${runName(run)}</bdi></span><${State} run=${run} />
    <span class="num"><${Elapsed} run=${run} /></span><span class="num" title="tokens">${run.usage.input + run.usage.output ? tokens(run.usage.input + run.usage.output) : "–"}</span><span class="num">${cost(run.usage)}</span>
    <span class="below"><bdi>${clean(oneLine(below, 180))}</bdi></span></a></li>`;
}

// Under is what of a turn is not on record yet.
function Under({ run, live, list }) {
  const open = list.some((p) => p.kind === "call" && !p.result);
  const waiting = run.status === "queued" ? html`<${State} run=${run} />` : run.status === "waiting" ? html`<${State} run=${run} />` : "";
  return html`<div class="under-way" aria-busy="true">
    ${live?.thinking && !live.text && html`<p class="thinking" dir="auto">${clean(live.thinking.slice(-400))}</p>`}
    ${live?.text ? html`<${Markdown} text=${live.text} />` : null}
    ${live?.retry && html`<p class="note warn">${clean(live.retry)}</p>`}
    ${!live?.text && !open && html`<p class="pulse">${waiting || html`<span class="dots" role="img" aria-label="working"><i></i><i></i><i></i></span>`} <span class="dim"><${Ticking} since=${run.startedAt || run.createdAt} /></span></p>`}</div>`;
}

function Closing({ run, end, list }) {
  if (!end) return null;
  const said = list.some((p) => p.kind === "text");
  return html`${end.state === "failed" || end.state === "timeout" ? html`<p class="failure"><b>${end.state === "timeout" ? "Timed out" : "Failed"}:</b> <bdi>${clean(end.error)}</bdi></p>` : null}
    ${end.state === "cancelled" && html`<p class="note">Stopped${end.error ? html`: <bdi>${clean(end.error)}</bdi>` : "."}</p>`}
    ${end.silent && html`<p class="note">Stayed silent.</p>`}
    ${!said && end.result && !end.silent && html`<${Markdown} text=${end.result} />`}
    <p class="facts"><a href=${link(["runs", run.runId])}>${clock(run.createdAt)}</a> · ${run.startedAt ? span(run.finishedAt - run.startedAt) : "–"} · ${tokens(run.usage.input)} in, ${tokens(run.usage.output)} out · ${cost(run.usage)}
      ${run.result && !end.silent && html`<${Copy} cls="plain" text=${run.result} label="Copy the reply" />`}</p>`;
}
