// Where the node stands, what it waits for, and how far its run is. The words are those of `anneal node why`.

import { time } from "../clock.js";
import { h } from "../dom.js";
import { bytes, duration, sentence } from "../format.js";
import { ways } from "../needs.js";
import { facts, loading, section } from "../parts.js";
import { kind, way } from "../states.js";
import { link } from "../route.js";

/** The part "Now". */
export function now({ live, node }) {
  if (!live) return loading();
  return [
    h("p", { key: "spoken", class: "sr", role: "status" }, spoken(live)),
    section("Where it stands", map(live.provision_state), why(live, node)),
    live.run && section("Steps", run(live)),
  ];
}

/** What screen readers say when it changes: the state, the running step, and each disk in steps of ten percent. */
function spoken({ provision_state: state, run: of, progress }) {
  const step = of?.steps.find((one) => one.state === "running");
  const disks = (progress?.disks ?? []).map((disk) => `${disk.device} ${Math.floor(share(disk) / 10) * 10} %`);
  return [state, step && `step ${step.step}`, ...disks].filter(Boolean).join(", ");
}

function map(state) {
  const part = (one) =>
    h("li", { key: one.name, class: [one.passing ? "passing" : "stop", one.branch && "branch", one.here && `here ${kind(state)}`]
      .filter(Boolean).join(" "), "aria-current": one.here ? "step" : null }, one.label);
  return h("ol", { class: "way", "aria-label": "The way of a node" }, way(state).map(part));
}

function why(live, node) {
  const { waits_for: waits, next, tried, help } = live;
  return [
    live.last_error && h("p", { class: "error last", key: "error" }, live.last_error),
    facts([
      ["Waits for", waits.text],
      ["Since", waits.since && time(waits.since)],
      ["Until", waits.until && time(waits.until)],
      ["Tried", tried.length > 0 && h("ul", { class: "bare" }, tried.map((one) => h("li", one.text, one.at && [" ", time(one.at)])))],
      ["Next", [next.text, next.at && [" ", time(next.at)]]],
      ["In this state since", time(live.provision_updated_at ?? node.created_at)],
      ["Maintenance", live.maintenance && (live.maintenance_reason ?? "without a reason")],
      ["Fault", live.fault],
      ["Controller", live.conductor],
      ["Agent", live.agent && [live.agent.version && `${live.agent.version}, `, "last heard ", time(live.agent.last_heartbeat_at)]],
    ]),
    h("p", { class: "help", key: "help" }, sentence(help.text)),
    ways({ ...node, help }),
  ];
}

function run({ run: of, progress, node }) {
  return [
    h("p", { class: "sum" }, `${of.kind.replaceAll("_", " ")}, begun `, time(of.started_at), of.abort && ", being aborted",
      of.interruptions > 0 && `, interrupted ${of.interruptions} times`),
    of.steps.length === 0 ? h("p", { class: "empty" }, "The steps are not known yet.") :
      h("ol", { class: "steps" }, of.steps.map((step) => line(step, step.state === "running" ? progress : null))),
    // A command that is no step of the plan reports, too.
    progress && !of.steps.some((step) => step.state === "running") && bars(progress),
  ];
}

function line(step, progress) {
  return h("li", { key: step.index, class: step.state, "aria-current": step.state === "running" ? "step" : null },
    h("div", { class: "step" },
      h("span", { class: `badge ${{ done: "good", failed: "failed", running: "works" }[step.state] ?? "rest"}` }, step.state),
      h("code", step.step),
      step.at && time(step.at),
      step.certificate && h("a", { href: link(["certificates", step.certificate]) }, "certificate")),
    step.error && h("p", { class: "error" }, step.error),
    progress && bars(progress));
}

const PHASES = { pending: "waiting", sampling: "sampling", erasing: "erasing", writing: "writing", verifying: "reading back", done: "done" };

function bars({ percent, text, disks = [] }) {
  return h("div", { class: "bars" },
    text && h("p", text),
    disks.length === 0 && percent !== null && percent !== undefined && [
      h("progress", { max: "100", value: percent, "aria-label": "The step" }), h("p", `${percent} %`)],
    disks.map(disk));
}

function disk(of) {
  const name = of.serial ? `${of.device} ${of.serial}` : of.device;
  const phase = [PHASES[of.phase] ?? of.phase, of.method].filter(Boolean).join(" ");
  return h("div", { key: of.device, class: of.stalled_since ? "disk stands" : "disk" },
    h("div", { class: "names" }, h("strong", name), h("span", phase), h("span", { class: "number" }, `${share(of)} %`)),
    h("progress", { max: "100", value: share(of), "aria-label": `${name}: ${phase}` }),
    h("p", { class: "pace" }, pace(of)));
}

/** Percent of the phase that is done, whole and at most 100. */
function share({ phase, bytes_done: done, bytes_total: total }) {
  if (phase === "done") return 100;
  return phase === "pending" || !total ? 0 : Math.min(100, Math.floor((done * 100) / total));
}

/** `1.0 GiB of 2.0 GiB, 512.0 MiB/s, 2s left` */
function pace(of) {
  if (of.phase === "pending" || of.phase === "done") return "";
  const whole = of.bytes_total > 0 ? ` of ${bytes(of.bytes_total)}` : "";
  const still = of.stalled_since ? ", stands still" : "";
  const left = of.eta !== null && of.eta !== undefined ? `, ${duration(of.eta)} left` : "";
  return `${bytes(of.bytes_done)}${whole}, ${bytes(of.rate)}/s${still}${left}`;
}
