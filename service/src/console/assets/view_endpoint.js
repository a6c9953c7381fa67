// The view of one endpoint: its jobs, its workers, its settings.
import { watch } from './api.js';
import { strip, workerWords } from './charts.js';
import { h, put } from './dom.js';
import { count, duration } from './format.js';
import {
  commands, copyButton, delayOf, emptiness, executionOf, facts, failure, figures, filterField, heading, jobState, JOB_STATES,
  moment, section, shortId, since, to, workerState,
} from './parts.js';
import { showLink } from './shell.js';
import { table } from './table.js';
import { address, requestForm } from './view_balancer.js';
import { kind } from './view_endpoints.js';

export function endpoint(id) {
  const submitLink = h('a', { class: 'button primary', href: to('endpoints', id, 'submit'), 'aria-keyshortcuts': 'n' }, 'Submit a job', h('kbd', { 'aria-hidden': 'true' }, 'n'));
  const logsLink = h('a', { class: 'button', href: to('endpoints', id, 'logs'), 'aria-keyshortcuts': 'l' }, 'Logs', h('kbd', { 'aria-hidden': 'true' }, 'l'));
  const type = h('span', { class: 'tag' });
  const head = heading({
    trail: [['Endpoints', to('endpoints')]],
    title: id,
    beside: [type, h('span', { class: 'id' }, id), copyButton(id, 'the id')],
    actions: [logsLink, submitLink],
  });
  const totals = figures('The endpoint now');
  const workers = workerTable(id);
  const settings = facts('Settings');
  const columnMain = h('div', { class: 'column-main' });
  const body = h('div', { class: 'columns' }, columnMain,
    h('div', { class: 'column-side' }, section('Workers', null, workers.element), section('Settings', null, settings.element)));
  let jobs = null;
  let request = null;
  /** Jobs are for queues, requests for load balancers; an endpoint is one of both for good. */
  const begin = (state) => {
    if (state.type === 'LB') {
      request = requestForm(id);
      submitLink.remove();
      put(columnMain, address(state.base), section('Request', null, request.element));
    } else {
      jobs = jobTable(id);
      put(columnMain, section('Jobs', jobs.beside, jobs.element));
    }
  };
  const view = {
    title: id,
    element: h('div', {}, head.element, totals.element, body),
    shortcuts: [
      { keys: 'n', text: 'Submit a job, or send a request', run: () => (request ? request.focus() : submitLink.click()) },
      { keys: 'l', text: 'Logs of the workers', run: () => logsLink.click() },
    ],
  };
  view.end = watch(`endpoint/${id}`, {
    state(state) {
      if (!jobs && !request) begin(state);
      put(head.name, state.name);
      put(type, kind(state));
      document.title = `${state.name} · Plumb console`;
      totals.update([
        ...(request ? requestFigures(state) : jobFigures(state)),
        ['Workers', h('span', { class: 'workers' }, strip(state.workers, state.workersMax), h('span', { class: 'words' }, workerWords(state.workers, state.workersMax)))],
      ]);
      jobs?.update(state.jobList);
      workers.update(state.workerList);
      settings.update(settingPairs(state));
    },
    gone: () => put(body, failure(new Error('This endpoint does not exist, or no longer does.'))),
    link: showLink,
    refused: (error) => put(body, failure(error)),
  });
  return view;
}

const jobFigures = ({ jobs }) => [
  ['In queue', count(jobs.queued)], ['Running', count(jobs.running)],
  ['Completed', count(jobs.completed)], ['Failed', count(jobs.failed)], ['Retried', count(jobs.retried)],
];

const requestFigures = ({ jobs }) => [['Requests waiting', count(jobs.queued)], ['Requests running', count(jobs.running)]];

