// Questions before something is done. The dialog is the browser's own: it keeps the focus inside, and Escape closes it.

import { h, patch } from "./dom.js";

/**
 * Asks. `title` and `texts` say what is done, `fields` are inputs, `typed` is a name that must be typed before `act` can be pressed,
 * and `send(values)` does it; while it refuses, the dialog stays open and shows why.
 */
export function ask({ title, texts = [], fields = [], typed = null, act, danger = false, send }) {
  const dialog = document.getElementById("dialog");
  const state = { error: null, busy: false, name: "" };
  const close = () => dialog.close();
  const submit = async (event) => {
    event.preventDefault();
    const form = event.target;
    if (state.busy || !isAgreed(state, typed)) return;
    Object.assign(state, { busy: true, error: null });
    draw();
    try {
      await send(new FormData(form));
      close();
    } catch (refusal) {
      Object.assign(state, { busy: false, error: refusal.message });
      draw();
      dialog.querySelector(".error")?.focus();
    }
  };
  const draw = () => {
    const isReady = isAgreed(state, typed) && !state.busy;
    patch(
      dialog,
      h("form", { key: title, method: "dialog", onsubmit: submit, autocomplete: "off" },
        h("h2", { id: "dialog-title" }, title),
        texts.map((text) => h("p", text)),
        fields.map((field) => h("div", { class: "field" }, field)),
        typed !== null && confirmation(typed, (name) => { state.name = name; draw(); }),
        state.error && h("p", { class: "error", role: "alert", tabindex: "-1" }, state.error),
        h("div", { class: "buttons" },
          h("button", { type: "button", onclick: close }, "Cancel"),
          h("button", { type: "submit", class: danger ? "danger" : "main", disabled: !isReady }, state.busy ? "…" : act))),
    );
  };
  // The event comes late on a busy machine: the next question may stand there already.
  dialog.onclose = () => dialog.open || patch(dialog);
  draw();
  dialog.showModal();
  dialog.querySelector("input, textarea, select, button")?.focus();
}

/** Only the whole name is agreement, letter by letter. */
function isAgreed(state, typed) {
  return typed === null || state.name === typed;
}

function confirmation(typed, heard) {
  return h("div", { class: "field" },
    h("label", { for: "typed-name" }, "Type ", h("strong", typed), " to go on"),
    h("input", { id: "typed-name", name: "typed-name", type: "text", autocomplete: "off", spellcheck: "false",
                 oninput: (event) => heard(event.target.value) }));
}

/** A labelled input. */
export function input(name, label, attributes = {}, help = null) {
  const id = `field-${name}`;
  const tag = attributes.rows ? "textarea" : "input";
  const described = help ? { "aria-describedby": `${id}-help` } : {};
  return [
    h("label", { for: id }, label),
    h(tag, { id, name, ...(tag === "input" ? { type: "text" } : {}), ...described, ...attributes }),
    help && h("small", { id: `${id}-help` }, help),
  ];
}

/** A labelled list to choose from: `[value, text]` each. */
export function choice(name, label, options, attributes = {}) {
  const id = `field-${name}`;
  return [
    h("label", { for: id }, label),
    h("select", { id, name, ...attributes }, options.map(([value, text]) => h("option", { value }, text))),
  ];
}
