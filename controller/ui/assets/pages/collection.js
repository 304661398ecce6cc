// Steps under a name: runbooks, and deploy templates. Both are lists of objects with `name` and `steps`.

import { get, path, send } from "../api.js";
import { time } from "../clock.js";
import { ask, input } from "../dialog.js";
import { h } from "../dom.js";
import { cell } from "../format.js";
import { guarded } from "../needs.js";
import { say } from "../notice.js";
import { button, loading, section, table } from "../parts.js";
import { listOf } from "../requests.js";
import { canChange, may } from "../session.js";

export const RUNBOOKS = {
  title: "Runbooks", one: "runbook", list: "runbooks", policy: "baremetal:runbook", number: "order",
  text: "Steps of cleaning or service under a name. A node takes a runbook if it has one of its traits.",
  columns: ["Owner", "Public", "Traits"],
  cells: (book) => [cell(book.owner), book.public ? "yes" : "no", (book.traits ?? []).join(", ") || "–"],
  example: '[{"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1}]',
  help: "Unique. It becomes the trait of nodes that may use it.",
};

export const TEMPLATES = {
  title: "Deploy templates", one: "deploy template", list: "deploy_templates", policy: "baremetal:deploy_template", number: "priority",
  text: "Steps that run when an instance with the trait of the template's name is deployed.",
  columns: [], cells: () => [],
  example: '[{"interface": "bios", "step": "apply_configuration", "args": {"settings": []}, "priority": 150}]',
  help: "A trait: CUSTOM_… or one of the standard traits.",
};

/** The page of one of them. */
export function collection(noun, redraw) {
  const page = { items: null };
  page.reload = async () => {
    page.items = (await get(["v1", noun.list], { detail: "true" }))[noun.list];
    redraw();
  };
  return { title: () => noun.title, go: page.reload, view: () => (page.items ? view(noun, page) : loading()), close: () => {} };
}

function view(noun, page) {
  const can = (act) => may(`${noun.policy}:${act}`) && canChange();
  const rows = page.items.map((item) => ({
    key: item.uuid,
    cells: [
      item.name, ...noun.cells(item), steps(noun, item), time(item.updated_at ?? item.created_at),
      can("update") || can("delete") ? h("div", { class: "buttons" },
        can("update") && button("change", guarded(() => askSteps(noun, page, item))),
        can("delete") && button("delete", guarded(() => askDelete(noun, page, item)), "danger")) : "–",
    ],
  }));
  return [
    h("div", { class: "headline", key: "headline" }, h("h1", noun.title),
      can("create") && button(`Make a ${noun.one}`, () => askSteps(noun, page, null), "main")),
    section(`All ${noun.title.toLowerCase()}`, h("p", noun.text),
      table(noun.title, ["Name", ...noun.columns, "Steps", "Changed", "Action"], rows, { empty: `There is no ${noun.one}.` })),
  ];
}

const steps = (noun, { steps: all = [] }) =>
  h("ol", { class: "bare" }, all.map((step) => h("li", h("code", `${step.interface}.${step.step}`), ` (${noun.number} ${step[noun.number]})`)));

function askSteps(noun, page, item) {
  ask({
    title: item ? `Change ${item.name}` : `Make a ${noun.one}`,
    fields: [
      input("name", "Name", { value: item?.name ?? "", required: true, spellcheck: "false" }, noun.help),
      input("steps", "Steps", { rows: "10", class: "code", spellcheck: "false", required: true,
        value: item ? JSON.stringify(item.steps, null, 1) : noun.example }, `A JSON list of {"interface", "step", "args", "${noun.number}"}.`),
    ],
    act: item ? "Change" : "Make",
    send: async (values) => {
      const [name, list] = [values.get("name").trim(), listOf(values.get("steps"))];
      if (item) {
        const patch = [{ op: "replace", path: "/name", value: name }, { op: "replace", path: "/steps", value: list }];
        await send("PATCH", path(["v1", noun.list, item.uuid]), patch);
      } else {
        await send("POST", path(["v1", noun.list]), { name, steps: list });
      }
      say(`The ${noun.one} ${name} is kept.`);
      await page.reload();
    },
  });
}

function askDelete(noun, page, item) {
  ask({
    title: `Delete ${item.name}?`,
    texts: [`Runs that are under way go on. Nothing can ask for the ${noun.one} any more.`],
    typed: item.name,
    danger: true,
    act: "Delete",
    send: async () => {
      await send("DELETE", path(["v1", noun.list, item.uuid]));
      say(`The ${noun.one} ${item.name} is deleted.`);
      await page.reload();
    },
  });
}
