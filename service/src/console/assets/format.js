// Numbers and times in the form that people read.

/** The difference between the clock of the service and ours, in milliseconds. */
let offset = 0;

export function setClock(now) {
  offset = now - Date.now();
}

export const now = () => Date.now() + offset;

export const count = (number) => Number(number ?? 0).toLocaleString('en-US');

/** `412 ms`, `3.42 s`, `4 min 12 s`, `3 h 05 min`, `2 d 4 h`. */
export function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  const at = Math.max(0, ms);
  if (at < 1000) return `${Math.round(at)} ms`;
  if (at < 60_000) return `${(Math.floor(at / 10) / 100).toFixed(2)} s`;
  const seconds = Math.floor(at / 1000);
  const two = (number) => String(number).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor(seconds / 3600) % 24} h`;
}

/** A duration that goes on: in whole seconds, so that it does not flicker. */
export function elapsed(ms) {
  const at = Math.max(0, ms);
  return at < 60_000 ? `${Math.floor(at / 1000)} s` : duration(at);
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** The time of a day, and the day if it is not this one. */
export function time(ms) {
  if (!ms) return '–';
  const date = new Date(ms);
  const today = new Date(now());
  const text = clock.format(date);
  return date.toDateString() === today.toDateString() ? text : `${day.format(date)} ${text}`;
}

export const exact = (ms) => (ms ? new Date(ms).toISOString() : undefined);

export const dayOf = (ms) => day.format(new Date(ms));

export function bytes(number) {
  if (number < 1000) return `${number} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = number;
  let unit = -1;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** Dollars: cents where they say enough, four digits where they do not. */
export function money(dollars) {
  if (!dollars) return '$0.00';
  if (dollars < 0.0001) return '<$0.0001';
  return `$${dollars < 1 ? dollars.toFixed(4) : dollars.toFixed(2)}`;
}

/** One thing or several: `1 job`, `2 jobs`. */
export const many = (number, noun) => `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
