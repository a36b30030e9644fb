import { html } from "../dom.js";
export function Status() { return html`<div class="page"><h1>Status</h1></div>`; }
