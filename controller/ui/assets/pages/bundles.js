// Hardware managers of vendors, in bundles; and the controllers that serve them.

import { get, look, path, send } from "../api.js";
import { time } from "../clock.js";
import { ask, input } from "../dialog.js";
import { h } from "../dom.js";
import { bytes, cell } from "../format.js";
import { guarded } from "../needs.js";
import { say } from "../notice.js";
import { button, loading, section, table } from "../parts.js";
import { canChange, may } from "../session.js";

const PATH = ["v1", "anneal", "bundles"];

/** The page of bundles and controllers. */
export function bundles(redraw) {
  const page = { bundles: null, conductors: null, drivers: null };
  page.reload = async () => {
    const [list, conductors, drivers] = await Promise.all([
      look(PATH), look(["v1", "conductors"], { detail: "true" }), look(["v1", "drivers"]),
    ]);
    Object.assign(page, { bundles: list?.bundles ?? null, conductors: conductors?.conductors ?? null, drivers: drivers?.drivers ?? null, read: true });
    redraw();
  };
  return {
    title: () => "Managers and bundles",
    go: page.reload,
    view: () => (page.read ? view(page) : loading()),
    close: () => {},
  };
}

function view(page) {
  const canAdd = may("anneal:bundle:create") && canChange();
  return [
    h("div", { class: "headline", key: "headline" }, h("h1", "Managers and bundles"),
      canAdd && button("Add a bundle", () => askAdd(page), "main")),
    section("Bundles", h("p", "A bundle is one file with a vendor's hardware manager. Nodes of its scope have it from their next boot."),
      page.bundles === null ? h("p", { class: "empty" }, "You may not see bundles.") : list(page)),
    page.drivers && section("Drivers", table("Drivers", ["Driver", "Controllers"],
      page.drivers.map((driver) => [driver.name, (driver.hosts ?? []).join(", ")]))),
    page.conductors && section("Controllers", table("Controllers", ["Host", "Group", "Alive", "Reported", "Drivers"],
      page.conductors.map((one) => [one.hostname, cell(one.conductor_group), one.alive ? "yes" : h("span", { class: "badge failed" }, "no"),
        time(one.updated_at), (one.drivers ?? []).join(", ")]))),
  ];
}

function list(page) {
  const canRemove = may("anneal:bundle:delete") && canChange();
  const rows = page.bundles.map((one) => ({
    key: one.digest,
    cells: [one.name, one.version, cell(one.vendor), one.scope, bytes(one.size), cell(one.signed_by ?? "not signed"), time(one.created_at),
            h("code", { title: one.digest }, one.digest.slice(0, 12)),
            canRemove ? button("remove", guarded(() => askRemove(page, one)), "danger") : "–"],
  }));
  return table("Bundles", ["Name", "Version", "Vendor", "Scope", "Size", "Signed by", "Added", "Digest", "Action"], rows,
    { empty: "No bundle: nodes have the managers of the ramdisk alone." });
}

function askAdd(page) {
  ask({
    title: "Add a bundle",
    texts: ["Its manager runs on all nodes of the scope, in a sandbox. The controller verifies its signature."],
    fields: [
      input("file", "File", { type: "file", required: true }),
      input("scope", "Scope", { value: "all", spellcheck: "false" }, "all, driver:DRIVER, resource_class:CLASS or node:UUID"),
    ],
    act: "Add",
    send: async (values) => {
      const added = await send("POST", path(PATH, { scope: values.get("scope").trim() }), values.get("file"));
      say(`Added ${added.name} ${added.version} for ${added.scope}.`);
      await page.reload();
    },
  });
}

function askRemove(page, one) {
  ask({
    title: `Remove ${one.name} ${one.version}?`,
    texts: [`Nodes of ${one.scope} boot without it from then on.`],
    typed: one.name,
    danger: true,
    act: "Remove",
    send: async () => {
      await send("DELETE", path([...PATH, one.digest], { scope: one.scope }));
      say(`${one.name} ${one.version} is removed.`);
      await page.reload();
    },
  });
}
