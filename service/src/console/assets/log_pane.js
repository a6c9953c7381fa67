// The view of the log of a worker or a pod, which follows the end of the log.
import { follow } from './api.js';
import { h, put } from './dom.js';
import { count, time } from './format.js';
import { failure, filterField } from './parts.js';
import { showLink } from './shell.js';

/** The most lines that stay on the page, and how many of an older log are read. */
const LINES_MAX = 5000;
const TAIL = 2000;

/** Returns the pane. `label` names it, `over` is what is said once nothing writes into the log any more. */
export function logPane({ label, over }) {
  const filter = filterField('Filter lines', () => draw());
  const isFollowing = h('input', { type: 'checkbox', checked: true });
  const lines = h('div', { class: 'log', role: 'log', 'aria-label': label, 'aria-live': 'off', tabindex: '0' });
  const foot = h('p', { class: 'note' });
  const said = h('div');
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
  isFollowing.addEventListener('change', toEnd);
  lines.addEventListener('scroll', () => {
    // A user who scrolls up wants to read, so following stops. It goes on when the user scrolls to
    // the end.
    isFollowing.checked = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 4;
  });
  return {
    controls: [h('label', { class: 'check' }, isFollowing, ' Follow'), filter.element],
    parts: [said, lines, foot],
    shortcuts: [{ keys: 'f', text: 'Follow the end of the log', run: () => isFollowing.click() }],
    /** Follows the log at this path of the API instead of the one before. */
    open(path) {
      stop();
      all.length = 0;
      dropped = 0;
      put(lines);
      put(said);
      put(foot, 'Waiting for the first line.');
      stop = follow(`/console/api${path}?tail=${TAIL}`, {
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
          put(foot, `${count(all.length)} lines. ${over}`);
        },
        refused: (error) => put(said, failure(error)),
      }, { once: true });
    },
    end: () => stop(),
  };
}
