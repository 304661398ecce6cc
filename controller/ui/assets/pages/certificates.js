// Certificates: of a node, and one with all that it says.

import { get } from "../api.js";
import { time } from "../clock.js";
import { h } from "../dom.js";
import { bytes, cell } from "../format.js";
import { records } from "../node/certificates.js";
import { facts, loading, section, table } from "../parts.js";
import { link } from "../route.js";

const PATH = ["v1", "anneal", "certificates"];

/** Certificates of a node whose name is in the query, and the key that all are verified with. */
export function certificateList(redraw) {
  const page = { key: null, list: null, node: null, error: null };
  return {
    title: () => "Certificates",
    go: async ({ query }) => {
      Object.assign(page, { node: query.get("node"), list: null, error: null });
      page.key ??= await get(["v1", "anneal", "certificate_key"]);
      try {
        page.list = page.node ? (await get(PATH, { node: page.node })).certificates : null;
      } catch (refusal) {
        page.error = refusal.message;
      }
      redraw();
    },
    view: () => (page.key ? listView(page) : loading()),
    close: () => {},
  };
}

function listView({ key, list, node, error }) {
  const find = (event) => {
    event.preventDefault();
    const text = new FormData(event.target).get("node").trim();
    location.hash = /^[0-9a-f]{64}$/.test(text) ? link(["certificates", text]) : link(["certificates"], { node: text });
  };
  const rows = (list ?? []).map((one) => ({
    key: one.id,
    cells: [h("a", { href: link(["certificates", one.id]) }, `Certificate ${one.number}`), cell(one.finding), time(one.issued_at), h("code", one.id)],
  }));
  return [
    h("h1", { key: "title" }, "Certificates"),
    h("form", { class: "search", key: "search", role: "search", onsubmit: find },
      h("label", { for: "certificate-node" }, "Node (name or UUID), or id of a certificate"),
      h("input", { id: "certificate-node", name: "node", type: "search", value: node ?? "", spellcheck: "false", required: true }),
      h("button", { type: "submit" }, "Show")),
    error && h("p", { class: "error", role: "alert" }, error),
    list && section(`Certificates of ${node}`, table("Certificates", ["Number", "Finding", "Issued", "Id"], rows,
      { empty: "It has no certificate." })),
    section("Key of this controller",
      h("p", "With this key and the file alone, anyone can verify a certificate: ",
        h("code", "anneal certificate verify FILE --key KEY")),
      h("pre", { tabindex: "0" }, key.key),
      h("p", h("a", { href: "/v1/anneal/certificate_key", download: "certificate-key.json" }, "Download the key with its changes"))),
  ];
}

/** One certificate, as far as the controller has verified it. */
export function certificatePage(id, redraw) {
  const page = { id, verification: null };
  return {
    title: () => "Certificate",
    go: async () => {
      page.verification = await get([...PATH, id, "verification"]);
      redraw();
    },
    view: () => (page.verification ? oneView(page) : loading()),
    close: () => {},
  };
}

function oneView({ id, verification: { good, text, refused, certificate: says, evidence } }) {
  const file = `certificate-${id.slice(0, 12)}.json`;
  return [
    h("div", { class: "headline", key: "headline" },
      h("h1", says ? `Certificate ${says.number}` : "Certificate"),
      says && h("span", { class: `badge ${says.finding === "failed" ? "failed" : "good"}` }, says.finding.replaceAll("_", " "))),
    section("Verification",
      good ? h("p", h("span", { class: "badge good" }, "verified"), ` It is ${text}.`)
        : h("p", { class: "error", role: "alert" }, `It does not hold (${refused}): ${text}. Do not rely on it.`),
      h("p", h("a", { href: `/v1/anneal/certificates/${id}`, download: file, class: "main button" }, "Download the certificate")),
      h("p", { class: "sum" }, "Without trust in this page, the file is verified by ",
        h("code", `anneal certificate verify ${file} --key KEY`))),
    good && section("What it says", facts(contents(id, says, evidence))),
    good && (evidence.deployed ? section("Deployment", facts(deployed(evidence.deployed, says)))
      : section("Disks", records("Disks", evidence.disks))),
  ];
}

function contents(id, says, evidence) {
  const { node, run, place, controller } = says;
  const { machine, step, manager, agent } = evidence;
  const by = run.requested_by ?? {};
  const joined = (...parts) => parts.filter(Boolean).join(", ");
  const boots = { observed: "power-off observed", not_observed: "power-off not observed" };
  return [
    ["Id", h("code", id)],
    ["Previous", says.previous ? h("a", { href: link(["certificates", says.previous]) }, h("code", says.previous)) : "none"],
    ["Issued", time(says.issued_at)],
    ["Controller", `${controller.name} ${controller.version}`],
    ["Node", h("a", { href: link(["nodes", node.uuid]) }, node.name ?? node.uuid)],
    ["Machine", [machine.manufacturer, machine.product_name, machine.serial_number].filter(Boolean).join(" ")],
    ["Place", place ? joined(place.site, place.within, place.description) : "not stated"],
    ["Run", `${run.kind} ${run.id}`],
    ["Requested by", joined(by.user && `user ${by.user}`, by.project && `project ${by.project}`, by.address && `address ${by.address}`,
      by.request_id && `request ${by.request_id}`) || "not known"],
    ["Boots", boots[run.power_off] ?? "not stated"],
    ["Step", `${step.interface}.${step.step}`],
    ["Error", evidence.error ?? "none"],
    ["Manager", `${manager.name} ${manager.version}`],
    ["Agent", `${agent.version}, boot ${agent.boot_id}`],
    ["Agent's key", h("code", says.evidence_key)],
    ...(evidence.ignored_controllers ?? []).map((one) => ["Ignored controller", `${one.address} (${one.ids}): ${one.reason}`]),
    ...(says.retired_disks ?? []).map((disk) => ["Retired disk", `${disk.serial ?? disk.wwn}, ${disk.at}: ${disk.reason}`]),
  ];
}

function deployed({ device, serial, wwn, size, record }, says) {
  const before = says.disk_before?.erased_by;
  return [
    ["Disk", `${device}, serial ${serial ?? "none"}, WWN ${wwn ?? "none"}`],
    ["Disk before", before ? h("a", { href: link(["certificates", before]) }, "erased by this certificate") : "not erased since the last deployment"],
    ["Image", `${record.source} (${record.format}, ${record.compression})`],
    ["Downloaded", `${bytes(record.downloaded)}, ${record.algorithm} ${record.download_digest}`],
    ["Written", `${bytes(record.size)} of a disk of ${bytes(size)}`],
    ["Read back", `${bytes(record.read_back)}, sha256 ${record.read_back_sha256}`],
  ];
}
