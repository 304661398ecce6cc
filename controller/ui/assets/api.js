// Requests to the controller, which serves this page: same listener, same users, same rights.

import { learn } from "./clock.js";

/** What the controller refused, or that it could not be reached (`status` 0). */
export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

let changeToken = null;

/** Each change is sent with this token of the session, which another site cannot know. */
export function useToken(token) {
  changeToken = token;
}

/** The path of parts, each of them encoded, with a query. */
export function path(parts, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(pairs).toString();
  return `/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** What a GET returns. */
export const get = (parts, query) => send("GET", path(parts, query));

/** The same, or null where there is none or the user may not see it. */
export async function look(parts, query) {
  try {
    return await get(parts, query);
  } catch (refusal) {
    if ([403, 404].includes(refusal.status)) return null;
    throw refusal;
  }
}

/** Sends a request with a body of JSON, or with a file; returns the answer, null if it is empty. */
export async function send(method, target, body) {
  const headers = { "X-OpenStack-Ironic-API-Version": "latest", Accept: "application/json" };
  const isFile = body instanceof Blob;
  if (method !== "GET" && changeToken) headers["anneal-csrf"] = changeToken;
  if (body !== undefined) headers["Content-Type"] = isFile ? "application/octet-stream" : "application/json";
  const sent = { method, headers, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) sent.body = isFile ? body : JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(target, sent);
  } catch {
    throw new Refusal(0, "the controller cannot be reached");
  }
  learn(answer.headers.get("date"));
  const text = await answer.text();
  if (!answer.ok) throw new Refusal(answer.status, reason(answer.status, text));
  return text ? parsed(text) : null;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(0, "the controller's answer is no JSON");
  }
}

/** The sentence in an error of Ironic's shape: JSON in a string in JSON. */
function reason(status, text) {
  try {
    const { error_message: inner, error } = JSON.parse(text);
    const fault = typeof inner === "string" ? JSON.parse(inner) : inner;
    return fault?.faultstring ?? error?.message ?? `the controller answered ${status}`;
  } catch {
    return text.length > 0 && text.length < 300 ? text : `the controller answered ${status}`;
  }
}
