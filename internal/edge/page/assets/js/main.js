import { html, render } from "./dom.js";
import { connect } from "./feed.js";
import { Shell } from "./shell.js";

render(html`<${Shell} />`, document.getElementById("app"));
connect();
