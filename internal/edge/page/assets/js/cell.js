// A value that views watch.
import { useEffect, useState } from "./dom.js";

export function cell(value) {
  const watchers = new Set();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const w of [...watchers]) w(value);
    },
    watch(w) {
      watchers.add(w);
      return () => watchers.delete(w);
    },
  };
}

export function useCell(c) {
  const [, again] = useState(0);
  useEffect(() => {
    let seen = c.get();
    const update = () => { seen = c.get(); again((n) => n + 1); };
    const stop = c.watch(update);
    if (!Object.is(seen, c.get())) update();
    return stop;
  }, [c]);
  return c.get();
}

// kept is a cell whose value stays in this browser.
export function kept(name, fallback) {
  let first = fallback;
  try { first = JSON.parse(localStorage.getItem(name)) ?? fallback; } catch { /* not ours: the fallback holds */ }
  const c = cell(first);
  c.watch((v) => localStorage.setItem(name, JSON.stringify(v)));
  return c;
}

// keyed is many values under keys; whoever watches one key hears of no other.
export function keyed() {
  const values = new Map(), watchers = new Map();
  return {
    values,
    get: (key) => values.get(key),
    set(key, value) {
      values.set(key, value);
      for (const w of [...(watchers.get(key) ?? [])]) w();
    },
    watch(key, w) {
      if (!watchers.has(key)) watchers.set(key, new Set());
      watchers.get(key).add(w);
      return () => {
        watchers.get(key)?.delete(w);
        if (watchers.get(key)?.size === 0) watchers.delete(key);
      };
    },
    watched: (key) => watchers.has(key),
  };
}

export function useKey(store, key) {
  const [, again] = useState(0);
  useEffect(() => {
    const seen = store.get(key);
    const stop = store.watch(key, () => again((n) => n + 1));
    if (!Object.is(seen, store.get(key))) again((n) => n + 1);
    return stop;
  }, [store, key]);
  return store.get(key);
}
