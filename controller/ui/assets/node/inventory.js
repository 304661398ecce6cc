// What hardware it is, as an inspection found it. An out-of-band inspection finds fewer fields than an agent.

import { time } from "../clock.js";
import { h } from "../dom.js";
import { bytes, cell } from "../format.js";
import { guarded } from "../needs.js";
import { askRetireDisk } from "../actions.js";
import { button, facts, json, section, table } from "../parts.js";
import { canChange } from "../session.js";
import { neighbour } from "./lldp.js";

/** The part "Inventory". */
export function inventory({ node, rights, read }) {
  if (read.inventory === undefined) return null;
  const found = read.inventory;
  return [
    found ? hardware(node, found) : section("Inventory",
      h("p", { class: "empty" }, "No inspection has found out yet what hardware it is. ", h("strong", "inspect"), " does.")),
    ports(read.ports),
    known(node, rights, read.disks),
  ];
}

function hardware(node, { inventory: of, plugin_data: more }) {
  return [
    section("Machine",
      facts([...machine(of), ["Found by", reporters(more)], ["Inspected", node.inspection_finished_at && time(node.inspection_finished_at)]])),
    section("Disks", table("Disks", ["Disk", "Size", "Kind", "Model", "Serial", "WWN"], (of.disks ?? []).map(disk))),
    section("Network interfaces", table("Network interfaces",
      ["Interface", "MAC", "Link", "Speed", "IPv4", "IPv6", "Driver", "Switch", "Switch port", "VLAN"],
      (of.interfaces ?? []).map((one) => nic(one, more)))),
    section("All that was found", h("details", h("summary", "Inventory as JSON"), json(of)),
      more && Object.keys(more).length > 0 && h("details", h("summary", "What collectors and hardware managers added"), json(more))),
  ];
}

function machine(of) {
  const { system_vendor: vendor = {}, cpu = {}, memory = {}, boot = {} } = of;
  const firmware = vendor?.firmware ?? {};
  const joined = (...parts) => parts.filter(Boolean).join(", ");
  return [
    ["Vendor", joined(vendor?.manufacturer, vendor?.product_name, vendor?.serial_number && `serial number ${vendor.serial_number}`)],
    ["Firmware", joined(firmware.vendor, firmware.version, firmware.build_date && `of ${firmware.build_date}`)],
    ["CPU", joined(cpu?.model_name, cpu?.architecture, cpu?.count && `${cpu.count} logical`, cpu?.socket_count && `sockets: ${cpu.socket_count}`,
      cpu?.frequency && `${cpu.frequency} MHz`)],
    ["Memory", joined(memory?.total && bytes(memory.total), memory?.physical_mb && `${memory.physical_mb} MiB fitted`)],
    ["Boot", joined(boot?.current_boot_mode, boot?.pxe_interface && `by ${boot.pxe_interface}`)],
    ["BMC", joined(of.bmc_address, of.bmc_v6address, of.bmc_mac)],
    ["Host name", of.hostname],
  ];
}

function reporters(more) {
  const managers = (more?.configuration?.managers ?? []).map(({ name, version }) => `${name} ${version}`);
  const drivers = ["redfish", "fake"].filter((driver) => more?.[driver]);
  return [...managers, ...drivers].join(", ");
}

function disk(of) {
  const media = { true: "rotational", false: "solid state" }[of.rotational];
  const kind = [of.tran, media].filter(Boolean).join(", ");
  return [of.name, of.size ? bytes(of.size) : "–", cell(kind), cell(of.model), cell(of.serial), cell(of.wwn)];
}

function nic(of, more) {
  const at = neighbour(more?.lldp_raw?.[of.name] ?? of.lldp);
  const link = { true: "up", false: "down" }[of.has_carrier] ?? "–";
  return [
    cell(of.name), cell(of.mac_address), link, of.speed_mbps ? `${of.speed_mbps} Mb/s` : "–", cell(of.ipv4_address), cell(of.ipv6_address),
    cell(of.driver), cell(at?.system ?? at?.chassis), cell([at?.port, at?.description].filter(Boolean).join(", ")), cell(at?.vlan),
  ];
}

function ports(answer) {
  if (!answer) return null;
  const rows = answer.ports.map((port) => {
    const { switch_info: system, port_id: port_name } = port.local_link_connection ?? {};
    return { key: port.uuid, cells: [port.address, port.pxe_enabled ? "yes" : "no", cell(port.physical_network), cell(system), cell(port_name)] };
  });
  return section("Ports", table("Ports", ["MAC", "Boots from it", "Physical network", "Switch", "Switch port"], rows,
    { empty: "The node has no port: nothing says which NIC is its own." }));
}

function known(node, rights, disks) {
  if (!disks || disks.known.length + disks.retired.length === 0) return null;
  const canRetire = canChange() && rights.policies.includes("anneal:node:disks:retire");
  const row = (state) => (disk) => [
    cell(disk.serial), cell(disk.wwn), cell(disk.model), state, cell(disk.reason),
    state === "known" && canRetire ? button("retire", guarded(() => askRetireDisk(node, disk))) : "–",
  ];
  return section("Disks by certificates", table("Disks by certificates", ["Serial", "WWN", "Model", "State", "Reason", "Action"],
    [...disks.known.map(row("known")), ...disks.retired.map(row("retired"))]));
}
