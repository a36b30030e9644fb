import { html } from "../dom.js";
export function Memory() { return html`<div class="page"><h1>Memory</h1></div>`; }
