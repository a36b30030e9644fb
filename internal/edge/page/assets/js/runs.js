// All runs that the page knows of: what was loaded, and what the stream says
// since. A view of one run hears of that run only.
import { cell, keyed, useKey } from "./cell.js";
import { get, at } from "./api.js";
import { onNotice, onResync } from "./feed.js";

const store = keyed();
const byParent = new Map(); // parent's id → ids
const byRequester = new Map(); // session → ids

// changed counts what may alter which runs a list shows, and in which order.
export const changed = cell(0);

// loading is what the list of all runs shows while it has none.
export const listing = cell({ loaded: false, oldest: 0, complete: false, error: null, loading: false });

const over = new Set(["completed", "failed", "timeout", "cancelled"]);
export const ended = (run) => over.has(run.status);

let pending = 0;
function touch() {
  // Many runs may change at once: lists look at them together.
  pending ||= setTimeout(() => { pending = 0; changed.set(changed.get() + 1); }, 60);
}

// take keeps what is newest of a run. A late answer never reopens an ended run.
export function take(run) {
  const known = store.get(run.runId);
  if (known && ended(known) && !ended(run)) return;
  if (!known) {
    if (run.parent) into(byParent, run.parent, run.runId);
    if (run.requesterKey) into(byRequester, run.requesterKey, run.runId);
  }
  store.set(run.runId, run);
  if (!known || known.status !== run.status) touch();
}

function into(map, key, id) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(id);
}

export const all = () => store.values;
export const known = (id) => store.get(id);
export const useRun = (id) => useKey(store, id);
export const childrenOf = (id) => byParent.get(id) ?? [];
export const askedBy = (session) => byRequester.get(session) ?? [];

onNotice((n) => {
  if (!n.run) return;
  const before = store.get(n.run.runId);
  // A notice does not know the place in the queue.
  if (before?.position && n.run.status === "queued") n.run.position = before.position;
  take(n.run);
  if (n.kind === "run") placesSoon();
});

// places asks for the queue's places, for only the record knows them: at most
// once in a second, and only while something is queued.
let asked = 0;
function placesSoon() {
  if (asked) return;
  asked = setTimeout(async () => {
    asked = 0;
    if (![...store.values.values()].some((r) => r.status === "queued")) return;
    try { (await get("/api/runs", { active: true })).forEach(take); } catch { /* the connection's state says it */ }
  }, 1000);
}

const page = 200; // runs that are read at once

// load reads the newest runs: at first one page, later as many as there are
// new ones.
export async function load() {
  listing.set({ ...listing.get(), loading: true });
  const first = !listing.get().loaded;
  await read(0, (runs) => !first && !runs.some((r) => store.get(r.runId)));
}

// older reads the runs before those that were loaded.
export async function older() {
  if (listing.get().loading) return;
  listing.set({ ...listing.get(), loading: true });
  await read(listing.get().oldest, () => false);
}

async function read(before, more) {
  try {
    for (;;) {
      const runs = await get("/api/runs", { limit: page, before: before || "" });
      const next = runs.length === page && more(runs);
      runs.forEach(take);
      const l = listing.get(), last = runs.at(-1)?.ordinal ?? 0;
      listing.set({ loaded: true, oldest: Math.min(l.oldest || Infinity, last), complete: l.complete || runs.length < page, error: null, loading: next });
      await roots(runs);
      if (!next) return;
      before = last;
    }
  } catch (error) {
    listing.set({ ...listing.get(), error, loading: false });
  }
}

// roots reads the tops of trees that began before what was loaded.
async function roots(runs) {
  const absent = [...new Set(runs.map((r) => r.root).filter((id) => id && !store.get(id)))].slice(0, 24);
  await Promise.all(absent.map((id) => get(at("runs", id)).then(take, () => {})));
}

onResync(() => {
  if (listing.get().loaded) load();
  for (const [id, run] of store.values) if (!ended(run) && (store.watched(id) || listing.get().loaded)) refresh(id);
});

// refresh reads one run again.
export async function refresh(id) {
  const run = await get(at("runs", id)).catch(() => null);
  if (run) take(run);
  return run;
}

// loadWorkers reads the workers that a session asked for.
export const loadWorkers = async (session) => (await get("/api/runs", { requester: session, limit: 300 })).forEach(take);

// loadTree reads the runs of the tree that a run belongs to.
export const loadTree = async (run) => (await get("/api/runs", { root: run.root || run.runId })).forEach(take);
