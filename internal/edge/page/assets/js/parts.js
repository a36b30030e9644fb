// Small pieces that several views are made of.
import { html, useEffect, useRef, useState } from "./dom.js";
import { cell, useCell } from "./cell.js";
import { Copyable } from "./copy.js";
import { Icon } from "./icons.js";
import { clean, relative, ticking, span, full } from "./format.js";

// now is the time in whole seconds, for whatever counts them.
const now = cell(Date.now());
setInterval(() => { if (!document.hidden) now.set(Date.now()); }, 1000);
export const useNow = () => useCell(now);

// said is what screen readers are told of what happens elsewhere on the page.
export const said = cell("");
export const tell = (text) => said.set(text);

const words = { completed: "done", timeout: "timed out", interrupted: "interrupted", waiting: "waiting" };

// State names a run's state; colour only repeats it.
export function State({ run }) {
  let word = words[run.status] ?? run.status;
  if (run.status === "queued" && run.position) word = `queued · ${run.position}.`;
  if (run.status === "waiting" && run.waitsFor === "person") word = "waits for you";
  if (run.status === "running" && run.cancelAt) word = "stopping";
  return html`<span class=${"state " + run.status + (run.waitsFor === "person" ? " person" : "")}><i aria-hidden="true"></i>${word}</span>`;
}

// Elapsed is how long a run took, or has taken so far.
export function Elapsed({ run }) {
  if (run.finishedAt) return run.startedAt ? span(run.finishedAt - run.startedAt) : "–";
  return html`<${Ticking} since=${run.startedAt || run.createdAt} />`;
}

export function Ticking({ since }) {
  return html`<span class="ticking">${ticking(useNow() - since)}</span>`;
}

export function Ago({ at }) {
  useNow();
  const n = Date.now(); // the counted second may lie before what just happened
  return html`<time dateTime=${new Date(at).toISOString()} title=${full(at)}>${relative(at, n)}</time>`;
}

// Failure is an error of the API, in one line, where it happened.
export function Failure({ error, retry }) {
  if (!error) return null;
  if (error.absent) return html`<p class="note">Not available: this gateway does not offer it.</p>`;
  return html`<p class="failure" role="alert"><b>Failed:</b> <bdi>${clean(error.message)}</bdi>
    ${retry && html` <button class="quiet" onClick=${retry}>Try again</button>`}</p>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p>${title}</p>${children && html`<p class="dim">${children}</p>`}</div>`;
}

// Pre is text as it is, and cut to what one can look at until more is asked.
const shownAtOnce = 20_000;
export function Pre({ text, label }) {
  const [all, setAll] = useState(false);
  const safe = clean(text);
  const cut = !all && safe.length > shownAtOnce;
  return html`<div class="pre"><${Copyable} text=${text} label=${`Copy the ${label ?? "text"}`}><pre tabindex="0" dir="auto" role="group" aria-label=${label ?? "text"}>${cut ? safe.slice(0, shownAtOnce) : safe}</pre></${Copyable}>
    ${cut && html`<button class="quiet" onClick=${() => setAll(true)}>Show all ${safe.length.toLocaleString("en")} characters</button>`}</div>`;
}

// Fold is a heading that opens to its content, which is made only then.
export function Fold({ summary, children, open: first = false, cls = "" }) {
  const [open, setOpen] = useState(first);
  return html`<div class=${"fold " + cls + (open ? " open" : "")}>
    <button class="foldhead" aria-expanded=${open} onClick=${() => setOpen(!open)}><span class="chevron" aria-hidden="true"></span>${summary}</button>
    ${open && html`<div class="foldbody">${typeof children === "function" ? children() : children}</div>`}</div>`;
}

// Dialog is the browser's own: it keeps the focus inside, and Escape closes it.
export function Dialog({ title, close, children, wide }) {
  const ref = useRef(null);
  useEffect(() => {
    const back = document.activeElement;
    ref.current.showModal();
    return () => { if (back?.isConnected) back.focus(); };
  }, []);
  return html`<dialog ref=${ref} class=${wide ? "wide" : ""} aria-labelledby="dialog-title" onCancel=${(e) => { e.preventDefault(); close(); }}
      onClick=${(e) => { if (e.target === ref.current) close(); }}>
    <div class="dialog"><header><h2 id="dialog-title">${title}</h2>
      <button class="icon" aria-label="Close" onClick=${close}><${Icon} name="close" /></button></header>${children}</div></dialog>`;
}

// useDo runs something that may fail: [do, busy, error].
export function useDo() {
  const [state, set] = useState({ busy: false, error: null });
  const alive = useRef(true);
  useEffect(() => () => { alive.current = false; }, []);
  const run = async (work) => {
    set({ busy: true, error: null });
    try {
      const value = await work();
      if (alive.current) set({ busy: false, error: null });
      return value;
    } catch (error) {
      if (alive.current) set({ busy: false, error });
      return undefined;
    }
  };
  return [run, state.busy, state.error];
}

// useLoad reads something when the view begins, and again on demand, or every
// so many milliseconds: {value, error, loading, again}.
export function useLoad(load, deps, every = 0) {
  const [state, set] = useState({ value: undefined, error: null, loading: true });
  const turn = useRef(0), absent = useRef(false); // what is not there is not asked for again
  const again = async () => {
    const mine = ++turn.current;
    set((s) => ({ ...s, loading: true }));
    try {
      const value = await load();
      if (mine === turn.current) set({ value, error: null, loading: false });
    } catch (error) {
      absent.current = error.absent;
      if (mine === turn.current) set((s) => ({ value: s.value, error, loading: false }));
    }
  };
  useEffect(() => {
    again();
    const timer = every ? setInterval(() => { if (!document.hidden && !absent.current) again(); }, every) : 0;
    return () => { turn.current++; clearInterval(timer); };
  }, deps);
  return { ...state, again };
}
