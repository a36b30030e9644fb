// Small pieces that several views are made of.
import { html, useEffect, useRef, useState } from "./dom.js";
import { cell, useCell } from "./cell.js";
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
  const n = useNow();
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
  return html`<div class="pre"><pre tabindex="0" dir="auto" aria-label=${label}>${cut ? safe.slice(0, shownAtOnce) : safe}</pre>
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

const paths = {
  chat: "M3 4.500h10v6.500H7.500L4.500 13.500V11H3z",
  runs: "M3 4h4M6 8h4M9 12h4M4.500 4v4H6M7.500 8v4H9",
  definitions: "M4 2.500h5.500L12.500 5.500v8H4zM6 8h4.500M6 10.500h4.500",
  cron: "M8 2.500a5.500 5.500 0 1 0 .01 0M8 5v3.200l2.200 1.500",
  usage: "M3 13.500h10M4.500 11.500v-3M8 11.500V4M11.500 11.500V6.500",
  parked: "M3 3.500h10v9H3zM3 9h3l.8 1.500h2.400L10 9h3",
  memory: "M7 2.500a4.500 4.500 0 1 0 .01 0M10.300 10.300l3.200 3.200",
  status: "M2 8.500h3l1.500-4 3 7.500 1.500-3.500H14",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
  close: "M4 4l8 8M12 4l-8 8",
  send: "M8 13V3.500M4 7.200 8 3.200l4 4",
  stop: "M5 5h6v6H5z",
  sun: "M8 5.200a2.800 2.800 0 1 0 .01 0M8 1.500V3M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1",
  moon: "M12.800 9.800A5.500 5.500 0 0 1 6.200 3.200a5.500 5.500 0 1 0 6.600 6.600z",
  auto: "M8 2.500a5.500 5.500 0 1 0 .01 0M8 2.500v11",
  down: "M8 3v9.500M4 8.800l4 4 4-4",
};

export function Icon({ name }) {
  return html`<svg class="ico" viewBox="0 0 16 16" aria-hidden="true"><path d=${paths[name]} /></svg>`;
}
