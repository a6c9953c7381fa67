// The view of the output of workers, updated as they print it.
import { read } from './api.js';
import { h, put } from './dom.js';
import { bytes, time } from './format.js';
import { logPane } from './log_pane.js';
import { emptiness, failure, heading, nameInTrail, to } from './parts.js';

export function logs(endpoint, wanted) {
  const head = heading({ trail: [['Endpoints', to('endpoints')], [endpoint, to('endpoints', endpoint)]], title: 'Logs' });
  nameInTrail(head, endpoint);
  const choice = h('select', { 'aria-label': 'Worker' });
  const pane = logPane({ label: 'Output of the worker', over: 'The worker is gone; its log is complete.' });
  const body = h('div', { class: 'log-place' });

  const open = (worker) => pane.open(`/v2/serverless/${encodeURIComponent(endpoint)}/workers/${encodeURIComponent(worker)}/logs`);
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
    put(body, h('div', { class: 'bar-line' }, choice, pane.controls), pane.parts);
    open(first);
  };
  choice.addEventListener('change', () => open(choice.value));
  load().catch((error) => put(body, failure(error)));
  return {
    title: 'Logs',
    element: h('div', { class: 'logs-view' }, head.element, body),
    shortcuts: pane.shortcuts,
    end: pane.end,
  };
}
