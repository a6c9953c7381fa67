// The view of the other objects of the account: volumes, templates, keys, costs.
import { get, read } from './api.js';
import { bars } from './charts.js';
import { h, put } from './dom.js';
import { bytes, count, dayOf, duration, money } from './format.js';
import { commands, emptiness, failure, figures, filterField, heading, moment, section, to } from './parts.js';
import { table } from './table.js';

/** The time between two looks at a list that no stream tells of. */
const LOOK = 3000;

/** A view of a list that is read again while it is visible. */
export function listView({ title, load, columns, key = (row) => row.id, words, empty, note }) {
  const filter = filterField(`Filter ${title.toLowerCase()}`, () => list.draw());
  const list = table({ caption: title, columns, key, empty, filter: (row) => filter.matches(...words(row)) });
  const bar = h('div', { class: 'bar-line' }, filter.element);
  const said = h('div');
  const look = async () => {
    try {
      const rows = await load();
      bar.hidden = rows.length === 0;
      list.update(rows);
      put(said, rows.length > 0 && note);
    } catch (error) {
      if (error.status !== 401) put(said, failure(error));
    }
  };
  const again = setInterval(() => !document.hidden && look(), LOOK);
  bar.hidden = true;
  look();
  return { title, element: h('div', {}, heading({ title }).element, bar, list.element, said), end: () => clearInterval(again), look };
}

const named = (row) => [h('span', { class: 'name' }, row.name), h('span', { class: 'id' }, row.id)];

export function volumes() {
  const load = async () => {
    const [found, used] = await Promise.all([get('/v1/networkvolumes'), read('usage')]);
    return found.map((row) => ({ ...row, used: used[row.id] ?? null }));
  };
  return listView({
    title: 'Volumes', load,
    words: (row) => [row.name, row.id, row.dataCenterId],
    empty: () => emptiness('There are no network volumes.', h('p', {}, 'A volume keeps files that workers share. Declare one in a spec:'),
      commands('[resource.network_volume.models]', 'name = "models"', 'size = 10', 'data_center_id = "EU-RO-1"')),
    columns: [
      { label: 'Volume', head: true, wide: true, cell: named },
      { label: 'Data center', minor: true, cell: (row) => row.dataCenterId },
      { label: 'Used', number: true, cell: (row) => (row.used === null ? '–' : bytes(row.used)) },
      { label: 'Size', number: true, cell: (row) => `${count(row.size)} GB` },
      { label: 'Fill', cell: fill },
    ],
  });
}

function fill(row) {
  const share = row.used === null ? 0 : row.used / (row.size * 1e9);
  const meter = h('span', { class: `meter ${share > 1 ? 'bad' : ''}`, 'aria-hidden': 'true' }, h('i'));
  meter.firstChild.style.inlineSize = `${Math.min(100, share * 100)}%`;
  const word = share > 1 ? 'full' : `${share > 0 && share < 0.01 ? '<1' : Math.round(share * 100)} %`;
  return h('span', { class: 'meter-place' }, meter, word);
}

export function templates() {
  return listView({
    title: 'Templates',
    load: () => get('/v1/templates?includeEndpointBoundTemplates=true'),
    words: (row) => [row.name, row.id, row.imageName],
    empty: () => emptiness('There are no templates.', h('p', {}, 'A template says what a worker runs. A spec with one is written by:'), commands('plumb init')),
    columns: [
      { label: 'Template', head: true, wide: true, cell: named },
      { label: 'Image', cell: (row) => h('span', { class: 'mono' }, row.imageName) },
      { label: 'Command', minor: true, cell: (row) => {
        const words = [...(row.dockerEntrypoint ?? []), ...(row.dockerStartCmd ?? [])];
        return words.length > 0 ? h('code', { class: 'long' }, words.join(' ')) : h('span', { class: 'zero' }, 'built-in echo worker');
      } },
      { label: 'Variables', number: true, minor: true, cell: (row) => count(Object.keys(row.env ?? {}).length) },
    ],
  });
}

export function keys() {
  return listView({
    title: 'Keys',
    load: async () => (await read('keys')).keys,
    key: (row) => row.name ?? '',
    words: (row) => [row.name ?? 'account', row.rights],
    empty: () => emptiness('There are no keys.'),
    columns: [
      { label: 'Key', head: true, wide: true, cell: (row) => [
        h('span', { class: 'name' }, row.name ?? 'The key of the account'), row.isOwn && h('span', { class: 'tag' }, 'signed in with it')] },
      { label: 'Rights', cell: (row) => row.rights },
      { label: 'Created', number: true, minor: true, cell: (row) => (row.created ? moment(row.created) : '–') },
    ],
    note: h('div', { class: 'note' }, h('p', {}, 'No page shows a key. A key with fewer rights is made, and revoked, from a shell:'),
      commands('plumb serve key create ci --read-only', 'plumb serve key revoke ci')),
  });
}

