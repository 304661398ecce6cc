// What happened to the node, the newest first.

import { time } from "../clock.js";
import { h } from "../dom.js";
import { duration } from "../format.js";
import { section, table } from "../parts.js";

/** The part "History". */
export function history({ read }) {
  if (read.history === undefined) return null;
  if (read.history === null) return h("p", { class: "empty" }, "You may not see the history.");
  const newest = [...read.history.history].sort((a, b) => b.created_at.localeCompare(a.created_at));
  const rows = newest.map((event) => ({
    key: event.uuid,
    cells: [
      time(event.created_at),
      [event.severity === "ERROR" && h("span", { class: "badge failed" }, "error"), " ", event.event],
      event.duration_seconds ? duration(event.duration_seconds) : "–",
      who(event),
    ],
  }));
  return section("History", table("History", ["At", "Event", "Took", "Asked by"], rows, { empty: "Nothing has happened yet." }));
}

/** The user whose request caused it, and from where it came. */
function who({ user, project, anneal }) {
  const parts = [user, project && `project ${project}`, anneal?.address && `from ${anneal.address}`].filter(Boolean);
  return parts.length > 0 ? h("span", { title: anneal?.request_id ?? null }, parts.join(", ")) : "–";
}
