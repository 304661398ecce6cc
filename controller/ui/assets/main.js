// Begins: who is there, which page the address names, and what happens when the controller goes away and comes back.

import { Refusal } from "./api.js";
import { tick } from "./clock.js";
import { h, patch } from "./dom.js";
import { complain } from "./notice.js";
import { bundles } from "./pages/bundles.js";
import { certificateList, certificatePage } from "./pages/certificates.js";
import { RUNBOOKS, TEMPLATES, collection } from "./pages/collection.js";
import { fleet } from "./pages/fleet.js";
import { login } from "./pages/login.js";
import { nodePage } from "./pages/node.js";
import { rights } from "./pages/rights.js";
import { current } from "./route.js";
import * as session from "./session.js";
import { top } from "./top.js";

const AGAIN = 2000;
const at = (id) => document.getElementById(id);
let page = null;
let shown = "";

/** The page of a route, and a key that is the same for the same page with other filters. */
function pageOf([place = "nodes", name]) {
  const makers = {
    nodes: () => (name ? nodePage(name, draw, connection) : fleet(draw, connection)),
    certificates: () => (name ? certificatePage(name, draw) : certificateList(draw)),
    bundles: () => bundles(draw),
    runbooks: () => collection(RUNBOOKS, draw),
    templates: () => collection(TEMPLATES, draw),
    rights: () => rights(),
  };
  const known = place in makers ? place : "nodes";
  return { place: known, key: `${known}/${name ?? ""}`, make: makers[known] };
}

const connection = {
  lost: () => patch(at("link"), h("p", { class: "lost" }, "The controller cannot be reached. The page goes on when it is back.")),
  back: () => patch(at("link")),
  refused: () => session.refresh().then(() => session.session.authenticated || fail(new Refusal(401, "")), () => {}),
  failed: (error) => fail(error),
};

function draw() {
  if (!page) return;
  document.title = `${page.title()} – Anneal`;
  patch(at("main"), page.view());
}

async function show() {
  const { parts, query } = current();
  const { place, key, make } = pageOf(parts);
  const isOther = key !== shown;
  if (isOther) {
    page?.close();
    page = make();
    shown = key;
  }
  patch(at("top"), top(place));
  draw();
  if (isOther) at("main").focus({ preventScroll: true });
  const mine = page;
  try {
    await mine.go({ parts, query });
  } catch (error) {
    if (page === mine) fail(error);
  }
}

/** What a page could not read. */
function fail(error) {
  if (!(error instanceof Refusal)) throw error;
  if (error.status === 401) {
    session.forget();
    return showLogin(null);
  }
  if (error.status === 0) {
    connection.lost();
    setTimeout(() => show().then(connection.back), AGAIN);
    return;
  }
  page?.close();
  page = null;
  shown = "";
  connection.back();
  patch(at("main"), h("h1", "This cannot be shown"), h("p", { class: "error", role: "alert" }, error.message));
}

function showLogin(refused) {
  page?.close();
  shown = "login";
  page = login(draw, refused, async () => {
    await session.refresh();
    await show();
  });
  patch(at("top"), top(null));
  draw();
  document.querySelector("#main input")?.focus();
}

async function start() {
  let refused = null;
  try {
    await session.useLink();
  } catch (error) {
    refused = error.message;
  }
  try {
    await session.refresh();
  } catch (error) {
    if (error.status !== 0) return fail(error);
    connection.lost();
    return setTimeout(start, AGAIN);
  }
  connection.back();
  if (!session.session.authenticated) return showLogin(refused);
  if (refused) complain(refused);
  return show();
}

addEventListener("hashchange", () => session.session.authenticated && show());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  at("main").focus();
});
setInterval(tick, 1000);
start();
