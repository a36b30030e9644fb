import { html } from "../dom.js";
export function Usage() { return html`<div class="page"><h1>Usage</h1></div>`; }
