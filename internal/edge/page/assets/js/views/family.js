// The tree that a run belongs to.
import { html, useMemo } from "../dom.js";
import { useCell } from "../cell.js";
import { link } from "../router.js";
import { all, changed, useRun } from "../runs.js";
import { grow, flatten } from "../forest.js";
import { cost, runName, tokens } from "../format.js";
import { Elapsed, State } from "../parts.js";

export function Family({ run }) {
  const n = useCell(changed);
  const rows = useMemo(() => {
    const root = run.root || run.runId;
    const members = new Map([...all()].filter(([id, r]) => id === root || r.root === root));
    return flatten(grow(members), {}, { get: () => false }, 500).rows;
  }, [n, run.runId]);
  return html`<ol class="tree section" aria-label="Runs of the tree">${rows.map((r) => html`<${Member} key=${r.id} id=${r.id} level=${r.level} here=${r.id === run.runId} />`)}</ol>`;
}

function Member({ id, level, here }) {
  const run = useRun(id);
  return html`<li class=${`row l${Math.min(level, 6)}${here ? " here" : ""}`}><span class="what"><span class="twist"></span>
      <a href=${link(["runs", id])} aria-current=${here ? "true" : undefined}><bdi>${run.trigger === "announcement" ? "announces results" : runName(run)}</bdi></a></span>
    <span class="st"><${State} run=${run} /></span><span class="model">${run.profile.model.replace(/^[^/]*\//, "")}</span><span class="num"><${Elapsed} run=${run} /></span>
    <span class="num">${tokens(run.usage.input + run.usage.output)}</span><span class="num">${cost(run.usage)}</span><span class="num when"></span></li>`;
}
