// The frame around all views: navigation, what must be seen everywhere, help.
import { html, useEffect, useRef, useState } from "./dom.js";
import { cell, useCell } from "./cell.js";
import { useRoute, link } from "./router.js";
import { signedOut, version } from "./api.js";
import { connection } from "./feed.js";
import { status, unpause } from "./status.js";
import { helpOpen, places, useKeys } from "./keys.js";
import { Icon } from "./icons.js";
import { Dialog, said, useDo, Failure } from "./parts.js";
import { clean, moment } from "./format.js";
import { Chat } from "./views/chat.js";
import { Runs } from "./views/runs.js";
import { Run } from "./views/run.js";
import { Definitions } from "./views/definitions.js";
import { Cron } from "./views/cron.js";
import { Usage } from "./views/usage.js";
import { Parked } from "./views/parked.js";
import { Memory } from "./views/memory.js";
import { Status } from "./views/status.js";

const views = {
  chat: ["Chat", Chat], runs: ["Runs", Runs], definitions: ["Definitions", Definitions], cron: ["Cron", Cron],
  usage: ["Usage", Usage], parked: ["Parked", Parked], memory: ["Memory", Memory], status: ["Status", Status],
};

export function Shell() {
  const r = useRoute();
  const place = views[r.parts[0]] ? r.parts[0] : "chat";
  const [title, View] = views[place];
  const main = useRef(null), first = useRef(true);
  const help = useCell(helpOpen);
  useEffect(() => { document.title = `${title} · GoClaw`; }, [title]);
  useEffect(() => {
    // A new view is read from its beginning, by eye and by ear.
    if (!first.current && !main.current.contains(document.activeElement)) main.current.focus({ preventScroll: true });
    first.current = false;
  }, [place, r.parts[1]]);
  useKeys({ t: nextTheme });
  if (useCell(signedOut)) return html`<${SignedOut} />`;
  const Shown = place === "runs" && r.parts[1] ? Run : View;
  return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); main.current.focus(); }}>Skip to content</a>
    <div class="shell"><${Nav} place=${place} />
      <div class="stage"><${Banners} />
        <main id="main" ref=${main} tabindex="-1" class=${"view " + place}><${Guard} key=${place === "runs" ? "runs/" + (r.parts[1] ?? "") : place}><${Shown} route=${r} /></${Guard}></main></div></div>
    <div class="unseen" role="status" aria-live="polite">${useCell(said)}</div>
    ${help && html`<${Help} />`}`;
}

// Guard keeps a fault of one view from taking the whole page with it.
function Guard({ children }) {
  const [error, setError] = useState(null);
  this.componentDidCatch = (e) => { console.error(e); setError(e); };
  if (!error) return children;
  return html`<div class="page"><p class="failure" role="alert"><b>This view has a fault:</b> <bdi>${clean(String(error.message ?? error))}</bdi> <button class="quiet" onClick=${() => setError(null)}>Try again</button></p></div>`;
}

// second are the views that a phone shows below More.
const second = new Set(["definitions", "parked", "memory", "status"]);

function Nav({ place }) {
  const s = useCell(status);
  const [more, setMore] = useState(false); // on a phone
  useEffect(() => setMore(false), [place]);
  const count = { parked: s?.parked || 0, runs: s ? s.active + s.queued : 0 };
  return html`<nav class=${"nav" + (more ? " more" : "")} aria-label="Views">
    <a class="brand" href="#/chat"><${Mark} /><span>GoClaw</span></a>
    <ul>${Object.entries(views).map(([name, [title]]) => html`<li key=${name} class=${second.has(name) ? "second" : ""}>
      <a href=${link([name])} aria-current=${place === name ? "page" : undefined}><${Icon} name=${name} /><span class="word">${title}</span>
        ${count[name] > 0 && html`<span class=${"count " + name} aria-label=${name === "runs" ? `${count[name]} under way` : `${count[name]} waiting`}>${count[name]}</span>`}</a></li>`)}
      <li class="morebutton"><button aria-expanded=${more} onClick=${() => setMore(!more)}><${Icon} name="more" /><span class="word">More</span>${count.parked > 0 && html`<span class="count parked">${count.parked}</span>`}</button></li></ul>
    <div class="foot"><${Connection} /><${Theme} />
      <button class="icon" aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)" onClick=${() => helpOpen.set(true)}>?</button></div></nav>`;
}

