// Enrolling a node.

import { get, path, send } from "./api.js";
import { ask, choice, input } from "./dialog.js";
import { say } from "./notice.js";
import { newNode } from "./requests.js";
import { go, nodeLink } from "./route.js";

/** Asks what node it is, creates it with its port, and shows it. */
export async function askEnrol() {
  const { drivers } = await get(["v1", "drivers"]);
  ask({
    title: "Enrol a node",
    texts: ["The controller knows the node from then on. Its BMC is checked by manage, which comes next."],
    fields: [
      choice("driver", "Driver", drivers.map(({ name }) => [name, name])),
      input("name", "Name", { spellcheck: "false" }),
      input("mac", "MAC address of the NIC that it boots from", { placeholder: "52:54:00:12:34:56", spellcheck: "false" }),
      input("bmc_address", "Address of its BMC", { placeholder: "https://10.1.0.7", spellcheck: "false" }),
      input("bmc_username", "User of the BMC", { spellcheck: "false" }),
      input("bmc_password", "Password of the BMC", { type: "password", autocomplete: "new-password" }),
      input("owner", "Owner"),
      input("resource_class", "Resource class"),
      input("description", "Description"),
    ],
    act: "Enrol",
    send: enrol,
  });
}

/** When the port is refused the node is removed again: nothing is left half made. */
async function enrol(values) {
  const node = await send("POST", "/v1/nodes", newNode(values));
  const mac = values.get("mac").trim();
  if (mac) {
    try {
      await send("POST", "/v1/ports", { address: mac, node_uuid: node.uuid });
    } catch (refusal) {
      await send("DELETE", path(["v1", "nodes", node.uuid]));
      throw new Error(`The port was refused, and the node was removed again: ${refusal.message}`);
    }
  }
  say(`${node.name ?? node.uuid} is enrolled.`);
  go(nodeLink(node));
}
