// Small parts that several views use.
import { get } from './api.js';
import { h, put, say, shape } from './dom.js';
import { duration, elapsed, exact, now, time } from './format.js';

/** The states of jobs: the word and the shape of each. */
export const JOB_STATES = {
  IN_QUEUE: ['In queue', 'queued'],
  IN_PROGRESS: ['Running', 'running'],
  COMPLETED: ['Completed', 'completed'],
  FAILED: ['Failed', 'failed'],
  CANCELLED: ['Cancelled', 'cancelled'],
  TIMED_OUT: ['Timed out', 'timedout'],
};

export function jobState(name) {
  const [word, form] = JOB_STATES[name] ?? [name, 'idle'];
  return h('span', { class: `state state-${form}` }, shape(form), word);
}

const WORKER_WORDS = { running: 'Running', idle: 'Idle', starting: 'Starting', ending: 'Ending' };

export function workerState(name) {
  return h('span', { class: `state state-${name}` }, shape(name), WORKER_WORDS[name] ?? name);
}

export const isOver = (job) => !['IN_QUEUE', 'IN_PROGRESS'].includes(job.state);
export const canRetry = (job) => ['FAILED', 'TIMED_OUT'].includes(job.state);

/** A time of day, with the exact time behind it. */
export const moment = (ms) => h('time', { datetime: exact(ms), title: exact(ms) }, time(ms));

const running = new Set();

/** The time since a moment, which goes on; `before` is added to it. */
export function since(ms, before = 0) {
  const element = h('span', { 'data-since': ms - before }, elapsed(now() - ms + before));
  running.add(new WeakRef(element));
  return element;
}

setInterval(() => {
  for (const reference of running) {
    const element = reference.deref();
    if (!element || !element.isConnected) {
      // A new element may not be in the page yet, so it is kept until the next time.
      if (!element || element.dataset.old) running.delete(reference);
      else element.dataset.old = '1';
    } else {
      say(element, elapsed(now() - Number(element.dataset.since)));
    }
  }
}, 250);

/** The time that a job waited, or still waits. */
export function delayOf(job) {
  if (job.started !== null) return duration(job.started - job.created - job.spent);
  return isOver(job) ? '–' : since(job.created);
}

/** The time that a job ran, or still runs, in all of its runs. */
export function executionOf(job) {
  if (job.started === null) return '–';
  if (job.finished !== null) return duration(job.finished - job.started + job.spent);
  return job.state === 'IN_PROGRESS' ? since(job.started, job.spent) : '–';
}

/** The beginning of a job's id, which is enough to know it by. */
export const shortId = (id) => id.split('-').slice(0, id.startsWith('sync-') ? 3 : 2).join('-');

/** The address of a view, from the parts of its path. */
export const to = (...parts) => `#/${parts.map(encodeURIComponent).join('/')}`;

/** A button that copies a text. */
export function copyButton(text, what) {
  const button = h('button', { type: 'button', class: 'quiet icon', 'aria-label': `Copy ${what}`, title: `Copy ${what}` }, shape('copy'));
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'function' ? text() : text);
      tell(`Copied ${what}.`);
    } catch {
      tell('The browser did not allow copying. Select the text and copy it by hand.', true);
    }
  });
  return button;
}

/** Lines for a shell, to copy. */
export function commands(...lines) {
  return h('div', { class: 'commands' },
    h('pre', { tabindex: '0', 'aria-label': 'Commands' }, lines.map((line) => h('span', { class: 'command' }, `${line}\n`))),
    copyButton(lines.join('\n'), 'the commands'));
}

/** What stands in the place of things that are not there, with what to do about it. */
export const emptiness = (title, ...rest) =>
  h('div', { class: 'empty' }, h('p', { class: 'empty-title' }, title), rest);

export const failure = (error) =>
  h('div', { class: 'failure', role: 'alert' }, shape('unhealthy'), h('p', {}, error.message));

const notices = h('div', { class: 'notices', role: 'status', 'aria-live': 'polite' });

/** The place of short notices. */
export const noticePlace = () => notices;

/** Says something for a few seconds; what went wrong stays until it is put away. */
export function tell(text, isBad = false) {
  const notice = h('div', { class: `notice ${isBad ? 'bad' : ''}` }, shape(isBad ? 'failed' : 'completed'), h('span', {}, text));
  const end = () => notice.remove();
  if (isBad) notice.append(h('button', { type: 'button', class: 'quiet', onclick: end }, 'Dismiss'));
  else setTimeout(end, 4000);
  while (notices.childElementCount > 3) notices.firstChild.remove();
  notices.append(notice);
}

/** Runs what a button does; says what went wrong. */
export async function attempt(button, work) {
  button?.setAttribute('aria-disabled', 'true');
  try {
    return await work();
  } catch (error) {
    tell(error.message, true);
    return undefined;
  } finally {
    button?.removeAttribute('aria-disabled');
  }
}

/** A list of names and values. `update` takes pairs; a value is a text or an element. */
export function facts(label) {
  const element = h('dl', { class: 'facts', 'aria-label': label });
  return {
    element,
    update(pairs) {
      const made = pairs.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)));
      const before = [...element.children];
      made.forEach((line, at) => {
        if (!before[at]) element.append(line);
        else if (!before[at].isEqualNode(line)) before[at].replaceWith(line);
      });
      before.slice(made.length).forEach((line) => line.remove());
    },
  };
}

/** Numbers in a row, each with its name. */
export function figures(label) {
  const list = facts(label);
  list.element.className = 'figures';
  return list;
}

/** The field that filters a list. */
export function filterField(label, onchange) {
  const field = h('input', { type: 'search', class: 'filter', 'aria-label': label, placeholder: 'Filter', autocomplete: 'off', spellcheck: 'false', 'aria-keyshortcuts': '/' });
  field.addEventListener('input', onchange);
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') field.blur();
  });
  const element = h('span', { class: 'filter-place' }, field, h('kbd', { 'aria-hidden': 'true' }, '/'));
  const words = () => field.value.toLowerCase().split(/\s+/).filter(Boolean);
  return { element, field, matches: (...texts) => {
    const all = texts.join(' ').toLowerCase();
    return words().every((word) => all.includes(word));
  } };
}

/** The heading of a view: where it is, what it is, what can be done. */
export function heading({ trail = [], title, beside = [], actions = [] }) {
  const path = trail.length > 0 && h('nav', { class: 'trail', 'aria-label': 'Breadcrumb' },
    h('ol', {}, trail.map(([text, address]) => h('li', {}, h('a', { href: address }, text), shape('next')))));
  const name = h('h1', { tabindex: '-1' }, title);
  const element = h('div', { class: 'heading' }, path,
    h('div', { class: 'heading-line' }, name, h('div', { class: 'beside' }, beside), h('div', { class: 'actions' }, actions)));
  return { element, name };
}

/** Puts the name of an endpoint in the place of its id, once it is known. */
export function nameInTrail(head, id) {
  get(`/v1/endpoints/${encodeURIComponent(id)}`).then((endpoint) => {
    put(head.element.querySelector('li:last-child a'), endpoint.name);
  }, () => {});
}

/** A section with a heading of its own. */
export function section(title, beside, ...children) {
  const id = `s-${title.toLowerCase().replaceAll(/\W+/g, '-')}`;
  return h('section', { 'aria-labelledby': id },
    h('div', { class: 'section-line' }, h('h2', { id }, title), beside), children);
}
