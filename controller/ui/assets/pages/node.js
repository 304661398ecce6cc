// One node. What changes by itself comes by a stream; the rest is read when the stream says that the node has changed.

import { get, look, path } from "../api.js";
import { h } from "../dom.js";
import { actions } from "../node/actions.js";
import { certificates } from "../node/certificates.js";
import { history } from "../node/history.js";
import { inventory } from "../node/inventory.js";
import { now } from "../node/now.js";
import { plan } from "../node/plan.js";
import { settings } from "../node/settings.js";
import { label, loading, state } from "../parts.js";
import { link } from "../route.js";
import { follow, settled } from "../stream.js";

const node = (uuid, ...rest) => ["v1", "nodes", uuid, ...rest];
const anneal = (uuid, ...rest) => ["v1", "anneal", "nodes", uuid, ...rest];

// Each part of the page with what it needs to be read. The first is the one that the plain link shows.
const TABS = {
  now: { title: "Now", view: now, read: {} },
  plan: { title: "Plan of an erase", view: plan, read: { disks: (uuid) => look(anneal(uuid, "disks")) } },
  certificates: {
    title: "Records and certificates",
    view: certificates,
    read: { certificates: (uuid) => look(["v1", "anneal", "certificates"], { node: uuid }) },
  },
  inventory: {
    title: "Inventory",
    view: inventory,
    read: { inventory: (uuid) => look(node(uuid, "inventory")), disks: (uuid) => look(anneal(uuid, "disks")),
            ports: (uuid) => look(["v1", "ports", "detail"], { node: uuid }) },
  },
  history: { title: "History", view: history, read: { history: (uuid) => look(node(uuid, "history"), { detail: "True", limit: 200 }) } },
  settings: { title: "Settings", view: settings, read: { validation: (uuid) => look(node(uuid, "validate")) } },
};

/** The page of the node with this UUID or name. */
export function nodePage(ident, redraw, connection) {
  const page = { uuid: ident, node: null, rights: null, live: null, tab: "now", read: {}, gone: false, redraw };
  let stop = null;
  let isClosed = false;
  page.reload = async () => {
    // The name may change: the UUID counts as soon as it is known.
    const { uuid, tab } = page;
    const wanted = Object.entries(TABS[tab].read);
    const [body, rights, ...parts] = await Promise.all([
      get(node(uuid)), get(anneal(uuid, "rights")), ...wanted.map(([, read]) => read(uuid)),
    ]);
    Object.assign(page, { node: body, rights, uuid: body.uuid });
    wanted.forEach(([name], place) => { page.read[name] = parts[place]; });
    if (!isClosed) stop ??= listen();
    redraw();
  };
  const soon = settled(() => page.reload().catch((error) => isGone(error) || connection.failed(error)), 300);
  let seen = "";
  // By the UUID: a browser opens a stream without a version of the API, in which nodes have no names.
  const listen = () => follow(() => path(anneal(page.uuid, "progress")), {
    ...connection,
    back: () => { connection.back(); soon(); },
    events: {
      progress: (live) => {
        page.live = live;
        redraw();
        const mark = changes(live);
        // The first may be newer than what was read before the stream stood.
        const isNews = seen ? seen !== mark : live.provision_state !== page.node.provision_state;
        if (isNews) soon();
        seen = mark;
      },
      gone: () => { page.gone = true; stop?.(); redraw(); },
    },
  });
  return {
    title: () => (page.node ? label(page.node) : "Node"),
    go: async ({ parts }) => {
      page.tab = parts[2] in TABS ? parts[2] : "now";
      redraw();
      await page.reload();
    },
    view: () => view(page),
    close: () => { isClosed = true; stop?.(); },
  };
}

/** The stream says that the node was deleted. */
const isGone = (error) => error.status === 404;

/** What of the stream means that the rest of the node has changed: all but the time and the bytes. */
function changes(live) {
  const { provision_state, target_provision_state, power_state, target_power_state, maintenance, last_error, retired, run } = live;
  const steps = run && [run.id, run.abort, run.steps.map((step) => step.state)];
  return JSON.stringify([provision_state, target_provision_state, power_state, target_power_state, maintenance, last_error, retired, steps]);
}

function view(page) {
  if (page.gone) return h("p", { class: "empty" }, "The node was deleted. ", h("a", { href: link(["nodes"]) }, "All nodes"));
  if (!page.node) return loading();
  const shown = page.live ?? page.node;
  return [
    h("div", { class: "headline", key: "headline" },
      h("h1", label(page.node)),
      state(shown.provision_state, shown.target_provision_state),
      shown.maintenance && h("span", { class: "badge held" }, "maintenance"),
      shown.retired && h("span", { class: "badge rest" }, "retired"),
      h("span", { class: "badge plain" }, power(shown))),
    page.node.description && h("p", { class: "description", key: "description" }, page.node.description),
    actions(page),
    h("nav", { class: "tabs", key: "tabs", "aria-label": "Parts of the node" },
      Object.entries(TABS).map(([name, { title }]) =>
        h("a", { key: name, href: link(name === "now" ? ["nodes", page.uuid] : ["nodes", page.uuid, name]),
                 "aria-current": page.tab === name ? "page" : null }, title))),
    h("div", { key: page.tab }, TABS[page.tab].view(page)),
  ];
}

function power({ power_state: is, target_power_state: target }) {
  return target ? `${is ?? "power unknown"} → ${target}` : is ?? "power unknown";
}
