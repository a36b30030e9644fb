// The field that messages are written in: drafts, earlier messages, commands.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../dom.js";
import { cell, useCell } from "../cell.js";
import { post, once } from "../api.js";
import { useKeys } from "../keys.js";
import { readStatus, status } from "../status.js";
import { Icon } from "../icons.js";
import { Failure, tell } from "../parts.js";

// answers are what the gateway answered by itself to commands in a session;
// they are no part of the record.
const perSession = new Map();
export function answers(session) {
  if (!perSession.has(session)) perSession.set(session, cell([]));
  return perSession.get(session);
}

const stored = (name, fallback) => { try { return JSON.parse(localStorage.getItem(name)) ?? fallback; } catch { return fallback; } };

// commands are the gateway's own list, read once from /help.
let commands = null;
async function readCommands(session) {
  if (commands) return commands;
  const { reply = "" } = await post("/api/messages", { session, text: "/help" });
  const seen = new Map();
  for (const line of reply.split("\n")) {
    const m = /^(\/[a-z]+)(.*)$/.exec(line.trim());
    if (m && !seen.has(m[1])) seen.set(m[1], m[2].trim());
  }
  return (commands = [...seen].map(([name, about]) => ({ name, about })));
}

export function Composer({ session, busy, workers, sent, answered, last }) {
  const draftKey = "draft:" + session, pastKey = "past:" + session;
  const [text, setText] = useState(() => stored(draftKey, ""));
  const [error, setError] = useState(null);
  const [list, setList] = useState([]);
  const [picked, setPicked] = useState(0);
  const field = useRef(null), back = useRef({ at: -1, draft: "" }), pending = useRef(null);
  const s = useCell(status);
  useKeys({ "/": () => field.current.focus() });

  const change = (value) => {
    setText(value);
    setPicked(0);
    if (value) localStorage.setItem(draftKey, JSON.stringify(value));
    else localStorage.removeItem(draftKey);
  };
  useLayoutEffect(() => {
    const el = field.current;
    el.style.height = "0";
    el.style.height = Math.min(el.scrollHeight, innerHeight * 0.4) + "px";
  }, [text]);
  useEffect(() => {
    if (text.startsWith("/")) readCommands(session).then(setList, () => {});
  }, [text.startsWith("/")]);
  useEffect(() => { if (matchMedia("(hover: hover)").matches) field.current.focus(); }, []);

  const word = /^\/[a-z]*$/.test(text) ? text : "";
  const choices = word ? list.filter((c) => c.name.startsWith(word) && c.name !== word) : [];

  const send = async (message = text) => {
    const said = message.trim();
    if (!said) return;
    const past = stored(pastKey, []).filter((p) => p !== said);
    localStorage.setItem(pastKey, JSON.stringify([...past, said].slice(-50)));
    back.current = { at: -1, draft: "" };
    // The same key until it is known to have arrived: a message is not said twice.
    if (pending.current?.text !== said) pending.current = { text: said, key: once() };
    change("");
    setError(null);
    try {
      const receipt = await post("/api/messages", { session, text: said, key: pending.current.key });
      pending.current = null;
      if (receipt.run) sent(receipt.run);
      else if (receipt.reply !== undefined) {
        note(session, { asked: said, text: receipt.reply, after: last });
        tell(receipt.reply);
        readStatus();
        answered(); // such as /new changes what is shown
      }
    } catch (e) {
      if (field.current && !field.current.value) change(said);
      setError(e);
    }
  };

  const keydown = (e) => {
    if (e.isComposing) return;
    if (choices.length && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
      e.preventDefault();
      setPicked((picked + (e.key === "ArrowDown" ? 1 : choices.length - 1)) % choices.length);
    } else if (choices.length && e.key === "Tab" && !e.shiftKey) {
      e.preventDefault();
      change(choices[picked].name + " ");
    } else if (e.key === "Enter" && !e.shiftKey) {
      e.preventDefault();
      send(choices.length ? choices[picked].name : text);
    } else if (e.key === "ArrowUp" || e.key === "ArrowDown") {
      recall(e);
    }
  };

  // recall goes through earlier messages, from a field that is empty or shows one.
  const recall = (e) => {
    const past = stored(pastKey, []), b = back.current;
    if ((b.at < 0 && text) || (b.at >= 0 && past[b.at] !== text) || past.length === 0) return;
    if (b.at < 0 && e.key === "ArrowDown") return;
    e.preventDefault();
    const next = b.at < 0 ? past.length - 1 : b.at + (e.key === "ArrowUp" ? -1 : 1);
    if (next < 0) return;
    b.at = next >= past.length ? -1 : next;
    change(b.at < 0 ? "" : past[b.at]);
  };

  return html`<form class="composer" onSubmit=${(e) => { e.preventDefault(); send(); }}>
    <${Failure} error=${error} />
    ${choices.length > 0 && html`<ul class="choices" id="choices" role="listbox" aria-label="Commands">${choices.map((c, i) => html`
      <li key=${c.name} id=${"choice-" + i} role="option" aria-selected=${i === picked} onMouseDown=${(e) => { e.preventDefault(); change(c.name + " "); field.current.focus(); }}><code>${c.name}</code><span>${c.about}</span></li>`)}</ul>`}
    <div class="box"><textarea ref=${field} rows="1" dir="auto" aria-label="Message" placeholder=${busy ? "Say more; it is read after this turn" : "Message, or / for commands"} value=${text}
        onInput=${(e) => change(e.target.value)} onKeyDown=${keydown} onKeyPress=${(e) => { if (e.key === "Enter" && !e.shiftKey) e.preventDefault(); }} aria-haspopup="listbox" aria-controls=${choices.length ? "choices" : undefined} aria-autocomplete="list"
        aria-activedescendant=${choices.length ? "choice-" + picked : undefined}></textarea>
      ${(busy || workers > 0) && html`<button type="button" class="round stop" aria-label=${busy ? "Stop the turn" : "Stop the workers"} title=${busy ? "Stop the turn" : "Stop the workers"} onClick=${() => send(busy ? "/stop" : "/stop all")}><${Icon} name="stop" /></button>`}
      <button class="round" aria-label="Send" title="Send (Enter)" disabled=${!text.trim()}><${Icon} name="send" /></button></div>
    <p class="hint"><span>${s ? s.model : ""}</span><span class="keys-hint"><kbd>Enter</kbd> sends · <kbd>Shift Enter</kbd> new line · <kbd>/</kbd> commands · <kbd>?</kbd> keys</span></p></form>`;
}

function note(session, answer) {
  const c = answers(session);
  c.set([...c.get(), { ...answer, key: once() }].slice(-40));
}
