// Numbers and times as people read them, in the words of the command line. Pure.

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** `512 B`, `1.5 GiB`: binary units, cut and not rounded. */
export function bytes(count) {
  if (count < 1024) return `${count} B`;
  let unit = -1;
  let rest = count;
  do {
    rest /= 1024;
    unit += 1;
  } while (rest >= 1024 && unit + 1 < UNITS.length);
  return `${(Math.floor(rest * 10) / 10).toFixed(1)} ${UNITS[unit]}`;
}

const two = (number) => String(number).padStart(2, "0");

/** Seconds as `42s`, `3m05s`, `2h07m`, `3d04h`. */
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [minutes, hours, days] = [60, 3600, 86400].map((unit) => Math.floor(whole / unit));
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${minutes}m${two(whole % 60)}s`;
  if (whole < 86400) return `${hours}h${two(minutes % 60)}m`;
  return `${days}d${two(hours % 24)}h`;
}

/** `2026-11-26 10:04:05 UTC`, or the text itself if it is no time. */
export function instant(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? String(text) : `${time.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** `3m05s ago`, or `in 3m05s`. */
export function distance(text, now) {
  const seconds = (new Date(text).getTime() - now) / 1000;
  return seconds >= 1 ? `in ${duration(seconds)}` : `${duration(-seconds)} ago`;
}

/** With a capital at its beginning and a full stop at its end. */
export const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;

/** `1 node`, `2 nodes`. */
export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** What a cell of a table shows of a value: a dash for nothing, text as it is, the rest as JSON. */
export function cell(value) {
  if (value === null || value === undefined || value === "") return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
