import { html } from "../dom.js";
export function Run() { return html`<div class="page"><h1>Run</h1></div>`; }
