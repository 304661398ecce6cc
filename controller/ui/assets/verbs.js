// The verbs that the controller offers for a node, under the names of the command line, and what each asks for. Pure.

// Some verbs have other names in the API: that of the state they lead to.
const NAMES = { active: "deploy", deleted: "undeploy", available: "override" };
const FIELDS = {
  deploy: ["image"],
  rebuild: ["image"],
  clean: ["steps"],
  service: ["steps"],
  rescue: ["password"],
  override: ["reason"],
};
const LOSES = ["erase", "overwrite", "trust", "forget"];

/** The verb of a target as `anneal node` and docs/provisioning.md call it. */
export const nameOf = (target) => NAMES[target] ?? target;

/** A target of power as `anneal node power` calls it. */
export const powerName = (target) => target.replace("rebooting", "reboot");

/** What its dialog asks for: `image`, `steps`, `password`, `reason`. */
export const fieldsOf = (target) => FIELDS[nameOf(target)] ?? [];

/** Whether it takes something away for good: then the node's name is typed. */
export const loses = (risk) => LOSES.includes(risk);
