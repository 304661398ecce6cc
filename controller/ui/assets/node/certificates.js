// What was done to each disk, and the proofs of it.

import { time } from "../clock.js";
import { h } from "../dom.js";
import { bytes, cell, duration } from "../format.js";
import { section, table } from "../parts.js";
import { link } from "../route.js";

/** The part "Records and certificates". */
export function certificates({ node, read }) {
  const results = node.driver_internal_info?.anneal?.run?.results ?? [];
  return [
    section("Certificates", list(read.certificates)),
    section("Records of the last run", results.length === 0
      ? h("p", { class: "empty" }, "The node has no step of a run behind it.")
      : results.map(result)),
  ];
}

function list(answer) {
  if (answer === undefined) return null;
  if (answer === null) return h("p", { class: "empty" }, "You may not see certificates.");
  const rows = answer.certificates.map((one) => ({
    key: one.id,
    cells: [h("a", { href: link(["certificates", one.id]) }, `Certificate ${one.number}`), cell(one.finding), time(one.issued_at),
            h("code", one.id.slice(0, 12)),
            h("a", { href: `/v1/anneal/certificates/${one.id}`, download: `certificate-${one.id.slice(0, 12)}.json` }, "Download")],
  }));
  return table("Certificates", ["Number", "Finding", "Issued", "Id", "File"], rows, { empty: "No step of the node has a certificate yet." });
}

/** Microseconds since 1970, or a text. */
const instant = (at) => (typeof at === "number" ? new Date(at / 1000).toISOString() : at);

function result(of) {
  const disks = recordsOf(of.result);
  const name = of.step ?? `step ${of.index + 1}`;
  return h("article", { key: of.index },
    h("h3", h("code", name), of.error ? " failed" : " succeeded"),
    h("p", { class: "sum" }, of.at && time(instant(of.at)), " ",
      of.certificate ? h("a", { href: link(["certificates", of.certificate]) }, "certificate")
        : of.uncertified && `no certificate: ${of.uncertified}`),
    of.error && h("p", { class: "error" }, of.error),
    disks ? records(`Records of ${name}`, disks)
      : name.includes(".erase_") && h("p", { class: "empty" }, "No record of any disk: nothing here says which disks were erased."));
}

/** Where the agent put the records: bare, or in what ironic-python-agent puts around them. */
function recordsOf(of) {
  const inner = ["clean_result", "deploy_result", "service_result"].map((key) => of?.[key]).find(Boolean) ?? of;
  return inner?.disks ?? null;
}

/** The records of disks as a table; a certificate has the same. */
export function records(caption, disks) {
  const rows = disks.map((disk) => [
    disk.device, cell(disk.serial), bytes(disk.size), disk.outcome.replace("_", " "), cell(disk.method), bytes(disk.bytes_erased),
    disk.verification ? readBack(disk.verification) : "no",
    disk.started_at && disk.finished_at >= disk.started_at ? duration(disk.finished_at - disk.started_at) : "–",
    reasons(disk),
  ]);
  return table(caption, ["Device", "Serial", "Size", "Outcome", "Method", "Erased", "Read back", "Took", "Reason"], rows,
    { empty: "The node has no disk." });
}

/** `passed: full, 1.0 GiB zeroes` */
function readBack(of) {
  const parts = [
    of.kind,
    of.bytes_read > 0 && `${bytes(of.bytes_read)} ${of.expected}`,
    of.mismatched_bytes > 0 && `${of.mismatched_bytes} bytes other`,
    of.unchanged_samples > 0 && `${of.unchanged_samples} of ${of.samples} samples unchanged`,
  ];
  return `${of.passed ? "passed" : "FAILED"}: ${parts.filter(Boolean).join(", ")}`;
}

function reasons(disk) {
  const fallbacks = (disk.fallbacks ?? []).map(({ method, error }) => `${method} gave up: ${error}`);
  const parts = (disk.out_of_reach ?? []).map((part) => `not reached: ${part}`);
  return [disk.reason, ...fallbacks, ...parts].filter(Boolean).join("; ") || "–";
}
