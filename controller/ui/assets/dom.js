// The page as a description, and how the document becomes what is described.
//
// A description is text, or what `h` returns. Nothing here parses HTML: text from the server becomes a text node or the value of an
// attribute, and only attributes that cannot run a script are set. So no name of a node is ever more than text.

const ATTRIBUTES = new Set([
  "action", "alt", "autocomplete", "checked", "class", "colspan", "datetime", "disabled", "download", "for", "hidden", "href", "id",
  "max", "maxlength", "method", "min", "name", "open", "pattern", "placeholder", "readonly", "required", "role", "rows", "scope",
  "selected", "spellcheck", "tabindex", "title", "type", "value",
]);
// What a user changes in the document, too: it is set when its description changes, and never otherwise.
const PROPERTIES = new Set(["checked", "selected", "value"]);

/** Describes an element. `attributes` may be left out; names that begin with `on` are listeners, `key` names it among its siblings. */
export function h(tag, attributes, ...children) {
  if (attributes === null || typeof attributes !== "object" || Array.isArray(attributes) || attributes.tag) {
    return { tag, attributes: {}, children: described([attributes, ...children]) };
  }
  return { tag, attributes, children: described(children) };
}

function described(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== "");
}

/** Makes the children of `host` what is described. Elements that stay keep their focus, and what was typed into them. */
export function patch(host, ...children) {
  const wanted = described(children);
  const kept = new Map();
  const free = [...host.childNodes];
  const chosen = wanted.map((child) => take(free, child));
  chosen.forEach((node) => kept.set(node, true));
  [...host.childNodes].forEach((node) => kept.has(node) || node.remove());
  wanted.forEach((child, place) => {
    const node = chosen[place] ?? create(child);
    if (host.childNodes[place] !== node) host.insertBefore(node, host.childNodes[place] ?? null);
    update(node, child);
  });
}

/** The first of the nodes that can become what is described, taken out of them. */
function take(free, child) {
  const found = free.findIndex((node) => fits(node, child));
  return found < 0 ? null : free.splice(found, 1)[0];
}

const before = new WeakMap();

function fits(node, child) {
  if (!child.tag) return node.nodeType === Node.TEXT_NODE;
  return node.nodeType === Node.ELEMENT_NODE && node.localName === child.tag && before.get(node)?.key === child.attributes.key;
}

function create(child) {
  return child.tag ? document.createElement(child.tag) : document.createTextNode(String(child));
}

function update(node, child) {
  if (!child.tag) {
    if (node.data !== String(child)) node.data = String(child);
    return;
  }
  const earlier = before.get(node) ?? {};
  const attributes = child.attributes;
  before.set(node, attributes);
  for (const name of new Set([...Object.keys(earlier), ...Object.keys(attributes)])) {
    if (name !== "key" && !Object.is(earlier[name], attributes[name])) set(node, name, attributes[name]);
  }
  patch(node, child.children);
  // Only now has a list the option that is selected.
  if (child.tag === "select" && "value" in attributes && earlier.value !== attributes.value) node.value = attributes.value;
}

function set(node, name, value) {
  if (name.startsWith("on")) {
    node[name] = value ?? null;
  } else if (!ATTRIBUTES.has(name) && !/^(aria|data)-[a-z-]+$/.test(name)) {
    throw new Error(`attribute ${name} is not one that this page sets`);
  } else if (PROPERTIES.has(name)) {
    node[name] = value ?? (name === "value" ? "" : false);
  } else if (value === null || value === undefined || value === false) {
    node.removeAttribute(name);
  } else if (name === "href" && !isOwn(String(value))) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Whether a link leads to a part of this page, or to another path of this controller. */
function isOwn(link) {
  return /^#/.test(link) || /^\/(?![/\\])/.test(link);
}
