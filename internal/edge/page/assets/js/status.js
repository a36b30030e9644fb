// What the gateway says of itself: read again now and then, and after whatever
// may change it.
import { cell } from "./cell.js";
import { get, put, remove, signedOut } from "./api.js";
import { onNotice, onResync } from "./feed.js";

export const status = cell(null);
export const statusError = cell(null);

let soon = 0, due = 0;

// readStatus reads it after so many milliseconds, or before, if that is planned:
// what changes all the time is read now and then all the same.
export function readStatus(after = 0) {
  const at = Date.now() + after;
  if (soon && due <= at) return;
  clearTimeout(soon);
  due = at;
  soon = setTimeout(async () => {
    soon = 0;
    try {
      status.set(await get("/api/status"));
      statusError.set(null);
    } catch (error) {
      statusError.set(error);
    }
  }, after);
}

onResync(() => readStatus());
onNotice((n) => { if (["run", "warning", "retry"].includes(n.kind)) readStatus(400); });
setInterval(() => { if (!document.hidden && !signedOut.get()) readStatus(); }, 30_000);

export async function pause(why) {
  await put("/api/pause", why ? { why } : {});
  readStatus();
}

export async function unpause() {
  await remove("/api/pause");
  readStatus();
}
