// The controller's clock, and times on the page that grow older by themselves.

import { h } from "./dom.js";
import { distance, instant } from "./format.js";

let ahead = 0;

/** Takes the time at which the controller answered: ages are by its clock, not by the browser's. */
export function learn(date) {
  const time = new Date(date).getTime();
  // The header has whole seconds: what is less than that is no difference.
  if (!Number.isNaN(time)) ahead = Math.abs(time - Date.now()) < 2000 ? 0 : time - Date.now();
}

/** Now, in milliseconds since 1970, by the controller's clock. */
export function now() {
  return Date.now() + ahead;
}

/** A time with its age: `2026-11-26 10:04:05 UTC (3m05s ago)`. */
export function time(text) {
  if (!text) return "–";
  return h("time", { datetime: text }, h("span", instant(text)), " ", h("span", { class: "age" }, `(${distance(text, now())})`));
}

/** Every second all ages on the page become what they are then. */
export function tick() {
  for (const element of document.querySelectorAll("time[datetime] > .age")) {
    const text = `(${distance(element.parentElement.dateTime, now())})`;
    if (element.textContent !== text) element.firstChild.data = text;
  }
}
