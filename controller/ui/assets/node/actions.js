// The buttons of a node: what its state takes and its user may say.

import { askMaintenance, askPower, askVerb, unsetMaintenance } from "../actions.js";
import { h } from "../dom.js";
import { guarded } from "../needs.js";
import { button } from "../parts.js";
import { canChange } from "../session.js";
import { nameOf, powerName } from "../verbs.js";

/** The row of buttons; nothing for those who may only read. */
export function actions({ node, rights }) {
  if (!rights || !canChange()) return null;
  const allowed = rights.verbs.filter((row) => row.allowed).sort((a, b) => b.usual - a.usual);
  const verbs = allowed.map((row) => h("li", { key: row.verb }, verbButton(node, row)));
  const power = rights.power.filter((row) => row.allowed && changesPower(node, row)).map((row) =>
    h("li", { key: row.target }, button(powerName(row.target), guarded(() => askPower(node, row)))));
  const { set, unset } = rights.maintenance;
  const maintenance = node.maintenance
    ? unset && button("end maintenance", guarded(() => unsetMaintenance(node)))
    : set && button("maintenance", guarded(() => askMaintenance(node)));
  if (verbs.length + power.length === 0 && !maintenance) return null;
  return h("div", { class: "actions", key: "actions", role: "group", "aria-label": "What you can do" },
    verbs.length > 0 && h("ul", { "aria-label": "Verbs" }, verbs),
    (power.length > 0 || maintenance) && h("ul", { "aria-label": "Power and maintenance" }, power, maintenance && h("li", maintenance)),
    refused(rights));
}

/** Whether a target is another power than the node has; of one whose power is not known every target is. */
function changesPower({ power_state: is }, { target }) {
  if (is === "power on") return target !== "power on";
  return is !== "power off" || target === "power on";
}

function verbButton(node, row) {
  const look = row.usual ? "main" : row.risk ? "danger" : "";
  return h("button", { type: "button", class: look, title: row.does ?? null, onclick: guarded(() => askVerb(node, row)) },
    nameOf(row.verb));
}

/** What the state takes and something else forbids. */
function refused({ verbs }) {
  const rows = verbs.filter((row) => !row.allowed && row.why_not);
  if (rows.length === 0) return null;
  return h("details", h("summary", "Not possible now"),
    h("ul", rows.map((row) => h("li", { key: row.verb }, h("strong", nameOf(row.verb)), `: ${row.why_not}`))));
}
