// The head of the page: where one can go, and who one is.

import { h } from "./dom.js";
import { link } from "./route.js";
import { session } from "./session.js";

const PLACES = [
  [["nodes"], "Fleet"],
  [["certificates"], "Certificates"],
  [["bundles"], "Managers and bundles"],
  [["runbooks"], "Runbooks"],
  [["templates"], "Templates"],
];

/** The head of a page at this place. */
export function top(place) {
  const { authenticated, user, role } = session;
  const leads = ([parts, text]) =>
    h("li", { key: parts[0] }, h("a", { href: link(parts), "aria-current": parts[0] === place ? "page" : null }, text));
  return [
    h("a", { class: "brand", href: link(["nodes"]) }, "Anneal"),
    authenticated && h("nav", { "aria-label": "Main" }, h("ul", PLACES.map(leads))),
    authenticated && h("a", { class: "user", href: link(["rights"]), "aria-current": place === "rights" ? "page" : null },
      user ?? "Your rights", role && user && h("span", { class: "role" }, role)),
  ];
}
