// Plots of bars: upright over days, lying for names. The table beside each has
// the same numbers, so that the picture itself is one image to a reader.
import { html } from "../dom.js";

export function Bars(props) {
  return props.upright ? html`<${Upright} ...${props} />` : html`<${Lying} ...${props} />`;
}

const total = (r, parts) => parts.reduce((n, [, value]) => n + value(r), 0);

// nice is the next round number.
function nice(n) {
  if (n <= 0) return 1;
  const p = 10 ** Math.floor(Math.log10(n));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((m) => m * p >= n) * p;
}

function Upright({ list, parts, write, label }) {
  const top = nice(Math.max(...list.map((r) => total(r, parts))));
  const w = 600, h = 150, step = w / list.length, gap = Math.min(step * 0.28, 6);
  const wide = Math.min(step - gap, 44);
  const each = Math.ceil(list.length / 6);
  return html`<div class="plot"><div class="yaxis" aria-hidden="true"><span>${write(top)}</span><span>${write(top / 2)}</span><span>0</span></div>
    <svg viewBox=${`0 0 ${w} ${h}`} preserveAspectRatio="none" role="img" aria-label=${`${label}; the table has the numbers`}>
      ${[0, 0.5, 1].map((y) => html`<line class="gridline" x1="0" x2=${w} y1=${h * y} y2=${h * y} />`)}
      ${list.map((r, i) => html`<${Column} key=${r.name} row=${r} parts=${parts} x=${i * step + (step - wide) / 2} wide=${wide} scale=${h / top} floor=${h} title=${`${r.name}: ${write(total(r, parts), r)}`} />`)}</svg>
    <div class="xaxis" aria-hidden="true">${list.map((r, i) => (list.length - 1 - i) % each === 0 && html`<span key=${r.name} style=${{ left: ((i + 0.5) / list.length) * 100 + "%" }}>${r.name.slice(5)}</span>`)}</div></div>`;
}

function Column({ row, parts, x, wide, scale, floor, title }) {
  let y = floor;
  return html`<g>${parts.map(([cls, value]) => {
    const tall = value(row) * scale;
    y -= tall;
    return tall > 0 && html`<rect key=${cls} class=${cls} x=${x} y=${y} width=${wide} height=${tall} />`;
  })}<title>${title}</title></g>`;
}

function Lying({ list, parts, write, label }) {
  const most = Math.max(...list.map((r) => total(r, parts))) || 1;
  return html`<div role="img" aria-label=${`${label}; the table has the numbers`}><ul class="lying" aria-hidden="true">${list.slice(0, 20).map((r) => html`<li key=${r.name}><span class="name" title=${r.name}><bdi>${r.name}</bdi></span>
    <svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><${Row} row=${r} parts=${parts} scale=${1000 / most} /></svg><span class="num">${write(total(r, parts), r)}</span></li>`)}</ul></div>`;
}

function Row({ row, parts, scale }) {
  let x = 0;
  return html`<g>${parts.map(([cls, value]) => {
    const at = x, w = value(row) * scale;
    x += w;
    return w > 0 && html`<rect key=${cls} class=${cls} x=${at} y="0" width=${Math.max(w, 2)} height="10" />`;
  })}</g>`;
}
