// The start of the page, and the table of the views and their addresses.
import { onSignedOut, session } from './api.js';
import { h, put } from './dom.js';
import { always, moveRow, onlyHere, showHelp } from './keyboard.js';
import { failure } from './parts.js';
import { PLACES, markPlace, nextTheme, showLink, showShell, showSignIn } from './shell.js';
import { costs, keys, templates, volumes } from './view_account.js';
import { endpoint } from './view_endpoint.js';
import { endpoints } from './view_endpoints.js';
import { job } from './view_job.js';
import { logs } from './view_logs.js';
import { podLogs, pods } from './view_pods.js';
import { submit } from './view_submit.js';

/** A view takes the parts of its path and returns its element, title, shortcuts, and what ends it. */
const ROUTES = [
  [/^\/(?:endpoints)?$/, 'endpoints', endpoints],
  [/^\/endpoints\/([^/]+)$/, 'endpoints', endpoint],
  [/^\/endpoints\/([^/]+)\/submit$/, 'endpoints', submit],
  [/^\/endpoints\/([^/]+)\/logs(?:\/([^/]+))?$/, 'endpoints', logs],
  [/^\/endpoints\/([^/]+)\/jobs\/([^/]+)$/, 'endpoints', job],
  [/^\/pods$/, 'pods', pods],
  [/^\/pods\/([^/]+)\/logs$/, 'pods', podLogs],
  [/^\/volumes$/, 'volumes', volumes],
  [/^\/templates$/, 'templates', templates],
  [/^\/keys$/, 'keys', keys],
  [/^\/costs$/, 'costs', costs],
];

let main = null;
let end = () => {};

function show() {
  const path = location.hash.slice(1) || '/';
  const isFirst = main.childElementCount === 0;
  end();
  showLink(null);
  const found = ROUTES.map(([form, place, view]) => ({ found: form.exec(path), place, view })).find((one) => one.found);
  if (!found) {
    onlyHere();
    markPlace('');
    end = () => {};
    put(main, h('h1', { tabindex: '-1' }, 'There is no such page'), h('p', {}, h('a', { href: '#/endpoints' }, 'Go to the endpoints.')));
    return;
  }
  const places = found.found.slice(1).filter((part) => part !== undefined).map(decodeURIComponent);
  let view;
  try {
    view = found.view(...places);
  } catch (error) {
    view = { element: failure(error), title: 'Error' };
  }
  end = view.end ?? (() => {});
  onlyHere(view.shortcuts);
  markPlace(found.place);
  document.title = `${view.title} · Plumb console`;
  put(main, view.element);
  scrollTo(0, 0);
  if (view.focus) view.focus();
  else if (!isFirst) main.querySelector('h1')?.focus({ preventScroll: true });
}

function enter() {
  main = showShell();
  put(main);
  window.addEventListener('hashchange', show);
  show();
}

function leave() {
  window.removeEventListener('hashchange', show);
  end();
  end = () => {};
  onlyHere();
  if (!document.querySelector('.sign-in')) showSignIn(enter, main ? 'The session has ended.' : '');
}

always(
  { keys: '/', text: 'Filter the list', run: () => document.querySelector('main input[type=search]')?.focus() },
  { keys: 'j', text: 'Next row', run: () => moveRow(1) },
  { keys: 'k', text: 'Row before', run: () => moveRow(-1) },
  { keys: 'u', text: 'Up: to the page that this one belongs to', run: () => [...document.querySelectorAll('.trail a')].at(-1)?.click() },
  ...PLACES.map(([path, name, key]) => ({ keys: `g ${key}`, text: name, run: () => { location.hash = `#/${path}`; } })),
  { keys: 'd', text: 'Next theme: system, light, dark', run: nextTheme },
  { keys: '?', text: 'This help', run: showHelp },
);
onSignedOut(leave);
session().then((found) => (found ? enter() : showSignIn(enter)),
  (error) => put(document.body, h('main', { class: 'door' }, failure(error))));
