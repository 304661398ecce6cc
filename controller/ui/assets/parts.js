// Parts that many pages have.

import { h } from "./dom.js";
import { kind } from "./states.js";
import { nodeLink } from "./route.js";

/** A provision state, with the one that it leads to. */
export function state(name, target = null) {
  const leads = target && target !== name;
  return h("span", { class: "state" },
    h("span", { class: `badge ${kind(name)}` }, name),
    leads && [h("span", { class: "arrow", "aria-hidden": "true" }, " → "), h("span", { class: "sr" }, " leads to "), target]);
}

/** What people call a node. */
export const label = (node) => node.name ?? node.uuid;

/** A node's name, as a link to it. */
export const nodeName = (node) => h("a", { href: nodeLink(node), class: "node" }, label(node));

/** A table; `rows` are lists of cells, or `{key, cells}`. The first cell of each names its row. */
export function table(caption, headings, rows, { empty = "none" } = {}) {
  if (rows.length === 0) return h("p", { class: "empty" }, empty);
  const line = (row) => {
    const { key, cells } = Array.isArray(row) ? { cells: row } : row;
    const [first, ...rest] = cells;
    return h("tr", { key }, h("th", { scope: "row" }, first), rest.map((cell) => h("td", cell ?? "–")));
  };
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h("table",
      h("caption", { class: "sr" }, caption),
      h("thead", h("tr", headings.map((heading) => h("th", { scope: "col" }, heading)))),
      h("tbody", rows.map(line))));
}

/** Names and values. What has no value is left out. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return h("dl", { class: "facts" }, known.map(([name, value]) => [h("dt", name), h("dd", value)]));
}

/** A section with a heading. */
export function section(title, ...content) {
  const id = `part-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return h("section", { key: title, "aria-labelledby": id }, h("h2", { id }, title), content);
}

/** A button. */
export const button = (text, onclick, look = "") => h("button", { type: "button", class: look, onclick, key: text }, text);

/** JSON to be read. */
export const json = (value) => h("pre", { tabindex: "0" }, JSON.stringify(value, null, 2));

/** What a page shows while it has nothing yet. */
export const loading = () => h("p", { class: "empty" }, "being read …");
