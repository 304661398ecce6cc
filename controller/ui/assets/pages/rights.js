// What the user of the page may do.

import { h } from "../dom.js";
import { facts, section } from "../parts.js";
import { canChange, logOut, session } from "../session.js";

const ROLES = {
  reader: "reads",
  member: "reads; power, provision state, maintenance and most fields of nodes",
  manager: "the same, and ports, traits and interfaces of nodes",
  admin: "everything: also enrols and removes nodes, overrides a failed cleaning, and keeps templates, rules and bundles",
};

/** The page of the user's own rights. */
export function rights() {
  return { title: () => "Your rights", go: async () => {}, close: () => {}, view };
}

function view() {
  const { login, user, role, project } = session;
  const groups = Object.groupBy([...session.policies].sort(), (policy) => policy.split(":").slice(0, 2).join(":"));
  return [
    h("h1", { key: "title" }, "Your rights"),
    section("You", facts([
      ["User", user ?? (login === "none" ? "none: this controller asks for no login" : "without a name")],
      ["Role", role ? `${role}: ${ROLES[role]}` : login === "password" ? "none" : "everything is allowed: no users are configured"],
      ["Nodes", project ? `those that project ${project} owns or leases` : "all"],
      ["Changes", canChange() ? "allowed as far as the role goes" : "log in again to change something"],
    ]), login !== "none" && h("p", h("button", { type: "button", onclick: end }, "Log out"))),
    section("What you may do to something",
      h("p", "The controller decides each request by these policies. What you may do to one node, its own page shows."),
      Object.entries(groups).map(([group, policies]) =>
        h("details", { key: group }, h("summary", `${group} (${policies.length})`),
          h("ul", { class: "policies" }, policies.map((policy) => h("li", h("code", policy))))))),
  ];
}

async function end() {
  await logOut();
  location.reload();
}
