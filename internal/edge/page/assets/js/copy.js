// What a button copies, and the button.
import { html, useEffect, useRef, useState } from "./dom.js";
import { Icon } from "./icons.js";

// copied puts a text on the clipboard, which browsers have only for pages of
// this machine or over TLS. Elsewhere it selects what is shown: one key copies it.
async function copied(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied";
  } catch {
    if (!shown) return "Not allowed here";
    getSelection().selectAllChildren(shown);
    return "Selected";
  }
}

// Copy is a button that says for a moment what it did.
export function Copy({ text, shown, label = "Copy", cls = "" }) {
  const [did, setDid] = useState("");
  useEffect(() => {
    const timer = did ? setTimeout(() => setDid(""), 2000) : 0;
    return () => clearTimeout(timer);
  }, [did]);
  return html`<button type="button" class=${"copy " + cls} aria-label=${label} title=${label} onClick=${async () => setDid(await copied(text, shown?.current))}>
    <${Icon} name=${did ? "check" : "copy"} /><span role="status">${did}</span></button>`;
}

// Copyable is something with a button that copies it, over its corner.
export function Copyable({ text, label, children }) {
  const shown = useRef(null);
  return html`<div class="copyable"><div ref=${shown}>${children}</div><${Copy} text=${text} shown=${shown} label=${label} /></div>`;
}
