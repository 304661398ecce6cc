// Defined in every page before its own scripts. `anneal.find` is what a person would point at; `anneal.reports` is what went wrong.
globalThis.anneal = {
  reports: [],
  // The open dialog is all that can be reached while there is one.
  scope: () => document.querySelector("dialog[open]") ?? document,
  isSeen: (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }),
  text: (element) => element.innerText.trim().replace(/\s+/g, " "),
  find(kinds, text) {
    const all = [...this.scope().querySelectorAll(kinds)].filter((one) => this.isSeen(one));
    return all.find((one) => this.text(one) === text) ?? null;
  },
  field(label) {
    const found = this.find("label", label);
    return found && document.getElementById(found.htmlFor);
  },
  place(element) {
    if (!element || element.disabled) return null;
    element.scrollIntoView({ block: "center", behavior: "instant" });
    const { left, top, width, height } = element.getClientRects()[0];
    const [x, y] = [left + width / 2, top + height / 2];
    // What lies above it would be hit in its place.
    const hit = document.elementFromPoint(x, y);
    return hit && (element.contains(hit) || hit.contains(element)) ? { x, y } : null;
  },
  // What the next click meets: "nothing", "it", or "another" element, which gets none. A page may be drawn anew, or move, between a
  // look at it and a click on it.
  met: "nothing",
  aim(element) {
    const place = this.place(element);
    if (!place) return null;
    removeEventListener("click", this.judge, true);
    this.met = "nothing";
    this.judge = (event) => {
      removeEventListener("click", this.judge, true);
      this.met = element.contains(event.target) ? "it" : "another";
      if (this.met === "it") return;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    addEventListener("click", this.judge, true);
    return place;
  },
};
addEventListener("securitypolicyviolation", (event) =>
  anneal.reports.push(`content security policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
addEventListener("error", (event) => anneal.reports.push(`error: ${event.message} ${event.filename}:${event.lineno}`));
addEventListener("unhandledrejection", (event) => anneal.reports.push(`rejection: ${event.reason?.stack ?? event.reason}`));
