import { html } from "../dom.js";
export function Cron() { return html`<div class="page"><h1>Cron</h1></div>`; }
