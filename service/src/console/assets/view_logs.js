// What workers print, as they print it.
import { follow, read } from './api.js';
import { h, put } from './dom.js';
import { bytes, count, time } from './format.js';
import { emptiness, failure, filterField, heading, nameInTrail, to } from './parts.js';
import { showLink } from './shell.js';

/** The most lines that stay on the page, and how many of an older log are read. */
const LINES_MAX = 5000;
const TAIL = 2000;

export function logs(endpoint, wanted) {
  const head = heading({ trail: [['Endpoints', to('endpoints')], [endpoint, to('endpoints', endpoint)]], title: 'Logs' });
  nameInTrail(head, endpoint);
  const choice = h('select', { 'aria-label': 'Worker' });
  const filter = filterField('Filter lines', () => draw());
  const isFollowing = h('input', { type: 'checkbox', checked: true });
  const lines = h('div', { class: 'log', role: 'log', 'aria-label': 'Output of the worker', 'aria-live': 'off', tabindex: '0' });
  const foot = h('p', { class: 'note' });
  const body = h('div', { class: 'log-place' });
  const all = [];
  let dropped = 0;
  let stop = () => {};
  let isDue = false;

  const line = (one) => h('div', { class: 'log-line' }, h('span', { class: 'log-time' }, one.time), h('span', { class: 'log-text' }, one.text));
  const toEnd = () => {
    if (isFollowing.checked) lines.scrollTop = lines.scrollHeight;
  };
  function draw() {
    put(lines, all.filter((one) => filter.matches(one.text)).map(line));
    toEnd();
    put(foot, `${count(all.length)} lines`, dropped > 0 && `, after ${count(dropped)} older ones that are not kept here`);
  }
  const later = () => {
    if (isDue) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      draw();
    }, 100);
  };

  const open = (worker) => {
    stop();
    all.length = 0;
    dropped = 0;
    put(lines);
    put(foot, 'Waiting for the first line.');
    const path = `/console/api/v2/serverless/${encodeURIComponent(endpoint)}/workers/${encodeURIComponent(worker)}/logs?tail=${TAIL}`;
    stop = follow(path, {
      event(_, data) {
        all.push({ time: time(Date.parse(data.ts)), text: data.line.replaceAll(/\u001b\[[0-9;]*m/g, '') });
        if (all.length > LINES_MAX) {
          all.shift();
          dropped += 1;
        }
        later();
      },
      link: showLink,
      end() {
        showLink(null);
        put(foot, `${count(all.length)} lines. The worker is gone; its log is complete.`);
      },
      refused: (error) => put(body, failure(error)),
    }, { once: true });
  };
  const load = async () => {
    const found = (await read(`logs/${encodeURIComponent(endpoint)}`)).logs;
    if (found.length === 0) {
      put(body, emptiness('No worker of this endpoint has printed anything yet.',
        h('p', { class: 'note' }, 'A log begins with the first line that a worker prints. The newest 500 logs are kept.')));
      return;
    }
    put(choice, found.map((log) => h('option', { value: log.worker }, `${log.worker} · ${log.lives ? 'lives' : 'gone'} · ${bytes(log.bytes)} · ${time(log.written)}`)));
    const first = found.some((log) => log.worker === wanted) ? wanted : found[0].worker;
    choice.value = first;
    put(body, h('div', { class: 'bar-line' }, choice, h('label', { class: 'check' }, isFollowing, ' Follow'), filter.element), lines, foot);
    open(first);
  };
  choice.addEventListener('change', () => open(choice.value));
  isFollowing.addEventListener('change', toEnd);
  lines.addEventListener('scroll', () => {
    // Who scrolls up wants to read; who scrolls to the end wants more.
    isFollowing.checked = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 4;
  });
  load().catch((error) => put(body, failure(error)));
  return {
    title: 'Logs',
    element: h('div', { class: 'logs-view' }, head.element, body),
    shortcuts: [{ keys: 'f', text: 'Follow the end of the log', run: () => isFollowing.click() }],
    end: () => stop(),
  };
}
