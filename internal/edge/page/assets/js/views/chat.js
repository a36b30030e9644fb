// The conversation of one session: its record, and what streams in.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../dom.js";
import { kept, useCell } from "../cell.js";
import { get, at } from "../api.js";
import { onNotice, onResync } from "../feed.js";
import { link } from "../router.js";
import { all, changed, known, loadWorkers, take, ended } from "../runs.js";
import { seed } from "../logs.js";
import { status } from "../status.js";
import { clean } from "../format.js";
import { Icon } from "../icons.js";
import { Empty, Failure } from "../parts.js";
import { Chooser } from "./chooser.js";
import { Turn } from "./turn.js";
import { Composer, answers } from "./composer.js";

const last = kept("chat-session", "agent:main:main");
const shownFirst = 30; // turns

export function Chat({ route }) {
  const key = route.parts[1] ?? last.get();
  useEffect(() => { if (route.parts[1]) last.set(key); }, [key]);
  return html`<${Conversation} key=${key} session=${key} />`;
}

// useSession keeps the runs of a session: {ids, error, loading, reload}.
function useSession(session) {
  const [state, set] = useState({ ids: [], error: null, loading: true });
  const load = async () => {
    try {
      const [logs] = await Promise.all([get(at("sessions", session, "history")), loadWorkers(session)]);
      logs.forEach(seed);
      set({ ids: logs.map((l) => l.run.runId), error: null, loading: false });
    } catch (error) {
      // A session that nobody has written to is an empty one.
      set((s) => ({ ids: s.ids, error: error.status === 404 && !error.absent ? null : error, loading: false }));
    }
  };
  useEffect(() => {
    load();
    const stops = [onResync(load), onNotice((n) => {
      if (n.run && n.run.sessionKey === session) {
        set((s) => (s.ids.includes(n.run.runId) ? s : { ...s, ids: [...s.ids, n.run.runId] }));
      }
    })];
    return () => stops.forEach((stop) => stop());
  }, [session]);
  return { ...state, reload: load };
}

function Conversation({ session }) {
  const { ids, error, loading, reload } = useSession(session);
  const [from, setFrom] = useState(shownFirst);
  useCell(changed); // a run's start and end move the button to stop
  const local = useCell(answers(session));
  const busy = ids.some((id) => { const r = known(id); return r && !ended(r); });
  const workers = [...all().values()].filter((r) => r.requesterKey === session && !ended(r)).length;
  const scroll = useScroll(session);
  const sent = (run) => {
    take(run);
    scroll.follow();
  };
  const first = Math.max(0, ids.length - from);
  const demo = useCell(status)?.demo;
  // What the gateway answered by itself stands where it was asked.
  const after = (id) => local.filter((a) => a.after === id);
  return html`<div class="chatpage">
    <header class="bar"><h1 class="unseen">Chat</h1><${Chooser} session=${session} turns=${ids.length} reload=${reload} />
      ${demo && html`<span class="tag demo">demo model</span>`}
      <span class="grow"></span>
      ${workers > 0 && html`<a class="working" href=${link(["runs"], { show: "active" })}>${workers}<span class="word"> ${workers === 1 ? "worker" : "workers"}</span> under way</a>`}</header>
    <div class="talk" ref=${scroll.ref} onScroll=${scroll.moved} tabindex="0" role="log" aria-label="Conversation" aria-live="off">
      <div class="column">
        ${loading && ids.length === 0 && html`<p class="dim pad">Loading…</p>`}
        <${Failure} error=${error} retry=${reload} />
        ${!loading && !error && ids.length === 0 && local.length === 0 && html`<${Empty} title="Nothing was said here yet.">Write below; <kbd>/help</kbd> lists the commands. Ask for several things at once and watch the workers.</${Empty}>`}
        ${first > 0 && html`<p class="earlier"><button class="quiet" onClick=${() => { scroll.hold(); setFrom(from + 50); }}>Show ${Math.min(50, first)} earlier turns</button></p>`}
        ${local.filter((a) => !ids.includes(a.after)).map((a) => html`<${Answer} key=${a.key} answer=${a} />`)}
        ${ids.slice(first).map((id) => [html`<${Turn} key=${id} id=${id} grew=${scroll.grew} />`, ...after(id).map((a) => html`<${Answer} key=${a.key} answer=${a} />`)])}
      </div></div>
    <div class="under">
      ${scroll.away && html`<button class="latest" onClick=${scroll.follow}><${Icon} name="down" />Latest</button>`}
      <${Composer} session=${session} busy=${busy} workers=${workers} sent=${sent} answered=${reload} last=${ids.at(-1) ?? ""} /></div></div>`;
}

function Answer({ answer }) {
  return html`<article class="turn"><div class="you"><p dir="auto">${clean(answer.asked)}</p></div>
    <div class=${"aside" + (answer.failed ? " bad" : "")} role=${answer.failed ? "alert" : undefined}><pre dir="auto" tabindex="0" role="group" aria-label="answer of the gateway">${clean(answer.text)}</pre></div></article>`;
}

// useScroll follows what comes in while the reader is at the end, and leaves
// them alone when they are not.
function useScroll() {
  const ref = useRef(null), at = useRef({ end: true, height: 0 });
  const [away, setAway] = useState(false);
  const toEnd = () => {
    const el = ref.current;
    if (el) el.scrollTop = el.scrollHeight;
  };
  const grew = () => { if (at.current.end) toEnd(); };
  useLayoutEffect(() => {
    const el = ref.current;
    if (at.current.hold) {
      el.scrollTop += el.scrollHeight - at.current.hold;
      at.current.hold = 0;
    } else grew();
  });
  useEffect(() => {
    const seen = new ResizeObserver(grew);
    seen.observe(ref.current);
    seen.observe(ref.current.firstElementChild);
    return () => seen.disconnect();
  }, []);
  return useMemo(() => ({
    ref, grew,
    get away() { return away; },
    moved() {
      const el = ref.current;
      if (!el) return; // the last scroll may be told after the view has gone
      at.current.end = el.scrollHeight - el.scrollTop - el.clientHeight < 48;
      setAway(!at.current.end);
    },
    follow() { at.current.end = true; setAway(false); toEnd(); },
    hold() { at.current.hold = ref.current.scrollHeight; },
  }), [away]);
}
