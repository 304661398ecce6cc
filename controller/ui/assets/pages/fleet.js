// All nodes: first those that need an operator, then counts, search, and a list in pages.

import { get } from "../api.js";
import { time } from "../clock.js";
import { h } from "../dom.js";
import { askEnrol } from "../enrol.js";
import { cell, count } from "../format.js";
import { guarded, needs } from "../needs.js";
import { button, loading, nodeName, section, state, table } from "../parts.js";
import { current, link } from "../route.js";
import { canChange, may } from "../session.js";
import { follow, settled } from "../stream.js";

const FACETS = [
  ["provision_state", "State", null],
  ["owner", "Owner", "no owner"],
  ["resource_class", "Resource class", "no resource class"],
  ["conductor", "Controller", "no controller"],
];
const FILTERS = [...FACETS.map(([name]) => name), "maintenance", "retired", "driver", "fault", "search"];
const FIELDS =
  "uuid,name,provision_state,target_provision_state,power_state,maintenance,owner,resource_class,conductor,provision_updated_at,created_at";
const PAGE = 100;

/** The page of the fleet. */
export function fleet(redraw, connection) {
  const page = { summary: null, list: null, route: null, refused: null };
  // The list is read again when the fleet has changed, not on a clock.
  const readList = async () => {
    const { route } = page;
    const read = await get(["v1", "anneal", "nodes"], listQuery(route.query)).then((list) => ({ list, refused: null }),
      (refusal) => ({ refused: refusal.message }));
    // The answer to an earlier filter may come after that to the present one.
    if (route === page.route) Object.assign(page, read);
    redraw();
  };
  const soon = settled(readList, 500);
  const stop = follow(() => "/v1/anneal/fleet", {
    ...connection,
    events: {
      fleet: (summary) => {
        const isNews = page.summary !== null;
        page.summary = summary;
        redraw();
        if (isNews) soon();
      },
    },
  });
  return {
    title: () => "Fleet",
    go: async (route) => {
      page.route = route;
      redraw();
      await readList();
    },
    view: () => view(page),
    close: stop,
  };
}

function listQuery(query) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name)]));
  return { ...filters, marker: query.get("marker"), limit: PAGE, sort_key: "name", fields: FIELDS };
}

function view({ summary, list, route, refused }) {
  if (!route) return loading();
  const enrol = may("baremetal:node:create") && canChange();
  return [
    h("div", { class: "headline", key: "headline" },
      h("h1", "Fleet"),
      summary && h("p", { class: "sum" }, count(summary.nodes, "node")),
      enrol && button("Enrol a node", guarded(askEnrol), "main")),
    summary ? needs(summary.needs) : loading(),
    section("Nodes", counts(summary, route.query), search(route.query), chosen(route.query),
      refused ? h("p", { class: "error", role: "alert" }, refused) : list ? nodes(list, route.query) : loading()),
  ];
}

/** The query of this page with one filter set or removed; every filter begins at the first page. */
function withFilter(query, name, value) {
  const filters = Object.fromEntries(FILTERS.map((filter) => [filter, query.get(filter)]));
  return link(["nodes"], { ...filters, [name]: value });
}

function counts(summary, query) {
  if (!summary) return null;
  return h("div", { class: "facets" }, FACETS.map(([name, title, none]) => {
    const values = summary.counts[name] ?? [];
    const others = summary.others?.[name];
    if (values.length === 0) return null;
    return h("div", { key: name, class: "facet" },
      h("h3", title),
      h("ul", values.map((one) => facet(query, name, one, none)),
        others ? h("li", { class: "others" }, `and ${others.toLocaleString("en")} of others`) : null));
  }));
}

function facet(query, name, { value, count: number }, none) {
  const shown = value === null || value === "" ? none : value;
  // Nodes without a value cannot be asked for.
  if (value === null || value === "") return h("li", h("span", shown), h("span", { class: "number" }, number.toLocaleString("en")));
  const isOn = query.get(name) === value;
  const text = name === "provision_state" ? state(value) : shown;
  return h("li", { key: value },
    h("a", { href: withFilter(query, name, isOn ? null : value), "aria-current": isOn ? "true" : null }, text),
    h("span", { class: "number" }, number.toLocaleString("en")));
}

function search(query) {
  const find = (event) => {
    event.preventDefault();
    // The address may be ahead of what is drawn.
    location.hash = withFilter(current().query, "search", new FormData(event.target).get("search").trim());
  };
  return h("form", { class: "search", role: "search", onsubmit: find },
    h("label", { for: "search" }, "Name or UUID has"),
    h("input", { id: "search", name: "search", type: "search", value: query.get("search") ?? "", spellcheck: "false" }),
    h("button", { type: "submit" }, "Search"),
    h("a", { href: withFilter(query, "maintenance", "true") }, "in maintenance"),
    h("a", { href: withFilter(query, "retired", "true") }, "retired"));
}

function chosen(query) {
  const on = FILTERS.filter((name) => query.get(name));
  if (on.length === 0) return null;
  const one = (name) =>
    h("li", { key: name }, `${name.replace("_", " ")}: ${query.get(name)} `,
      h("a", { href: withFilter(query, name, null), "aria-label": `Remove the filter ${name}` }, "×"));
  return h("ul", { class: "chosen", "aria-label": "Filters" }, on.map(one),
    h("li", h("a", { href: link(["nodes"]) }, "remove all")));
}

function nodes({ nodes: list, next }, query) {
  const rows = list.map((node) => ({
    key: node.uuid,
    cells: [
      nodeName(node),
      state(node.provision_state ?? "available", node.target_provision_state),
      [cell(node.power_state), " ", node.maintenance && h("span", { class: "badge held" }, "maintenance")],
      cell(node.owner),
      cell(node.resource_class),
      cell(node.conductor),
      time(node.provision_updated_at ?? node.created_at),
    ],
  }));
  const marker = next && new URL(next, location.href).searchParams.get("marker");
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name)]));
  return [
    table("Nodes", ["Name", "State", "Power", "Owner", "Resource class", "Controller", "Since"], rows,
      { empty: "No node has all that." }),
    h("nav", { class: "pages", "aria-label": "Pages of nodes" },
      query.get("marker") && h("a", { href: link(["nodes"], filters) }, "First page"),
      marker && h("a", { href: link(["nodes"], { ...filters, marker }) }, "Next page")),
  ];
}