const RANGES = [['day', 30, '30 days'], ['hour', 24, '24 hours']];

export function costs() {
  const range = h('select', { 'aria-label': 'Time' }, RANGES.map(([bucket, , text]) => h('option', { value: bucket }, text)));
  const body = h('div');
  const load = async () => {
    const [bucket, number, text] = RANGES.find(([name]) => name === range.value);
    const start = new Date(Date.now() - (number - 1) * (bucket === 'day' ? 86_400_000 : 3_600_000)).toISOString();
    const query = `?bucketSize=${bucket}&startTime=${start}`;
    const [byEndpoint, byVolume, byPod, endpoints, volumesFound] = await Promise.all([
      get(`/v1/billing/endpoints${query}`), get(`/v1/billing/networkvolumes${query}`), get(`/v1/billing/pods${query}`),
      get('/v1/endpoints'), get('/v1/networkvolumes')]);
    const names = new Map([...endpoints, ...volumesFound].map((one) => [one.id, one.name]));
    put(body, costParts({ bucket, number, text, groups: [
      ['Endpoints', byEndpoint, 'endpointId'], ['Volumes', byVolume, 'networkVolumeId'], ['Pods', byPod, 'podId']], names }));
  };
  const look = () => load().catch((error) => put(body, failure(error)));
  range.addEventListener('change', look);
  look();
  const head = heading({ title: 'Costs', actions: [range] });
  return { title: 'Costs', element: h('div', {}, head.element, body) };
}

function costParts({ bucket, number, text, groups, names }) {
  const records = groups.flatMap(([group, found, field]) => found.map((one) => ({ group, id: one[field], ...one })));
  const sum = (list) => list.reduce((all, one) => all + one.amount, 0);
  const totals = figures('Costs');
  totals.update([[`Total, ${text}`, money(sum(records))], ...groups.map(([group]) => [group, money(sum(records.filter((one) => one.group === group)))])]);
  const objects = new Map();
  for (const one of records) {
    const known = objects.get(one.id) ?? { id: one.id, group: one.group, name: names.get(one.id), amount: 0, ms: 0 };
    known.amount += one.amount;
    known.ms += one.timeBilledMs;
    objects.set(one.id, known);
  }
  const rows = [...objects.values()].sort((left, right) => right.amount - left.amount);
  const list = table({
    caption: 'Costs by object', key: (row) => row.id,
    empty: () => emptiness('Nothing has cost anything yet.', h('p', { class: 'note' }, 'Workers, volumes and pods count while the service runs.')),
    columns: [
      { label: 'Object', head: true, wide: true, cell: (row) => [
        row.group === 'Endpoints' && row.name ? h('a', { class: 'name', href: to('endpoints', row.id) }, row.name) : h('span', { class: 'name' }, row.name ?? 'removed'),
        h('span', { class: 'id' }, row.id)] },
      { label: 'Kind', minor: true, cell: (row) => row.group.slice(0, -1) },
      { label: 'Time', number: true, cell: (row) => duration(row.ms) },
      { label: 'Cost', number: true, cell: (row) => money(row.amount) },
    ],
  });
  list.update(rows);
  return [totals.element, section(bucket === 'day' ? 'By day' : 'By hour', null, costBars(records, bucket, number)),
    section('By object', null, list.element),
    h('p', { class: 'note' }, 'Nobody is billed. These are the prices of the catalog for the time that was used.')];
}

function costBars(records, bucket, number) {
  const step = bucket === 'day' ? 86_400_000 : 3_600_000;
  const last = Math.floor(Date.now() / step) * step;
  const amounts = new Map();
  for (const one of records) {
    const at = Date.parse(one.time);
    amounts.set(at, (amounts.get(at) ?? 0) + one.amount);
  }
  const all = Array.from({ length: number }, (_, at) => {
    const start = last - (number - 1 - at) * step;
    const label = bucket === 'day' ? dayOf(start) : `${String(new Date(start).getUTCHours()).padStart(2, '0')}:00 UTC`;
    return { label, value: amounts.get(start) ?? 0, title: `${label}: ${money(amounts.get(start) ?? 0)}` };
  });
  const total = all.reduce((sum, bar) => sum + bar.value, 0);
  return bars(all, `Costs ${bucket === 'day' ? 'by day' : 'by hour'}, ${money(total)} altogether`);
}
