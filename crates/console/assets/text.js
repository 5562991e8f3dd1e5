// Numbers, sizes and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** What stands for a value that is not there. */
export const NOTHING = "–";

/** Whether a value is not there. */
export function isNothing(value) {
  return value === null || value === undefined;
}

function digits(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** A number of things. */
export function count(value) {
  return isNothing(value) ? NOTHING : whole.format(Number(value));
}

/** A number of things of a name. */
export function things(number, name) {
  return `${count(number)} ${name}${Number(number) === 1 ? "" : "s"}`;
}

/** A number of bytes. */
export function bytes(value) {
  if (isNothing(value)) return NOTHING;
  let [rest, unit] = [Number(value), 0];
  while (Math.abs(rest) >= 1024 && unit < BYTES.length - 1) [rest, unit] = [rest / 1024, unit + 1];
  return unit === 0 ? `${rest} B` : `${digits(rest)} ${BYTES[unit]}`;
}

/** A time, given in nanoseconds. */
export function nanoseconds(value) {
  if (isNothing(value)) return NOTHING;
  const time = Number(value);
  if (time === 0) return "0 s";
  if (time < 1e3) return `${time.toFixed(0)} ns`;
  if (time < 1e6) return `${digits(time / 1e3)} µs`;
  if (time < 1e9) return `${digits(time / 1e6)} ms`;
  if (time < 120e9) return `${digits(time / 1e9)} s`;
  if (time < 7200e9) return `${digits(time / 60e9)} min`;
  return `${digits(time / 3600e9)} h`;
}

/** A time, given in microseconds. */
export function microseconds(value) {
  return isNothing(value) ? NOTHING : nanoseconds(Number(value) * 1e3);
}

/** How many there are in a second. */
export function rate(value) {
  if (isNothing(value)) return NOTHING;
  return value >= 10 || value === 0 ? `${whole.format(value)}/s` : `${value.toFixed(1)}/s`;
}

/** A share between 0 and 1. */
export function percent(value) {
  if (isNothing(value)) return NOTHING;
  return value > 0 && value < 0.01 ? "< 1 %" : `${(value * 100).toFixed(0)} %`;
}

/** A value of a row. */
export function plain(value) {
  if (isNothing(value)) return "NULL";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A name as SQL writes it, whatever is in it. */
export function quoted(name) {
  return `"${name.replaceAll('"', '""')}"`;
}

/** How long ago a moment was. */
export function ago(value) {
  return isNothing(value) ? NOTHING : `${nanoseconds(Math.max(0, Math.round((Date.now() - Date.parse(value)) / 1e3)) * 1e9)} ago`;
}

/** How to show the values of a column of the system, by the unit at the end of its name. */
export function byName(name) {
  if (/_bytes$|^(bytes|budget)$/.test(name)) return bytes;
  if (/_ns$/.test(name)) return nanoseconds;
  if (/_us$/.test(name)) return microseconds;
  if (/_ms$/.test(name)) return (value) => (isNothing(value) ? NOTHING : nanoseconds(value * 1e6));
  if (/_seconds$|^seconds$/.test(name)) return (value) => (isNothing(value) ? NOTHING : nanoseconds(value * 1e9));
  return null;
}
