// The nodes that need an operator: why, and the ways out.

import { get } from "./api.js";
import { askVerb, change, unsetMaintenance } from "./actions.js";
import { time } from "./clock.js";
import { h } from "./dom.js";
import { count, sentence } from "./format.js";
import { complain } from "./notice.js";
import { button, label, nodeName, section, state } from "./parts.js";
import { canChange, may } from "./session.js";
import { nameOf } from "./verbs.js";

const WORDS = { failed: "failed", held: "held", overdue: "overdue", maintenance: "in maintenance" };
const POLICIES = {
  verb: "baremetal:node:set_provision_state",
  unset_maintenance: "baremetal:node:clear_maintenance",
  unset_retired: "baremetal:node:update:retired",
  unset_protected: "baremetal:node:update",
};

/** The section of a summary's `needs`. */
export function needs({ nodes, counts, more }) {
  const total = Object.values(counts).reduce((sum, number) => sum + number, 0);
  if (total === 0) return section("Needs you", h("p", { class: "empty good" }, "No node needs you."));
  const parts = Object.entries(counts).filter(([, number]) => number > 0);
  return section("Needs you",
    h("p", { class: "sum" }, parts.map(([kind, number]) => `${number.toLocaleString("en")} ${WORDS[kind]}`).join(", "), "."),
    h("ul", { class: "needs" }, nodes.map(need)),
    more && h("p", { class: "empty" }, `The first ${count(nodes.length, "node")}; the list below finds the others.`));
}

function need(node) {
  return h("li", { key: node.uuid, class: node.kind },
    h("div", { class: "who" }, nodeName(node), state(node.provision_state),
      node.kind === "overdue" && h("span", { class: "badge failed" }, "overdue"),
      node.maintenance && h("span", { class: "badge held" }, "maintenance"),
      h("span", { class: "since" }, time(node.since))),
    h("p", sentence(node.reason)),
    ways(node));
}

/** Buttons for what leads out, as far as the user may. Other commands are shown as they are typed. */
export function ways(node) {
  const commands = node.commands ?? node.help?.commands ?? [];
  const isAllowed = ({ action }) => !(action in POLICIES) || may(POLICIES[action]);
  const shown = commands.filter(isAllowed);
  if (shown.length === 0) return null;
  return h("ul", { class: "ways" }, shown.map((way) => h("li", { key: way.command }, action(node, way), h("span", way.does))));
}

function action(node, { action: kind, verb, command }) {
  const act = { verb: () => openVerb(node, verb), unset_maintenance: () => unsetMaintenance(node),
                unset_retired: () => change(node, { retired: false }, `${label(node)} is not retired any more.`),
                unset_protected: () => change(node, { protected: false }, `${label(node)} is not protected any more.`) }[kind];
  if (!act || !canChange()) return h("code", command);
  const text = verb ? nameOf(verb) : command.replace(/^anneal node /, "").replace(` ${label(node)}`, "");
  return button(text, guarded(act));
}

/** The dialog of a verb, if the user may say it now. */
async function openVerb(node, verb) {
  const { verbs } = await get(["v1", "anneal", "nodes", node.uuid, "rights"]);
  const row = verbs.find((one) => nameOf(one.verb) === nameOf(verb));
  if (!row) throw new Error(`${label(node)} does not take ${nameOf(verb)} any more.`);
  if (!row.allowed) throw new Error(row.why_not);
  await askVerb(node, row);
}

/** What fails is said, and nothing else happens. */
export function guarded(act) {
  return async () => {
    try {
      await act();
    } catch (error) {
      complain(error.message);
    }
  };
}
