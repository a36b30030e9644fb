// The run tree, live.
import { html, memo, useEffect, useMemo, useRef, useState } from "../dom.js";
import { useCell } from "../cell.js";
import { refine, link, go } from "../router.js";
import { all, changed, listing, load, older, useRun, ended } from "../runs.js";
import { grow, flatten } from "../forest.js";
import { useKeys } from "../keys.js";
import { cost, dollars, runName, oneLine, tokens, moment, full, clean } from "../format.js";
import { Elapsed, Empty, Failure, State } from "../parts.js";
import { CancelDialog } from "./actions.js";

const page = 200; // rows

export function Runs({ route }) {
  const f = route.params;
  const n = useCell(changed), l = useCell(listing);
  const [folded, setFolded] = useState(() => new Map());
  const [limit, setLimit] = useState(page);
  const [cancelling, setCancelling] = useState(null);
  const [focus, setFocus] = useState("");
  const grid = useRef(null), filter = useRef(null);
  useEffect(() => { if (!l.loaded) load(); }, []);
  const tops = useMemo(() => grow(all()), [n]);
  const { rows, more } = useMemo(() => flatten(tops, f, folded, limit), [tops, f, folded, limit]);
  const definitions = useMemo(() => [...new Set([...all().values()].map((r) => r.profile.definition).filter(Boolean))].sort(), [n]);

  const fold = (id, shut) => setFolded((m) => new Map(m).set(id, shut));
  const current = rows.some((r) => r.id === focus) ? focus : rows[0]?.id;
  const move = (to) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (!row) return;
    setFocus(row.id);
    grid.current.querySelector(`[data-id="${row.id}"]`)?.focus();
  };
  const keydown = (e) => {
    const at = rows.findIndex((r) => r.id === current), row = rows[at];
    if (!row || e.target.closest("button") || e.ctrlKey || e.metaKey || e.altKey) return;
    const act = {
      ArrowDown: () => move(at + 1), ArrowUp: () => move(at - 1), j: () => move(at + 1), k: () => move(at - 1),
      Home: () => move(0), End: () => move(rows.length - 1),
      ArrowRight: () => (row.children && !row.open ? fold(row.id, false) : move(at + 1)),
      ArrowLeft: () => (row.open ? fold(row.id, true) : move(rows.findLastIndex((r, i) => i < at && r.level < row.level))),
      Enter: () => go(["runs", row.id]),
      x: () => { if (!ended(all().get(row.id))) setCancelling(row.id); },
    }[e.key];
    if (act) {
      e.preventDefault();
      e.stopPropagation();
      act();
    }
  };
  useKeys({ "/": () => filter.current.focus(), j: () => move(0), ArrowDown: () => move(rows.findIndex((r) => r.id === current)) });

  const filtered = f.show || f.trigger || f.definition || f.q;
  return html`<div class="page wide">
    <header class="bar"><h1>Runs</h1>
      <div class="filters" role="search" aria-label="Filter runs">
        <input ref=${filter} type="search" placeholder="Filter" aria-label="Filter by text" value=${f.q ?? ""} onInput=${(e) => refine({ q: e.target.value })} />
        <${Choice} name="State" value=${f.show} set=${(v) => refine({ show: v })} options=${{ "": "all states", active: "under way", ended: "ended", failed: "failed" }} />
        <${Choice} name="Trigger" value=${f.trigger} set=${(v) => refine({ trigger: v })} options=${{ "": "all triggers", user: "user", announcement: "announcement", spawn: "spawn", cron: "cron", heartbeat: "heartbeat" }} />
        ${definitions.length > 0 && html`<${Choice} name="Definition" value=${f.definition} set=${(v) => refine({ definition: v })} options=${{ "": "all definitions", ...Object.fromEntries(definitions.map((d) => [d, d])) }} />`}
      </div></header>
    <${Failure} error=${l.error} retry=${load} />
    ${rows.length === 0 && !l.loading && !l.error && (filtered
      ? html`<${Empty} title="No run fits the filter."><button class="quiet" onClick=${() => refine({ q: "", show: "", trigger: "", definition: "" })}>Clear the filter</button></${Empty}>`
      : html`<${Empty} title="Nothing has run yet."><a href="#/chat">Say something</a> and it shows here.</${Empty}>`)}
    <div class="tree" role="treegrid" aria-label="Runs" aria-busy=${l.loading} ref=${grid} onKeyDown=${keydown}>
      ${rows.length > 0 && html`<div class="row head" role="row"><span role="columnheader">Run</span><span role="columnheader">State</span><span role="columnheader">Model</span>
        <span role="columnheader" class="num">Elapsed</span><span role="columnheader" class="num">Tokens</span><span role="columnheader" class="num">Cost</span><span role="columnheader" class="num">Started</span></div>`}
      ${rows.map((r) => html`<${Row} key=${r.id} ...${r} current=${r.id === current} fold=${fold} setFocus=${setFocus} />`)}
    </div>
    <${More} more=${more} listing=${l} rows=${rows.length} grow=${() => (more ? setLimit(limit + page) : older())} />
    ${cancelling && html`<${CancelDialog} id=${cancelling} close=${() => setCancelling(null)} />`}</div>`;
}

