// Which page the address names: `#/nodes?provision_state=clean+failed`. A filter is a link, which can be kept and sent.

/** The parts of the path, and the query. */
export function current() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts, query: new URLSearchParams(query) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The link to a page. What is empty is left out of the query. */
export function link(parts, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(kept).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** The link to a node. */
export const nodeLink = (node) => link(["nodes", node.uuid]);

/** Goes to a page. */
export function go(to) {
  location.hash = to;
}
