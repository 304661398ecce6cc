// What is done to a node: the question, the request, and a sentence when the controller has accepted it.

import { get, path, send } from "./api.js";
import { ask, choice, input } from "./dialog.js";
import { h } from "./dom.js";
import { sentence } from "./format.js";
import { deployment, stepsOf } from "./requests.js";
import { say } from "./notice.js";
import { fieldsOf, loses, nameOf, powerName } from "./verbs.js";
import { label } from "./parts.js";

const node = (uuid, ...rest) => ["v1", "nodes", uuid, ...rest];

/** Asks for a verb, with a row of the node's rights. */
export async function askVerb(of, row) {
  const name = nameOf(row.verb);
  const wants = fieldsOf(row.verb);
  const kind = row.verb === "service" ? "service" : "cleaning";
  const [offered, runbooks] = wants.includes("steps") ? await Promise.all([steps(of, kind), books()]) : [[], []];
  const inputs = { image: imageFields, steps: () => stepFields(offered, runbooks, row), password: passwordFields, reason: reasonFields };
  ask({
    title: `${name} ${label(of)}?`,
    texts: [row.does && sentence(row.does), row.question && `Mind that ${row.question}.`],
    fields: wants.flatMap((want) => inputs[want]()),
    typed: loses(row.risk) ? label(of) : null,
    danger: row.risk !== null,
    act: name,
    send: (values) => sendVerb(of, row.verb, values),
  });
}

async function sendVerb(of, verb, values) {
  const body = { target: verb };
  const wants = fieldsOf(verb);
  if (wants.includes("steps")) Object.assign(body, stepsOf(verb, values));
  if (wants.includes("reason")) body.reason = values.get("reason");
  if (wants.includes("password")) body.rescue_password = values.get("password");
  if (wants.includes("image")) {
    const patch = deployment(values, (await get(node(of.uuid), { fields: "instance_info" })).instance_info ?? {});
    if (patch.length > 0) await send("PATCH", path(node(of.uuid)), patch);
  }
  await send("PUT", path(node(of.uuid, "states", "provision")), body);
  say(`${nameOf(verb)} of ${label(of)} is accepted.`);
}

const reasonFields = () => [input("reason", "Why this is right", { required: true }, "Kept in the node's history.")];

const passwordFields = () => [
  input("password", "Password of the user rescue", { type: "password", required: true, autocomplete: "new-password" },
    "The controller keeps its hash alone."),
];

const imageFields = () => [
  input("image", "Image", { placeholder: "https://images.example/debian.qcow2" },
    "The URL of a whole-disk image. Empty: what the node's instance_info names already."),
  input("checksum", "Checksum", { spellcheck: "false" }, "A SHA-256 or SHA-512 digest, or the URL of a list of digests."),
];

function stepFields(offered, runbooks, row) {
  const add = (event) => {
    const text = document.getElementById("field-steps");
    if (event.target.value) text.value = appended(text.value, JSON.parse(event.target.value));
    event.target.value = "";
  };
  const options = offered.map(({ interface: of, step, args }) => {
    const needed = args.filter((arg) => arg.required).map((arg) => [arg.name, ""]);
    const chosen = { interface: of, step, ...(needed.length > 0 ? { args: Object.fromEntries(needed) } : {}) };
    return [JSON.stringify(chosen), `${of}.${step}`];
  });
  const books = runbooks.map((book) => [book.uuid, book.name]);
  return [
    choice("add", "Add a step that the node offers", [["", "choose …"], ...options], { onchange: add }),
    input("steps", `Steps of ${row.verb}, in this order`, { rows: "8", spellcheck: "false", class: "code" },
      'A JSON list of {"interface", "step", "args"}.'),
    books.length > 0 && choice("runbook", "Or the steps of a runbook", [["", "none"], ...books]),
  ].filter(Boolean);
}

function appended(text, step) {
  let list = [];
  try {
    list = text.trim() ? JSON.parse(text) : [];
  } catch {
    return text;
  }
  return JSON.stringify([...list, step], null, 1);
}

/** The steps that the node offers; before its agent was seen for the first time, those that are known without it. */
async function steps(of, kind) {
  try {
    const answer = await get(node(of.uuid, kind, "steps"));
    return Array.isArray(answer) ? answer : answer.steps;
  } catch {
    return [];
  }
}

async function books() {
  try {
    return (await get(["v1", "runbooks"])).runbooks;
  } catch {
    return [];
  }
}

/** Asks for a change of power, with a row of the node's rights. */
export function askPower(of, row) {
  const change = async () => {
    await send("PUT", path(node(of.uuid, "states", "power")), { target: row.target });
    say(`${powerName(row.target)} of ${label(of)} is accepted.`);
  };
  ask({
    title: `${powerName(row.target)} ${label(of)}?`,
    texts: [row.question && `Mind that ${row.question}.`],
    danger: row.risk !== null,
    act: powerName(row.target),
    send: change,
  });
}

/** Asks for maintenance, and for its reason. */
export function askMaintenance(of) {
  ask({
    title: `Maintenance of ${label(of)}`,
    texts: ["No workload is put on a node in maintenance. It goes on with what is under way."],
    fields: [input("reason", "Why")],
    act: "Set maintenance",
    send: async (values) => {
      await send("PUT", path(node(of.uuid, "maintenance")), { reason: values.get("reason") });
      say(`${label(of)} is in maintenance.`);
    },
  });
}

/** Ends the maintenance. */
export async function unsetMaintenance(of) {
  await send("DELETE", path(node(of.uuid, "maintenance")));
  say(`The maintenance of ${label(of)} has ended.`);
}

/** Sets fields of a node, and says what was done. */
export async function change(of, fields, done) {
  await send("PATCH", path(node(of.uuid)), patchOf(fields));
  say(done);
}

/** A JSON Patch that sets fields; one without a value is removed. */
const patchOf = (fields) =>
  Object.entries(fields).map(([name, value]) =>
    value === null || value === "" ? { op: "remove", path: `/${name}` } : { op: "add", path: `/${name}`, value });

/** Asks whether a disk has left the node. */
export function askRetireDisk(of, disk) {
  const serial = disk.serial ?? disk.wwn;
  ask({
    title: `Retire disk ${serial}?`,
    texts: ["Accept that the disk has left the node: the next erase need not report it. The next certificate names it."],
    fields: [input("reason", "Why it has left, and where to", { required: true })],
    typed: serial,
    danger: true,
    act: "Retire the disk",
    send: async (values) => {
      const body = { disk: serial, reason: values.get("reason") };
      await send("POST", path(["v1", "anneal", "nodes", of.uuid, "disks", "retire"]), body);
      say(`Disk ${serial} is retired.`);
    },
  });
}

/** Asks whether the controller is to forget the node. */
export function askDelete(of, then) {
  ask({
    title: `Delete ${label(of)}?`,
    texts: [
      "The controller forgets the node with its ports and its history. Its disks and its certificates stay as they are.",
      h("span", "To take it out of use and erase it, ask for ", h("strong", "undeploy"), " or ", h("strong", "clean"), " instead."),
    ],
    typed: label(of),
    danger: true,
    act: "Delete the node",
    send: async () => {
      await send("DELETE", path(node(of.uuid)));
      say(`${label(of)} is deleted.`);
      then();
    },
  });
}
