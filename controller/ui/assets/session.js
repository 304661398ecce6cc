// The user of the page, and what they may do. The cookie of the session is the browser's alone: this page never reads it.

import { Refusal, get, send, useToken } from "./api.js";

// Of this origin with its port, which cookies do not know; so that other tabs have it, too.
const KEPT = "anneal-csrf";

/** What the page knows of its user. `login`: how one logs in here (`password`, `link`, or `none`). */
export const session = { login: "none", authenticated: false, user: null, role: null, project: null, policies: new Set() };

/** Whether the user may do this to something. What they may do to one node, the node's rights say. */
export const may = (policy) => session.policies.has(policy);

/** Whether this page can change something: without the token of its login the controller refuses every change. */
export const canChange = () => session.login === "none" || localStorage.getItem(KEPT) !== null;

/** Logs in by a one-time link if the address has one, which is then nowhere any more. */
export async function useLink() {
  const link = location.hash.match(/^#link=([\w-]+)$/)?.[1];
  if (!link) return;
  history.replaceState(null, "", location.pathname);
  await logIn({ link });
}

/** Reads session and rights. */
export async function refresh() {
  const { login, authenticated, user } = await get(["v1", "anneal", "session"]);
  Object.assign(session, { login, authenticated: authenticated || login === "none", user });
  useToken(localStorage.getItem(KEPT));
  if (session.authenticated) await learnRights();
}

async function learnRights() {
  const { user, role, project, policies } = await get(["v1", "anneal", "rights"]);
  Object.assign(session, { user: user ?? session.user, role, project, policies: new Set(policies) });
}

/** Logs in with `{user, password}` or `{link}`. */
export async function logIn(proof) {
  const { csrf } = await send("POST", "/v1/anneal/session", proof);
  localStorage.setItem(KEPT, csrf);
  useToken(csrf);
}

/** Ends the session, here and at the controller. */
export async function logOut() {
  try {
    await send("DELETE", "/v1/anneal/session");
  } catch (refusal) {
    if (!(refusal instanceof Refusal) || refusal.status !== 401) throw refusal;
  }
  forget();
}

/** The session is over. */
export function forget() {
  localStorage.removeItem(KEPT);
  useToken(null);
  Object.assign(session, { authenticated: false, user: null, role: null, project: null, policies: new Set() });
}
