"""Checks what goclaw did against aimock: wire, outcome, a worker's steps, the server's log."""
import json
import sys

wire, outcome, steps, log = sys.argv[1:]
with open(outcome, encoding="utf-8") as f:
    out = json.load(f)
with open(steps, encoding="utf-8") as f:
    steps = f.read()
problems = []


def want(what, ok):
    if not ok:
        problems.append(what)


results = {r["label"]: (r["status"], r["result"]) for r in out["runs"]}
want("two completed workers, each with its report", results == {
    "tides": ("completed", "TIDES-REPORT: the sea rises and falls."),
    "glaciers": ("completed", "GLACIERS-REPORT: ice moves under its own weight."),
})
want("the user's turn and one announcement's turn", out["turns"] == 2)
want("both replies, the cut stream's text not among them", out["replies"] == [
    "STARTED: two workers.", "COMBINED: the sea rises and falls, and ice moves."])
want("a read that the worker was given", "Glaciers: ice moves under its own weight." in steps)
if problems:
    print(json.dumps(out, indent=1), steps, open(log, encoding="utf-8").read(), sep="\n")
    sys.exit(f"aimock on the {wire} wire: wanted " + "; ".join(problems))
print(f"aimock on the {wire} wire: two workers, one announcement turn, a 429 and a cut stream survived; "
      f"{out['usage']['input']} tokens in and {out['usage']['output']} out, as aimock counts")
