// The view of the pods: their states, their actions, and their output.
import { get, post, remove } from './api.js';
import { h, put, shape } from './dom.js';
import { elapsed, money } from './format.js';
import { logPane } from './log_pane.js';
import { attempt, emptiness, heading, tell, to } from './parts.js';
import { listView } from './view_account.js';

/** The states of pods: the word and the shape of each. */
const STATES = {
  PROVISIONING: ['Provisioning', 'starting'],
  STARTING: ['Starting', 'starting'],
  RUNNING: ['Running', 'running'],
  EXITED: ['Stopped', 'cancelled'],
  ERROR: ['Failed', 'failed'],
};

/** The actions: what their buttons say, and what is said once they are done. */
const ACTIONS = {
  start: ['Start', 'is starting'],
  stop: ['Stop', 'is stopped'],
  restart: ['Restart', 'is starting again'],
  terminate: ['Terminate', 'is terminated'],
};

export function pods() {
  const view = listView({
    title: 'Pods',
    load: async () => (await get('/v2/pods')).pods,
    words: (row) => [row.name, row.id, row.image, row.status],
    empty: () => emptiness('There are no pods.', h('p', {}, 'A pod is a process that runs until it is stopped. Declare one in a spec, or create one with the ',
      h('a', { href: '/v2/docs' }, 'REST API'), '.')),
    columns: [
      { label: 'State', cell: (row) => state(row.status) },
      { label: 'Pod', head: true, wide: true, cell: (row) => [
        h('a', { class: 'name', href: to('pods', row.id, 'logs'), title: 'Logs of this pod' }, row.name), h('span', { class: 'id' }, row.id)] },
      { label: 'Image', minor: true, cell: (row) => h('span', { class: 'mono' }, row.image) },
      { label: 'Ports', minor: true, cell: ports },
      { label: 'Up for', number: true, minor: true, cell: (row) => (row.runtime ? elapsed(row.runtime.uptime * 1000) : '–') },
      { label: 'Per hour', number: true, minor: true, cell: (row) => money(row.cost) },
      { label: 'Actions', cell: (row) => h('div', { class: 'row-actions' },
        row.actions.map((action) => actionButton(row, action, () => view.look()))) },
    ],
  });
  return view;
}

function state(name) {
  const [word, form] = STATES[name] ?? [name, 'idle'];
  return h('span', { class: `state state-${form}` }, shape(form), word);
}

/** `8080/http → :8080`: the port inside, and the one of this machine. */
function ports(row) {
  const open = row.runtime?.ports ?? [];
  if (open.length === 0) return '–';
  return open.map((port) => h('span', { class: 'port mono' }, `${port.private}/${port.type} → :${port.public}`));
}

function actionButton(row, action, done) {
  const [word, said] = ACTIONS[action] ?? [action, action];
  const button = h('button', { type: 'button', 'aria-label': `${word} ${row.name}` }, word);
  button.addEventListener('click', async () => {
    if (action === 'terminate' && !confirm(`Terminate the pod “${row.name}”? Its own volume goes with it.`)) return;
    const path = `/v2/pods/${encodeURIComponent(row.id)}`;
    const work = () => (action === 'terminate' ? remove(path) : post(`${path}/action`, JSON.stringify({ action })));
    const isDone = await attempt(button, async () => {
      await work();
      return true;
    });
    if (isDone) tell(`The pod “${row.name}” ${said}.`);
    done();
  });
  return button;
}

export function podLogs(id) {
  const head = heading({ trail: [['Pods', to('pods')], [id, to('pods')]], title: 'Logs' });
  get(`/v2/pods/${encodeURIComponent(id)}`).then((pod) => put(head.element.querySelector('li:last-child a'), pod.name), () => {});
  const pane = logPane({ label: 'Output of the pod', over: 'The pod does not run.' });
  pane.open(`/v2/pods/${encodeURIComponent(id)}/logs`);
  return {
    title: 'Logs',
    element: h('div', { class: 'logs-view' }, head.element,
      h('div', { class: 'log-place' }, h('div', { class: 'bar-line' }, pane.controls), pane.parts)),
    shortcuts: pane.shortcuts,
    end: pane.end,
  };
}
