import { html } from "../dom.js";
export function Definitions() { return html`<div class="page"><h1>Definitions</h1></div>`; }
