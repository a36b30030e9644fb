// The drawings of buttons and places.
import { html } from "./dom.js";

const paths = {
  chat: "M3 4.500h10v6.500H7.500L4.500 13.500V11H3z",
  runs: "M3 4h4M6 8h4M9 12h4M4.500 4v4H6M7.500 8v4H9",
  definitions: "M4 2.500h5.500L12.500 5.500v8H4zM6 8h4.500M6 10.500h4.500",
  cron: "M8 2.500a5.500 5.500 0 1 0 .01 0M8 5v3.200l2.200 1.500",
  usage: "M3 13.500h10M4.500 11.500v-3M8 11.500V4M11.500 11.500V6.500",
  parked: "M3 3.500h10v9H3zM3 9h3l.8 1.500h2.400L10 9h3",
  memory: "M7 2.500a4.500 4.500 0 1 0 .01 0M10.300 10.300l3.200 3.200",
  status: "M2 8.500h3l1.500-4 3 7.500 1.500-3.500H14",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
  close: "M4 4l8 8M12 4l-8 8",
  send: "M8 13V3.500M4 7.200 8 3.200l4 4",
  stop: "M5 5h6v6H5z",
  sun: "M8 5.200a2.800 2.800 0 1 0 .01 0M8 1.500V3M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1",
  moon: "M12.800 9.800A5.500 5.500 0 0 1 6.200 3.200a5.500 5.500 0 1 0 6.600 6.600z",
  auto: "M8 2.500a5.500 5.500 0 1 0 .01 0M8 2.500v11",
  copy: "M6 5.500h7v8H6zM10 5.500v-3H3v8h3",
  check: "M3.500 8.500l3 3 6-7",
  plus: "M8 3.500v9M3.500 8h9",
  down: "M8 3v9.500M4 8.800l4 4 4-4",
};

export function Icon({ name }) {
  return html`<svg class="ico" viewBox="0 0 16 16" aria-hidden="true"><path d=${paths[name]} /></svg>`;
}
