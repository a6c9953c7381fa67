// The view of an endpoint that balances load: its address, and a form for a request to its workers.
import { exchange } from './api.js';
import { h, put } from './dom.js';
import { bytes, duration } from './format.js';
import { pretty } from './json.js';
import { attempt, copyButton, section } from './parts.js';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** The most characters of an answer that are shown. */
const SHOWN_MAX = 64 * 1024;

/** The form of a request, and the answer to the last one. */
export function requestForm(id) {
  const method = h('select', { 'aria-label': 'Method' }, METHODS.map((name) => h('option', {}, name)));
  const path = h('input', { class: 'mono', 'aria-label': 'Path and query', value: '/', spellcheck: 'false', autocomplete: 'off', required: true });
  const body = h('textarea', { class: 'mono', rows: 5, 'aria-label': 'Body', placeholder: 'Body, as JSON', spellcheck: 'false', autocomplete: 'off' });
  const send = h('button', { class: 'primary' }, 'Send');
  const answer = h('div', { 'aria-live': 'polite' });
  const bodyPlace = h('div', { hidden: true }, body);
  const form = h('form', { class: 'request' },
    h('div', { class: 'request-line' }, method, path, send), bodyPlace);
  method.addEventListener('change', () => {
    bodyPlace.hidden = method.value === 'GET';
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const where = path.value.startsWith('/') ? path.value : `/${path.value}`;
    const sent = bodyPlace.hidden || !body.value ? undefined : body.value;
    const got = await attempt(send, () => exchange(method.value, `/lb/${encodeURIComponent(id)}${where}`, sent));
    if (got) put(answer, shown(got));
  });
  return { element: h('div', {}, form, answer), focus: () => path.focus() };
}

function shown({ status, text, ms, worker, media }) {
  const isJson = media.includes('json');
  const cut = text.slice(0, SHOWN_MAX);
  const size = new Blob([text]).size;
  return h('section', { class: 'pane', 'aria-label': 'Answer' },
    h('div', { class: 'pane-line' }, h('h2', {}, `Answer: ${status}`),
      h('span', { class: 'words' }, `${duration(ms)}, ${bytes(size)}${worker ? `, worker ${worker}` : ''}`), copyButton(text, 'the answer')),
    h('pre', { tabindex: '0' }, isJson && cut.length === text.length ? pretty(text) : cut),
    cut.length < text.length && h('div', { class: 'pane-foot' }, `The first ${bytes(SHOWN_MAX)} are shown.`));
}

/** The address of the endpoint, to copy. */
export const address = (base) => section('Address', null,
  h('div', { class: 'commands' }, h('pre', { tabindex: '0', 'aria-label': 'Base URL' }, base), copyButton(base, 'the address')));
