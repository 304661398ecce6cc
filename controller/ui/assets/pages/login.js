// Logging in: by user and password, or by a one-time link that `anneal ui` prints.

import { h } from "../dom.js";
import { input } from "../dialog.js";
import { logIn, session } from "../session.js";

/** The page of the login; `then` shows what was asked for. */
export function login(redraw, refused, then) {
  const page = { error: refused, busy: false };
  const submit = async (event) => {
    event.preventDefault();
    const values = new FormData(event.target);
    Object.assign(page, { busy: true, error: null });
    redraw();
    try {
      await logIn({ user: values.get("user"), password: values.get("password") });
      await then();
    } catch (refusal) {
      Object.assign(page, { busy: false, error: refusal.message });
      redraw();
      document.getElementById("field-password")?.select();
    }
  };
  return {
    title: () => "Log in",
    go: async () => {},
    close: () => {},
    view: () => h("div", { class: "login" },
      h("h1", "Log in to Anneal"),
      page.error && h("p", { class: "error", role: "alert" }, page.error),
      session.login === "password" ? form(page, submit) : byLink()),
  };
}

function form({ busy }, submit) {
  return h("form", { onsubmit: submit },
    h("div", { class: "field" }, input("user", "User", { required: true, autocomplete: "username", spellcheck: "false" })),
    h("div", { class: "field" }, input("password", "Password", { type: "password", required: true, autocomplete: "current-password" })),
    h("button", { type: "submit", class: "main", disabled: busy }, "Log in"));
}

function byLink() {
  return [
    h("p", "No users are configured on this controller. On its machine run"),
    h("pre", { tabindex: "0" }, "anneal ui"),
    h("p", "and open the address that it prints. It is good once, for a minute."),
  ];
}
