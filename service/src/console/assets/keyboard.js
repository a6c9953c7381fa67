// Keyboard shortcuts. The same list serves the keys and the help.
import { h, put } from './dom.js';

const OFF = 'plumb-shortcuts-off';
const everywhere = [];
let here = [];
let prefix = null;

/** Shortcuts of every view: `{ keys: 'g e', text: 'Endpoints', run }`. */
export const always = (...list) => everywhere.push(...list);

/** Shortcuts of the view that is shown; those of the one before are forgotten. */
export function onlyHere(list = []) {
  here = list;
}

const isOff = () => localStorage.getItem(OFF) === '1';

function isTyping(element) {
  return element.closest?.('input, textarea, select, [contenteditable]') !== null;
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
  if (isOff() && event.key !== '?') return;
  const keys = prefix ? `${prefix} ${event.key}` : event.key;
  const all = [...here, ...everywhere];
  prefix = null;
  const found = all.find((one) => one.keys.split(' or ').includes(keys));
  if (found) {
    event.preventDefault();
    found.run();
  } else if (all.some((one) => one.keys.startsWith(`${event.key} `))) {
    prefix = event.key;
    setTimeout(() => {
      prefix = null;
    }, 1500);
  }
});

/** Moves the focus to the next row of the list, or to the one before. */
export function moveRow(step) {
  const links = [...document.querySelectorAll('main tbody tr')].map((row) => row.querySelector('a, button')).filter(Boolean);
  if (links.length === 0) return;
  const row = document.activeElement?.closest?.('tbody tr');
  const at = links.findIndex((link) => row?.contains(link));
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1);
  links[next].focus();
  links[next].scrollIntoView({ block: 'nearest' });
}

function rows(list) {
  return list.map((one) => h('div', {},
    h('dt', {}, one.keys.split(' or ').map((way, at) => [at > 0 && ' or ', way.split(' ').map((key) => h('kbd', {}, key))])),
    h('dd', {}, one.text)));
}

const help = h('dialog', { class: 'help', 'aria-labelledby': 'help-title' });

/** The overlay with all shortcuts. */
export function helpDialog() {
  help.addEventListener('click', (event) => {
    if (event.target === help) help.close();
  });
  return help;
}

export function showHelp() {
  const isOn = h('input', { type: 'checkbox', checked: !isOff() });
  isOn.addEventListener('change', () => localStorage.setItem(OFF, isOn.checked ? '0' : '1'));
  put(help, h('div', { class: 'help-inside' },
    h('div', { class: 'section-line' }, h('h2', { id: 'help-title' }, 'Keyboard'),
      h('form', { method: 'dialog' }, h('button', { class: 'quiet' }, 'Close'))),
    here.length > 0 && [h('h3', {}, 'On this page'), h('dl', { class: 'keys' }, rows(here))],
    h('h3', {}, 'Everywhere'), h('dl', { class: 'keys' }, rows(everywhere)),
    h('label', { class: 'check' }, isOn, ' Single keys are shortcuts')));
  help.showModal();
}
