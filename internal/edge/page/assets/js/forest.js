// Arranges runs as trees, and picks the rows to show. Plain functions.

const activeStates = new Set(["queued", "running", "waiting", "interrupted"]);
export const active = (run) => activeStates.has(run.status);

// grow puts runs under what started them: newest tree first, children in the
// order of their acceptance. A run whose parent is not known stands under its
// root.
export function grow(runs) {
  const nodes = new Map();
  for (const run of runs.values()) nodes.set(run.runId, { run, children: [] });
  const tops = [];
  for (const node of nodes.values()) {
    const { run } = node;
    const above = nodes.get(run.parent) ?? (run.root !== run.runId ? nodes.get(run.root) : undefined);
    if (above && above !== node) above.children.push(node);
    else tops.push(node);
  }
  for (const node of nodes.values()) node.children.sort((a, b) => a.run.ordinal - b.run.ordinal);
  return tops.sort((a, b) => b.run.ordinal - a.run.ordinal);
}

// sum measures a tree: runs below the top, those under way, tokens and cost.
export function sum(node) {
  let below = 0, busy = active(node.run) ? 1 : 0, tokens = node.run.usage.input + node.run.usage.output, usd = node.run.usage.costUSD ?? 0;
  for (const c of node.children) {
    const s = sum(c);
    below += 1 + s.below;
    busy += s.busy;
    tokens += s.tokens;
    usd += s.usd;
  }
  return { below, busy, tokens, usd };
}

// matches says whether a run is one that the filter asks for.
export function matches(run, f) {
  if (f.show === "active" && !active(run)) return false;
  if (f.show === "ended" && active(run)) return false;
  if (f.show === "failed" && !["failed", "timeout"].includes(run.status)) return false;
  if (f.trigger && run.trigger !== f.trigger) return false;
  if (f.definition && (run.profile.definition ?? "") !== f.definition) return false;
  if (!f.q) return true;
  const q = f.q.toLowerCase();
  return [run.runId, run.label, run.task, run.profile.definition, run.profile.model, run.sessionKey, run.error].some((t) => t?.toLowerCase().includes(q));
}

const manyBelow = 12;

// flatten lists the rows to show, at most so many: {id, level, open, below,
// match, …}. folded says of ids whether a person folded (true) or unfolded
// (false) them.
export function flatten(tops, f, folded, limit) {
  const rows = [];
  const filtered = Boolean(f.show || f.trigger || f.definition || f.q);
  const walk = (node, level, place, siblings) => {
    if (rows.length > limit) return;
    if (filtered && !holds(node, f)) return;
    const s = node.children.length || level === 1 ? sum(node) : { below: 0 };
    const open = node.children.length > 0 && !(folded.get(node.run.runId) ?? (!filtered && s.below > manyBelow && s.busy === 0));
    rows.push({ id: node.run.runId, level, open, below: s.below, children: node.children.length, tokens: s.tokens, usd: s.usd, match: !filtered || matches(node.run, f), place, siblings });
    if (open) node.children.forEach((c, i) => walk(c, level + 1, i + 1, node.children.length));
  };
  for (const [i, top] of tops.entries()) walk(top, 1, i + 1, tops.length);
  return { rows: rows.slice(0, limit), more: rows.length > limit };
}

const holds = (node, f) => matches(node.run, f) || node.children.some((c) => holds(c, f));
