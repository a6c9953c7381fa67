// The form that submits a job.
import { post, text } from './api.js';
import { h, put } from './dom.js';
import { bytes } from './format.js';
import { fault, pretty } from './json.js';
import { attempt, heading, nameInTrail, to } from './parts.js';

/** The largest input of a job that is submitted with /run. */
const INPUT_MAX = 10 * 1024 * 1024;

const EXAMPLE = '{\n  "prompt": "hello"\n}';

/** Where an input waits for the form: that of a job to run again, or the last one. */
const kept = (id) => `plumb-input-${id}`;

/** Opens the form with the input of a job. */
export async function runAgain(endpoint, job) {
  const found = await text(`jobs/${endpoint}/${job}/input`);
  const shown = h('pre', {}, pretty(found.text)).textContent;
  sessionStorage.setItem(kept(endpoint), shown);
  location.hash = to('endpoints', endpoint, 'submit');
}

export function submit(id) {
  const head = heading({ trail: [['Endpoints', to('endpoints')], [id, to('endpoints', id)]], title: 'Submit a job' });
  nameInTrail(head, id);
  const input = h('textarea', { id: 'input', rows: 14, spellcheck: 'false', autocomplete: 'off', 'aria-describedby': 'input-fault', class: 'mono' });
  input.value = sessionStorage.getItem(kept(id)) ?? EXAMPLE;
  const said = h('p', { id: 'input-fault', class: 'check-line', 'aria-live': 'polite' });
  const limit = h('input', { id: 'limit', type: 'number', min: 5, max: 604_800, step: 'any', placeholder: 'that of the endpoint' });
  const ttl = h('input', { id: 'ttl', type: 'number', min: 10, max: 604_800, step: 'any', placeholder: '86400' });
  const low = h('input', { id: 'low', type: 'checkbox' });
  const send = h('button', { class: 'primary', 'aria-keyshortcuts': 'Control+Enter' }, 'Submit', h('kbd', { 'aria-hidden': 'true' }, 'Ctrl ⏎'));

  const check = () => {
    const wrong = fault(input.value);
    const size = new Blob([input.value]).size;
    const found = wrong || (size > INPUT_MAX ? `The input has ${bytes(size)}; at most 10 MB are taken.` : '');
    said.classList.toggle('bad', Boolean(found));
    put(said, found || `JSON object, ${bytes(size)}`);
    input.toggleAttribute('aria-invalid', Boolean(found));
    if (found) input.setAttribute('aria-invalid', 'true');
    return !found;
  };
  const tidy = () => {
    if (check()) input.value = JSON.stringify(JSON.parse(input.value), null, 2);
  };
  const form = h('form', { class: 'submit', novalidate: false },
    h('label', { for: 'input' }, 'Input'), input,
    h('div', { class: 'under-input' }, said, h('button', { type: 'button', class: 'quiet', onclick: tidy }, 'Tidy')),
    h('fieldset', {}, h('legend', {}, 'Policy'),
      h('div', { class: 'field' }, h('label', { for: 'limit' }, 'Execution limit, seconds'), limit),
      h('div', { class: 'field' }, h('label', { for: 'ttl' }, 'Time to live, seconds'), ttl),
      h('label', { class: 'check' }, low, ' Low priority: starts no workers')),
    h('div', { class: 'actions' }, send, h('a', { class: 'button', href: to('endpoints', id) }, 'Cancel')));
  input.addEventListener('input', () => {
    sessionStorage.setItem(kept(id), input.value);
    check();
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (!check()) {
      input.focus();
      return;
    }
    const policy = {};
    if (limit.value) policy.executionTimeout = Math.round(Number(limit.value) * 1000);
    if (ttl.value) policy.ttl = Math.round(Number(ttl.value) * 1000);
    if (low.checked) policy.lowPriority = true;
    // The text of the input is sent as the user wrote it: parsing could change its numbers.
    const body = `{"input":${input.value},"policy":${JSON.stringify(policy)}}`;
    const job = await attempt(send, () => post(`/v2/${encodeURIComponent(id)}/run`, body));
    if (job) location.hash = to('endpoints', id, 'jobs', job.id);
  });
  check();
  return { title: 'Submit a job', element: h('div', { class: 'narrow' }, head.element, form), focus: () => input.focus() };
}
