import { html } from "../dom.js";
export function Parked() { return html`<div class="page"><h1>Parked</h1></div>`; }
