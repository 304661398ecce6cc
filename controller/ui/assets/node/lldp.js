// What a switch says of itself and of its port (IEEE 802.1AB), from TLVs as agents keep them: `[type, hex]`. Pure.

const CHASSIS_ID = 1;
const PORT_ID = 2;
const PORT_DESCRIPTION = 4;
const SYSTEM_NAME = 5;
const MANAGEMENT_ADDRESS = 8;
const ORGANISATION = 127;
// IEEE 802.1, subtype "Port VLAN ID".
const PORT_VLAN = "0080c201";
// Subtypes of ids that are MAC addresses.
const CHASSIS_MAC = 4;
const PORT_MAC = 3;

/** The neighbour behind an interface; null where it announced nothing. */
export function neighbour(tlvs) {
  const found = {};
  for (const tlv of Array.isArray(tlvs) ? tlvs : []) {
    if (!Array.isArray(tlv) || typeof tlv[1] !== "string" || !/^([0-9a-f]{2})*$/i.test(tlv[1])) continue;
    const [type, hex] = tlv;
    const bytes = (hex.match(/../g) ?? []).map((pair) => parseInt(pair, 16));
    if (type === CHASSIS_ID) found.chassis = id(bytes, CHASSIS_MAC);
    if (type === PORT_ID) found.port = id(bytes, PORT_MAC);
    if (type === PORT_DESCRIPTION) found.description = text(bytes);
    if (type === SYSTEM_NAME) found.system = text(bytes);
    if (type === MANAGEMENT_ADDRESS) found.address ??= address(bytes);
    if (type === ORGANISATION && hex.toLowerCase().startsWith(PORT_VLAN) && bytes.length === 6) found.vlan = bytes[4] * 256 + bytes[5];
  }
  return Object.values(found).some(Boolean) ? found : null;
}

const text = (bytes) => new TextDecoder().decode(new Uint8Array(bytes)).replace(/\0+$/, "");

/** A subtype, and a MAC address or a text. */
function id([subtype, ...rest], mac) {
  const isMac = subtype === mac && rest.length === 6;
  return isMac ? rest.map((byte) => byte.toString(16).padStart(2, "0")).join(":") : text(rest);
}

/** Length of family and address, family, address. */
function address([length, family, ...rest]) {
  if (length === 5 && family === 1 && rest.length >= 4) return rest.slice(0, 4).join(".");
  if (length !== 17 || family !== 2 || rest.length < 16) return undefined;
  const words = [0, 2, 4, 6, 8, 10, 12, 14].map((place) => (rest[place] * 256 + rest[place + 1]).toString(16));
  return words.join(":");
}
