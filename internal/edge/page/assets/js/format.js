// How numbers, times and texts are written. All are plain functions.

export function tokens(n) {
  if (n === undefined || n === null) return "–";
  if (n < 1000) return String(n);
  if (n < 9950) return (n / 1000).toFixed(1) + "k";
  if (n < 999_500) return Math.round(n / 1000) + "k";
  return (n / 1e6).toFixed(n < 9.95e6 ? 2 : 1) + "M";
}

export const exact = (n) => (n ?? 0).toLocaleString("en");

// count is a number of things: 1 turn, 2 turns.
export const count = (n, thing) => `${exact(n)} ${thing}${n === 1 ? "" : "s"}`;

export function cost(usage) {
  const usd = usage?.costUSD;
  if (usd === null || usd === undefined) return usage && usage.input + usage.output > 0 ? "?" : "–";
  return dollars(usd);
}

export function dollars(usd) {
  if (usd === 0) return "$0";
  if (usd < 0.0001) return "<$0.0001";
  return "$" + usd.toFixed(usd < 0.1 ? 4 : 2);
}

export const percent = (share) => (share === null || share === undefined ? "–" : Math.round(share * 100) + "%");

export function bytes(n) {
  if (n < 1024) return n + " B";
  if (n < 1024 * 1024) return (n / 1024).toFixed(n < 10240 ? 1 : 0) + " kB";
  return (n / 1024 / 1024).toFixed(1) + " MB";
}

// span writes a duration, with as many parts as one can take in.
export function span(ms) {
  if (ms < 0) ms = 0;
  if (ms < 1000) return Math.round(ms) + " ms";
  const s = ms / 1000;
  if (s < 10) return s.toFixed(1) + " s";
  if (s < 60) return Math.floor(s) + " s";
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} m ${pad(Math.floor(s % 60))} s`;
  const h = Math.floor(m / 60);
  if (h < 24) return `${h} h ${pad(m % 60)} m`;
  return `${Math.floor(h / 24)} d ${h % 24} h`;
}

const pad = (n) => String(n).padStart(2, "0");

// ticking is span without fractions that only flicker.
export const ticking = (ms) => (ms < 10_000 ? Math.max(0, Math.floor(ms / 1000)) + " s" : span(ms));

export const clock = (ms) => { const d = new Date(ms); return `${pad(d.getHours())}:${pad(d.getMinutes())}`; };
export const clockSeconds = (ms) => clock(ms) + ":" + pad(new Date(ms).getSeconds());
export const day = (ms) => { const d = new Date(ms); return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`; };

// moment is the time, and the day unless that is today.
export function moment(ms, now = Date.now()) {
  if (!ms) return "–";
  return day(ms) === day(now) ? clock(ms) : `${day(ms)} ${clock(ms)}`;
}

// relative says how far a moment is from now, roughly.
export function relative(ms, now = Date.now()) {
  const away = Math.abs(ms - now);
  const words = away < 45_000 ? "a moment" : away < 5_400_000 ? `${Math.round(away / 60_000)} min`
    : away < 129_600_000 ? `${Math.round(away / 3_600_000)} h` : `${Math.round(away / 86_400_000)} days`;
  return ms >= now ? `in ${words}` : `${words} ago`;
}

export const full = (ms) => (ms ? `${day(ms)} ${clockSeconds(ms)}` : "");

export const short = (id) => (id ?? "").slice(0, 8);

export function runName(run) {
  return clean(run.label || run.profile?.definition || (run.trigger === "spawn" ? short(run.runId) : oneLine(run.task, 90) || run.trigger));
}

// sessionName is what people call a session.
export function sessionName(key) {
  const p = key.split(":");
  if (p[2] === "main") return p[1] === "main" ? "main" : `${p[1]} · main`;
  const rest = p.slice(2).map((s) => { try { return decodeURIComponent(s); } catch { return s; } });
  const who = rest[0] === "api" ? `api · ${rest.slice(2).join(":")}` : rest.join(" · ");
  return p[1] === "main" ? who : `${p[1]} · ${who}`;
}

export function oneLine(text, max = 120) {
  const line = (text ?? "").replace(/\s+/g, " ").trim();
  return line.length > max ? line.slice(0, max - 1) + "…" : line;
}

// plain is markdown without its marks, for a line that only hints at a text.
export const plain = (text) => (text ?? "").replace(/^[ \t]*\|?[ :|-]*-{3}[ :|-]*$/gm, "").replace(/^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+/gm, "")
  .replace(/^\|(.*)\|[ \t]*$/gm, (_, row) => row.replaceAll("|", " ")).replace(/\*\*|`/g, "");

// escapes are sequences that steer terminals; a page has no use for them.
const escapes = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
// hidden are characters that reorder or hide what stands beside them.
const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]/g;

// clean makes a text safe to look at: what can't be seen, or makes others be
// seen wrongly, is written out.
export function clean(text) {
  return (text ?? "").replace(escapes, "").replace(/\r\n?/g, "\n").replace(hidden, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

// pretty lays JSON out; other text stays as it is.
export function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text ?? ""; }
}