function Choice({ name, value = "", set, options }) {
  return html`<select aria-label=${name} value=${value} class=${value ? "set" : ""} onChange=${(e) => set(e.target.value)}>
    ${Object.entries(options).map(([v, text]) => html`<option key=${v} value=${v} selected=${v === value}>${text}</option>`)}</select>`;
}

const triggers = { cron: "cron", heartbeat: "heartbeat", compact: "summing up" };

const Row = memo(function Row({ id, level, open, below, children, tokens: total, usd, match, current, fold, setFocus, place, siblings }) {
  const run = useRun(id);
  const used = run.usage.input + run.usage.output;
  const name = run.trigger === "announcement" ? "announces results" : runName(run);
  return html`<div class=${`row l${Math.min(level, 6)} ${run.status}${match ? "" : " aside"}`} role="row" data-id=${id} aria-level=${level} aria-posinset=${place} aria-setsize=${siblings}
      aria-expanded=${children ? open : undefined} tabindex=${current ? 0 : -1} onFocus=${() => setFocus(id)}>
    <span role="gridcell" class="what">
      ${children ? html`<button class=${"twist" + (open ? " open" : "")} tabindex="-1" aria-label=${open ? "Fold" : "Unfold"} onClick=${() => fold(id, open)}><span class="chevron"></span></button>` : html`<span class="twist"></span>`}
      <a href=${link(["runs", id])} tabindex="-1" title=${clean(oneLine(run.task, 300))}><bdi>${name}</bdi></a>
      ${run.label && run.profile.definition && html`<span class="tag">${clean(run.profile.definition)}</span>`}
      ${triggers[run.trigger] && html`<span class="tag">${triggers[run.trigger]}</span>`}
      ${run.recovery && html`<span class="tag warn" title="Taken over after a process had ended">recovered</span>`}
      ${below > 0 && html`<span class="sum">${open ? "" : `+${below} · `}Σ ${tokens(total)}${usd ? " · " + dollars(usd) : ""}</span>`}
    </span>
    <span role="gridcell" class="st"><${State} run=${run} /></span>
    <span role="gridcell" class="model" title=${run.profile.model}>${run.profile.flow ? "flow" : clean(run.profile.model.replace(/^[^/]*\//, ""))}</span>
    <span role="gridcell" class="num el"><${Elapsed} run=${run} /></span>
    <span role="gridcell" class="num tok" title=${`${run.usage.input} in, ${run.usage.output} out`}>${used ? tokens(used) : "–"}</span>
    <span role="gridcell" class="num cost">${cost(run.usage)}</span>
    <span role="gridcell" class="num when" title=${full(run.createdAt)}>${moment(run.createdAt)}</span></div>`;
});

// More shows the next rows once the reader comes near the end.
function More({ more, listing: l, rows, grow: next }) {
  const ref = useRef(null), go = useRef(next);
  go.current = next;
  const any = more || (l.loaded && !l.complete && !l.loading && !l.error && rows > 0);
  useEffect(() => {
    if (!any) return undefined;
    const seen = new IntersectionObserver((entries) => { if (entries.some((e) => e.isIntersecting)) go.current(); }, { rootMargin: "400px" });
    seen.observe(ref.current);
    return () => seen.disconnect();
  }, [any, rows, l.oldest]);
  if (!any) return l.loading ? html`<p class="dim pad" role="status">Loading…</p>` : null;
  return html`<p class="pad" ref=${ref}><button class="quiet" onClick=${next}>Show older runs</button></p>`;
}
