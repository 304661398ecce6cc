// What the controller keeps about the node, and the fields that people change most.

import { askDelete, change } from "../actions.js";
import { time } from "../clock.js";
import { ask, input } from "../dialog.js";
import { h } from "../dom.js";
import { cell } from "../format.js";
import { guarded } from "../needs.js";
import { button, facts, json, section, table } from "../parts.js";
import { go, link } from "../route.js";
import { canChange } from "../session.js";

// Fields to be changed, each with its policy.
const FIELDS = [
  ["name", "Name", "baremetal:node:update:name"],
  ["description", "Description", "baremetal:node:update"],
  ["owner", "Owner", "baremetal:node:update:owner"],
  ["lessee", "Lessee", "baremetal:node:update:lessee"],
  ["resource_class", "Resource class", "baremetal:node:update"],
  ["conductor_group", "Conductor group", "baremetal:node:update:conductor_group"],
];

/** The part "Settings". */
export function settings({ node, rights, read }) {
  const may = (policy) => canChange() && rights.policies.includes(policy);
  const fields = FIELDS.filter(([, , policy]) => may("baremetal:node:update") && may(policy));
  return [
    section("Facts", facts([
      ["UUID", h("code", node.uuid)], ["Driver", node.driver], ["Resource class", node.resource_class], ["Owner", node.owner],
      ["Lessee", node.lessee], ["Instance", [node.instance_name, node.instance_uuid].filter(Boolean).join(", ")],
      ["Conductor group", node.conductor_group], ["Shard", node.shard], ["Health", node.health], ["Protected", node.protected && "yes"],
      ["Retired", node.retired && (node.retired_reason ?? "yes")], ["Traits", node.traits?.join(", ")],
      ["Automated cleaning", { true: "on", false: "off" }[node.automated_clean] ?? "as configured"],
      ["Created", time(node.created_at)], ["Changed", node.updated_at && time(node.updated_at)],
    ]), h("div", { class: "actions" },
      fields.length > 0 && button("change", () => askChange(node, fields)),
      may("baremetal:node:update:retired") && retirement(node),
      rights.delete && canChange() && button("delete", () => askDelete(node, () => go(link(["nodes"]))), "danger"))),
    section("Interfaces", interfaces(node, read.validation)),
    ...["properties", "driver_info", "instance_info", "extra"].map((name) =>
      node[name] && Object.keys(node[name]).length > 0 &&
      section(name[0].toUpperCase() + name.slice(1).replace("_", " "), json(node[name]))),
    section("All fields", h("details", h("summary", "The node as the API returns it"), json(node))),
  ];
}

function askChange(node, fields) {
  ask({
    title: `Change ${node.name ?? node.uuid}`,
    fields: fields.map(([name, label]) => input(name, label, { value: node[name] ?? "", spellcheck: "false" })),
    act: "Change",
    send: async (values) => {
      const changed = fields.map(([name]) => [name, values.get(name).trim()]).filter(([name, value]) => value !== (node[name] ?? ""));
      if (changed.length === 0) throw new Error("Nothing is different.");
      await change(node, Object.fromEntries(changed), `${changed.map(([name]) => name).join(", ")} changed.`);
      window.dispatchEvent(new Event("hashchange"));
    },
  });
}

function retirement(node) {
  if (node.retired) return button("end retirement", guarded(() => change(node, { retired: false }, "The node is not retired any more.")));
  return button("retire", () => ask({
    title: `Retire ${node.name ?? node.uuid}?`,
    texts: ["A retired node is never made available again until its retirement is ended."],
    fields: [input("reason", "Why")],
    act: "Retire",
    send: async (values) => {
      const reason = values.get("reason").trim();
      await change(node, { retired: true, ...(reason ? { retired_reason: reason } : {}) }, "The node is retired.");
    },
  }));
}

function interfaces(node, validation) {
  const names = Object.keys(node).filter((key) => key.endsWith("_interface")).map((key) => key.replace("_interface", "")).sort();
  const result = (name) => ({ true: "ok", false: "not ok" })[validation?.[name]?.result] ?? "unsupported";
  const rows = names.map((name) => [name, cell(node[`${name}_interface`]), validation ? result(name) : "–", cell(validation?.[name]?.reason)]);
  return table("Interfaces", ["Interface", "Implementation", "Result", "Reason"], rows);
}
