// Bodies of requests, from what was typed. Pure; what cannot be sent is an error with a sentence.

const IMAGE_KEYS = [
  "image_source", "image_checksum", "image_os_hash_algo", "image_os_hash_value", "image_disk_format", "anneal_wait_for_hello",
];
const DIGITS = { 64: "sha256", 128: "sha512" };

/** The steps of `clean` or `service`: those that were typed, or those of a runbook. */
export function stepsOf(kind, values) {
  const text = values.get("steps").trim();
  const runbook = values.get("runbook");
  if (text && runbook) throw new Error("Give steps or a runbook, not both.");
  if (runbook) return { runbook };
  if (!text) throw new Error("Give at least one step.");
  return { [`${kind}_steps`]: listOf(text) };
}

/** A list that was typed as JSON. */
export function listOf(text) {
  let list;
  try {
    list = JSON.parse(text);
  } catch (error) {
    throw new Error(`The steps are no JSON: ${error.message}`);
  }
  if (!Array.isArray(list)) throw new Error("The steps are no JSON list.");
  return list;
}

/**
 * The JSON Patch of `instance_info` that names an image; empty if none was given. All keys of an earlier image are replaced
 * together: its digest would be compared with the new one.
 */
export function deployment(values, present) {
  const image = values.get("image").trim();
  const checksum = values.get("checksum").trim();
  if (!image && !checksum) return [];
  if (!image || !checksum) throw new Error("An image needs its checksum.");
  const fields = { image_source: image, ...checksumFields(checksum) };
  const gone = IMAGE_KEYS.filter((key) => key in present && !(key in fields));
  return [
    ...gone.map((key) => ({ op: "remove", path: `/instance_info/${key}` })),
    ...Object.entries(fields).map(([key, value]) => ({ op: "add", path: `/instance_info/${key}`, value })),
  ];
}

function checksumFields(text) {
  if (/^https?:\/\//.test(text)) return { image_checksum: text };
  const algorithm = /^[0-9a-f]+$/i.test(text) && DIGITS[text.length];
  if (!algorithm) throw new Error("The checksum is a SHA-256 or SHA-512 digest, or the URL of a list of digests.");
  return { image_os_hash_algo: algorithm, image_os_hash_value: text };
}

/** A new node; empty fields are left out. BMC fields have the prefix of the driver. */
export function newNode(values) {
  const text = (name) => values.get(name)?.trim() ?? "";
  const driver = text("driver");
  const prefix = driver.split("-")[0];
  const bmc = { [`${prefix}_address`]: text("bmc_address"), [`${prefix}_username`]: text("bmc_username"),
                [`${prefix}_password`]: values.get("bmc_password") ?? "" };
  const given = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
  const body = given({ driver, name: text("name"), owner: text("owner"), resource_class: text("resource_class"),
                       description: text("description") });
  const info = given(bmc);
  return Object.keys(info).length > 0 ? { ...body, driver_info: info } : body;
}
