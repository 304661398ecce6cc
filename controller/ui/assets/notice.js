// A sentence at the edge of the page: what was done, or why not. Screen readers say it.

import { h, patch } from "./dom.js";

const STAYS = 8000;
let ends = 0;

/** Says that something was done. It goes away by itself. */
export function say(text) {
  show("done", text);
  ends = setTimeout(clear, STAYS);
}

/** Says that something went wrong. It stays until it is closed. */
export function complain(text) {
  show("wrong", text);
}

function show(kind, text) {
  clearTimeout(ends);
  const close = h("button", { type: "button", class: "quiet", onclick: clear, "aria-label": "Close this message" }, "×");
  patch(document.getElementById("notice"), h("p", { class: `notice ${kind}` }, h("span", text), close));
}

/** Takes it away. */
export function clear() {
  patch(document.getElementById("notice"));
}
