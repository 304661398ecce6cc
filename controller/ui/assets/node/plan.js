// What an erase would do to each disk, asked before it is started.

import { path, send } from "../api.js";
import { askVerb } from "../actions.js";
import { h } from "../dom.js";
import { bytes, cell, duration } from "../format.js";
import { guarded } from "../needs.js";
import { button, facts, section, table } from "../parts.js";
import { canChange } from "../session.js";

const STEPS = ["erase_devices", "erase_devices_express", "erase_devices_metadata"];

/** The part "Plan of an erase". */
export function plan(page) {
  return [
    section("Plan of an erase",
      h("p", "The agent on the node looks at every disk and says what an erase would do to it. Nothing is written. ",
        "It needs a running agent without a step: put a hold before the erase, and ask for the plan during the hold."),
      form(page),
      page.planRefused && h("p", { class: "error", role: "alert" }, page.planRefused),
      holdButton(page),
      page.plan && answer(page.plan)),
    section("Disks that the next erase must report", known(page.read.disks)),
  ];
}

function form(page) {
  const request = async (event) => {
    event.preventDefault();
    const values = new FormData(event.target);
    try {
      const level = values.get("level");
      const body = { step: values.get("step"), args: level ? { level } : null };
      page.plan = await send("POST", path(["v1", "anneal", "nodes", page.uuid, "erase_plan"]), body);
      page.planRefused = null;
    } catch (refusal) {
      Object.assign(page, { plan: null, planRefused: refusal.message });
    }
    page.redraw();
  };
  return h("form", { class: "row", onsubmit: request },
    h("label", { for: "plan-step" }, "Step"),
    h("select", { id: "plan-step", name: "step" }, STEPS.map((step) => h("option", { value: step }, step))),
    h("label", { for: "plan-level" }, "Level"),
    h("select", { id: "plan-level", name: "level" },
      [["", "as configured"], ["clear", "clear"], ["purge", "purge"]].map(([value, text]) => h("option", { value }, text))),
    h("button", { type: "submit", class: "main" }, "Show the plan"));
}

/** Where the node takes `clean`, the way to a hold before an erase. */
function holdButton({ node, rights }) {
  const row = rights.verbs.find((one) => one.verb === "clean" && one.allowed);
  if (!row || !canChange()) return null;
  const begin = async () => {
    await askVerb(node, row);
    const hold = ["hold", "erase_devices"].map((step) => ({ interface: "deploy", step }));
    document.getElementById("field-steps").value = JSON.stringify(hold, null, 1);
  };
  return h("p", button("clean with a hold before the erase", guarded(begin)));
}

function answer(of) {
  const rows = of.disks.flatMap((disk) => {
    const names = [disk.device, cell(disk.serial), disk.size ? bytes(disk.size) : "–", decision(disk)];
    if (!disk.methods?.length) return [[...names, "–", "–", "–", cell(disk.reason)]];
    return disk.methods.map((method, place) => [
      ...(place === 0 ? names : [disk.device, "", "", ""]),
      method.method, cell(method.level), method.estimate_s ? duration(method.estimate_s) : "–", cell(method.reason),
    ]);
  });
  return [
    of.refuses && h("p", { class: "error", role: "alert" }, "The run would be refused because of the disks below that say so."),
    table("Plan", ["Device", "Serial", "Size", "Decision", "Method", "Level", "Takes", "Reason"], rows, { empty: "The node has no disk." }),
    facts([["Estimate without reading back", of.estimate_s && duration(of.estimate_s)],
           ["Deadline of the step", of.deadline_s && duration(of.deadline_s)]]),
  ];
}

// The decision about a disk has this name on the wire.
const decision = (disk) => cell(disk.fate); // wording: wire name

function known(disks) {
  if (!disks) return h("p", { class: "empty" }, "Nothing is known about the node's disks.");
  const rows = disks.known.map((disk) => [cell(disk.serial), cell(disk.wwn), cell(disk.model)]);
  return table("Known disks", ["Serial", "WWN", "Model"], rows, { empty: "No certificate names a disk of the node yet." });
}