function Mark() {
  return html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" /><path d="M8 23c1-6 2-10 5-15M14.500 24.500c.6-5 1.600-9 4.500-13.500M21 24.500c.4-3.500 1.200-6 3.200-9" /></svg>`;
}

const lamp = { open: "Live", connecting: "Connecting…", lost: "Connection lost", resting: "Resting" };

function Connection() {
  const c = useCell(connection);
  return html`<span class=${"lamp " + c} role="status"><i aria-hidden="true"></i><span class="word">${lamp[c]}</span></span>`;
}

const theme = cell(document.documentElement.dataset.theme ?? "");
function applyTheme(choice) {
  if (choice) {
    localStorage.setItem("theme", choice);
    document.documentElement.dataset.theme = choice;
  } else {
    localStorage.removeItem("theme");
    delete document.documentElement.dataset.theme;
  }
  theme.set(choice);
}
const order = ["", "light", "dark"];
export const nextTheme = () => applyTheme(order[(order.indexOf(theme.get()) + 1) % 3]);

function Theme() {
  const t = useCell(theme);
  const name = { "": "as the system", light: "light", dark: "dark" }[t];
  return html`<button class="icon theme" onClick=${nextTheme} aria-label=${`Colours: ${name}. Change`} title=${`Colours: ${name} (t)`}><${Icon} name=${{ "": "auto", light: "sun", dark: "moon" }[t]} /></button>`;
}

// Banners say what changes the meaning of all else.
function Banners() {
  const c = useCell(connection), s = useCell(status), v = useCell(version);
  const [act, busy, error] = useDo();
  const first = useRef("");
  first.current ||= v;
  return html`<div class="banners">
    ${c === "lost" && html`<p class="banner bad" role="alert">The gateway can't be reached. Trying again; what you see may be old.</p>`}
    ${first.current && v !== first.current && html`<p class="banner">The gateway is now version ${v}. <button class="quiet" onClick=${() => location.reload()}>Load the page again</button></p>`}
    ${s?.paused?.at > 0 && html`<p class="banner warn">Paused since ${moment(s.paused.at)}${s.paused.why ? html`: <bdi>${clean(s.paused.why)}</bdi>` : ""}. No model is called.
      <button class="quiet" disabled=${busy} onClick=${() => act(unpause)}>Resume</button></p>`}
    ${s?.demo && html`<p class="banner demo"><b>Demo model.</b> Its answers are canned: set a provider's key to talk to a real one.</p>`}
    ${s?.engine === false && html`<p class="banner">This process only reads: it runs nothing.</p>`}
    <${Failure} error=${error} /></div>`;
}

function SignedOut() {
  return html`<main class="signedout"><h1>Signed out</h1><p>This browser is not signed in any more. Run <code>goclaw page</code> and open the link that it prints.</p>
    <p><button onClick=${() => location.reload()}>Try again</button></p></main>`;
}

function Help() {
  const rows = [...Object.entries(places).map(([key, p]) => [["g", key], views[p][0]]),
    [["/"], "Message, filter or search"], [["↑", "↓"], "Move in the run tree; earlier messages in an empty chat field"], [["←", "→"], "Fold and unfold in the run tree"],
    [["Enter"], "Open a run; send a message"], [["x"], "Cancel the run"], [["s"], "Steer the run that is open"], [["a"], "Run it again, with changes"],
    [["t"], "Light, dark, as the system"], [["Esc"], "Close; leave a field"], [["?"], "This list"]];
  return html`<${Dialog} title="Keyboard" close=${() => helpOpen.set(false)}>
    <p class="dim">Outside of fields. Everything here is also a button or a link.</p>
    <dl class="keys">${rows.map(([keys, what]) => html`<div><dt>${keys.map((k) => html`<kbd>${k}</kbd>`)}</dt><dd>${what}</dd></div>`)}</dl></${Dialog}>`;
}
