// The view of all endpoints, with their workers and queues, updated all the time.
import { watch } from './api.js';
import { spark, strip, workerWords } from './charts.js';
import { h, put } from './dom.js';
import { count } from './format.js';
import { commands, emptiness, failure, figures, filterField, heading, to } from './parts.js';
import { showLink } from './shell.js';
import { table } from './table.js';

/** The time between two samples of a line, and how many of them it has. */
const SAMPLE = 2000;
const SAMPLES = 60;

export function endpoints() {
  const head = heading({ title: 'Endpoints' });
  const totals = figures('All endpoints');
  const filter = filterField('Filter endpoints', () => list.draw());
  const history = new Map();
  const list = table({
    caption: 'Endpoints',
    key: (row) => row.id,
    filter: (row) => filter.matches(row.name, row.id, row.type, row.compute),
    empty: nothing,
    columns: [
      { label: 'Endpoint', head: true, wide: true, cell: (row) => [
        h('a', { href: to('endpoints', row.id), class: 'name' }, row.name), h('span', { class: 'id' }, row.id)] },
      { label: 'Type', minor: true, cell: (row) => h('span', { class: 'tag' }, kind(row)) },
      { label: 'Workers', cell: (row) => h('span', { class: 'workers' }, strip(row.workers, row.workersMax),
        h('span', { class: 'words' }, workerWords(row.workers, row.workersMax))) },
      { label: 'In queue', number: true, cell: (row) => numeral(row.jobs.queued, 'waiting') },
      { label: 'Running', number: true, cell: (row) => numeral(row.jobs.running) },
      { label: 'Completed', number: true, minor: true, cell: (row) => numeral(row.jobs.completed) },
      { label: 'Failed', number: true, minor: true, cell: (row) => numeral(row.jobs.failed, 'bad') },
      { label: 'Queue, 2 minutes', minor: true, cell: (row) => spark(row.history, { samples: SAMPLES }) },
    ],
  });
  const more = h('p', { class: 'note' });
  const body = h('div', {}, h('div', { class: 'bar-line' }, filter.element), list.element, more);
  let last = null;

  const draw = () => {
    if (!last) return;
    const rows = last.endpoints.map((row) => ({ ...row, history: [...(history.get(row.id) ?? []), row.jobs.queued].slice(-SAMPLES) }));
    const sum = (of) => rows.reduce((all, row) => all + of(row), 0);
    totals.update([
      ['Endpoints', count(last.total)],
      ['Workers', count(sum((row) => row.workers.running + row.workers.idle + row.workers.starting))],
      ['In queue', count(sum((row) => row.jobs.queued))],
      ['Running', count(sum((row) => row.jobs.running))],
      ['Completed', count(sum((row) => row.jobs.completed))],
      ['Failed', count(sum((row) => row.jobs.failed))],
    ]);
    list.update(rows);
    put(more, last.total > rows.length && `The newest ${count(rows.length)} of ${count(last.total)} endpoints are shown.`);
  };
  const sample = setInterval(() => {
    for (const row of last?.endpoints ?? []) {
      history.set(row.id, [...(history.get(row.id) ?? []), row.jobs.queued].slice(-SAMPLES + 1));
    }
    draw();
  }, SAMPLE);
  const stop = watch('endpoints', {
    state(state) {
      last = state;
      draw();
    },
    link: showLink,
    refused: (error) => put(body, failure(error)),
  });
  return {
    title: 'Endpoints',
    element: h('div', {}, head.element, totals.element, body),
    end() {
      clearInterval(sample);
      stop();
    },
  };
}

/** `Queue · GPU` */
export const kind = (row) => `${row.type === 'LB' ? 'Load balancer' : 'Queue'} · ${row.compute}`;

const numeral = (number, name) => h('span', { class: number > 0 ? name : 'zero' }, count(number));

function nothing() {
  return emptiness('There are no endpoints yet.',
    h('p', {}, 'An endpoint takes jobs and starts workers for them. Write a spec and apply it to this service:'),
    commands('plumb init', 'plumb apply'),
    h('p', {}, 'Or create one with the ', h('a', { href: '/v1/docs' }, 'REST API'), '.'));
}
