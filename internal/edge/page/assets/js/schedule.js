// Schedules in words, and what people type as one. Plain functions.
import { moment, span } from "./format.js";

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = ["", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const nicknames = { "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *" };

// inWords says when a job is due.
export function inWords(s) {
  switch (s?.kind) {
    case "at":
      return "once, " + moment(s.at);
    case "every":
      return "every " + tidy(span(s.everyMs));
    case "cron":
      return expression(s.expr) + (s.timezone ? `, ${s.timezone}` : "");
  }
  return "never";
}

const tidy = (text) => text.replace(/ 0+ [ms]$/, "").replace(/\.0 s$/, " s");

// expression words the common forms; any other is shown as it is written.
export function expression(text) {
  const fields = (nicknames[text] ?? text).trim().split(/\s+/);
  if (fields.length === 6 && fields[0] === "0") fields.shift();
  if (fields.length !== 5) return text;
  const [min, hour, dom, month, dow] = fields;
  const when = time(min, hour), day = dayWords(dom, month, dow);
  return when && day !== null ? [when, day].filter(Boolean).join(" ") : text;
}

function time(min, hour) {
  if (min === "*" && hour === "*") return "every minute";
  const step = /^\*\/(\d+)$/.exec(min);
  if (step && hour === "*") return `every ${step[1]} minutes`;
  if (/^\d+$/.test(min) && hour === "*") return min === "0" ? "every hour" : `every hour at :${min.padStart(2, "0")}`;
  const hours = /^\*\/(\d+)$/.exec(hour);
  if (/^\d+$/.test(min) && hours) return `every ${hours[1]} hours${min === "0" ? "" : ` at :${min.padStart(2, "0")}`}`;
  if (/^\d+$/.test(min) && /^\d+(,\d+)*$/.test(hour)) return "at " + join(hour.split(",").map((h) => `${h.padStart(2, "0")}:${min.padStart(2, "0")}`));
  const part = /^(\d+)-(\d+)$/.exec(hour);
  if (part && (step || min === "0")) return `${step ? `every ${step[1]} minutes` : "every hour"} from ${part[1].padStart(2, "0")}:00 to ${part[2].padStart(2, "0")}:59`;
  return "";
}

function dayWords(dom, month, dow) {
  if (dom === "*" && month === "*") return weekdays(dow);
  if (dow !== "*") return null;
  const inMonth = month === "*" ? "of each month" : /^\d+$/.test(month) ? "of " + months[Number(month)] : null;
  if (!inMonth) return null;
  if (dom === "L") return `on the last day ${inMonth}`;
  return /^\d+$/.test(dom) ? `on day ${dom} ${inMonth}` : null;
}

function weekdays(dow) {
  if (dow === "*") return "";
  if (/^(1-5|MON-FRI)$/i.test(dow)) return "Monday to Friday";
  if (/^(0,6|6,0|6-7|SAT,SUN)$/i.test(dow)) return "on weekends";
  const names = dow.split(",").map((d) => (/^[0-7]$/.test(d) ? days[Number(d) % 7] : days.find((n) => n.slice(0, 3).toUpperCase() === d.toUpperCase())));
  return names.every(Boolean) ? "on " + join(names) : null;
}

const join = (list) => (list.length < 2 ? list.join("") : list.slice(0, -1).join(", ") + " and " + list.at(-1));

// parseEvery reads 90s, 30m, 2h or 1d as milliseconds; 0 is none of them.
export function parseEvery(text) {
  const m = /^\s*(\d+(?:\.\d+)?)\s*(s|m|h|d)\w*\s*$/i.exec(text);
  return m ? Math.round(Number(m[1]) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[m[2].toLowerCase()]) : 0;
}

// writeEvery is what parseEvery reads.
export function writeEvery(ms) {
  for (const [unit, n] of [["d", 864e5], ["h", 36e5], ["m", 6e4]]) if (ms && ms % n === 0) return ms / n + unit;
  return ms ? ms / 1000 + "s" : "";
}