function jobTable(id) {
  let chosen = '';
  const filter = filterField('Filter jobs', () => list.draw());
  const choices = h('select', { 'aria-label': 'State of the jobs' }, h('option', { value: '' }, 'All states'),
    Object.entries(JOB_STATES).map(([name, [word]]) => h('option', { value: name }, word)));
  choices.addEventListener('change', () => {
    chosen = choices.value;
    list.draw();
  });
  const list = table({
    caption: 'Jobs, the newest first',
    key: (row) => row.id,
    filter: (row) => (!chosen || row.state === chosen) && filter.matches(row.id, row.state, row.worker ?? '', row.error ?? ''),
    empty: () => emptiness('There are no jobs.',
      h('p', {}, h('a', { href: to('endpoints', id, 'submit') }, 'Submit one'), ' here, or from a shell:'),
      commands(`plumb job run ${id} '{"prompt": "hello"}'`),
      h('p', { class: 'note' }, 'Results are kept for 30 minutes, those of /runsync for one.')),
    columns: [
      { label: 'State', cell: (row) => jobState(row.state) },
      { label: 'Job', head: true, wide: true, cell: (row) => [h('a', { href: to('endpoints', id, 'jobs', row.id), class: 'mono', title: row.id }, shortId(row.id)),
        row.error && h('span', { class: 'row-error' }, firstLine(row.error))] },
      { label: 'Created', number: true, minor: true, cell: (row) => moment(row.created) },
      { label: 'Delay', number: true, cell: delayOf },
      { label: 'Execution', number: true, cell: executionOf },
    ],
  });
  const note = h('p', { class: 'note' });
  return {
    beside: h('div', { class: 'bar-line' }, choices, filter.element),
    element: h('div', {}, list.element, note),
    update(rows) {
      list.update(rows);
      put(note, rows.length >= 200 && 'The newest 200 jobs are shown.');
    },
  };
}

/** What an error says first; a traceback says it last. */
function firstLine(error) {
  try {
    const parsed = JSON.parse(error);
    if (typeof parsed?.error_message === 'string') return parsed.error_message.slice(0, 160);
  } catch {
    // The error is not JSON but plain text.
  }
  return error.split('\n')[0].slice(0, 160);
}

function workerTable(id) {
  return table({
    caption: 'Workers',
    key: (row) => row.id,
    empty: () => emptiness('No worker runs.', h('p', { class: 'note' }, 'Workers start when there is work, and end when they were idle for long enough.')),
    columns: [
      { label: 'State', cell: (row) => workerState(row.state) },
      { label: 'Worker', head: true, wide: true, cell: (row) => [
        h('a', { href: to('endpoints', id, 'logs', row.id), class: 'mono', title: 'Logs of this worker' }, row.id),
        row.isStale && h('span', { class: 'tag warn' }, `version ${row.version}`),
        row.requests > 0 && h('span', { class: 'tag' }, row.requests === 1 ? '1 request' : `${count(row.requests)} requests`),
        row.jobs.slice(0, 3).map((job) => h('a', { class: 'id', href: to('endpoints', id, 'jobs', job), title: `Job ${job}` }, shortId(job)))] },
      { label: 'Up for', number: true, cell: (row) => since(row.started) },
    ],
  });
}

function settingPairs(state) {
  const { settings } = state;
  const pairs = [];
  const add = (name, value) => value !== null && value !== undefined && value !== '' && pairs.push([name, value]);
  const { template } = settings;
  if (template) {
    add('Template', template.isOwn ? 'its own' : h('span', {}, template.name, ' ', h('span', { class: 'id' }, template.id)));
    add('Image', h('span', { class: 'mono' }, template.image));
    add('Command', template.command.length > 0 ? h('code', {}, template.command.join(' ')) : 'the built-in echo worker');
  }
  add('Workers', `${state.workersMin} to ${state.workersMax}`);
  add('Scaler', settings.scaler === 'QUEUE_DELAY' ? `queue delay of ${settings.scalerValue} s` : `${settings.scalerValue} requests a worker`);
  add('Idle timeout', `${settings.idleTimeout} s`);
  if (state.type !== 'LB') add('Execution limit', settings.executionTimeoutMs > 0 ? duration(settings.executionTimeoutMs) : 'none');
  if (state.compute === 'GPU') add('GPU', `${settings.gpuCount} × ${settings.gpus.slice(0, 3).join(', ') || 'any'}`);
  else add('CPU', settings.cpus.slice(0, 3).join(', '));
  add('Volumes', settings.volumes.length > 0 && h('span', { class: 'mono' }, settings.volumes.join(', ')) || null);
  add('Models', settings.models.join(', '));
  add('Environment', settings.environment.join(', '));
  add('Version', String(state.version));
  add('Created', moment(state.created));
  return pairs;
}
