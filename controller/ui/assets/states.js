// The provision states, and where a node is in its life. Pure.

const STABLE = ["enroll", "manageable", "available", "active", "rescue"];

/** What a state asks of people: `good`, `rest`, `works`, `held` or `failed`. */
export function kind(state) {
  if (state === "error" || state.endsWith(" failed")) return "failed";
  if (state.endsWith(" hold")) return "held";
  if (state === "available" || state === "active") return "good";
  return STABLE.includes(state) ? "rest" : "works";
}

/** Nothing happens to a node in this state without a request. */
export function isAtRest(state) {
  return STABLE.includes(state) || kind(state) === "failed";
}

const arc = (name, ...states) => ({ name, states: [name, ...states], passing: true });
const stop = (name) => ({ name, states: [name], passing: false });
const MAIN = [
  stop("enroll"),
  arc("verifying"),
  stop("manageable"),
  arc("cleaning", "clean wait", "clean hold", "clean failed"),
  stop("available"),
  arc("deploying", "wait call-back", "deploy hold", "deploy failed"),
  stop("active"),
];
// What leaves the main line, and the stop at which it does.
const BRANCHES = [
  ["manageable", arc("inspecting", "inspect wait", "inspect failed")],
  ["manageable", arc("adopting", "adopt failed")],
  ["active", arc("servicing", "service wait", "service hold", "service failed")],
  ["active", arc("rescuing", "rescue wait", "rescue failed")],
  ["active", stop("rescue")],
  ["active", arc("unrescuing", "unrescue failed")],
  ["active", arc("deleting")],
  ["active", stop("error")],
];

/** The way of a node's life with its state in it: the stops in their order, and the branch on which it is, if it is on one. */
export function way(state) {
  const here = (part) => ({ ...part, here: part.states.includes(state) });
  const branch = BRANCHES.find(([, part]) => part.states.includes(state));
  const parts = MAIN.map(here);
  if (branch) {
    const place = parts.findIndex((part) => part.name === branch[0]);
    parts.splice(place + 1, 0, { ...here(branch[1]), branch: true });
  }
  return parts.map((part) => (part.here ? { ...part, label: state } : { ...part, label: part.name }));
}
