// The frame around every view: navigation, the state of the connection, theme, sign-in.
import { signIn, signOut } from './api.js';
import { h, mark, put, shape } from './dom.js';
import { helpDialog, showHelp } from './keyboard.js';
import { noticePlace, to } from './parts.js';

/** The views of the navigation: path, name, key. */
export const PLACES = [
  ['endpoints', 'Endpoints', 'e'],
  ['pods', 'Pods', 'p'],
  ['volumes', 'Volumes', 'v'],
  ['templates', 'Templates', 't'],
  ['keys', 'Keys', 'k'],
  ['costs', 'Costs', 'c'],
];

const THEMES = [['system', 'System theme'], ['light', 'Light theme'], ['dark', 'Dark theme']];

function themeButton() {
  const button = h('button', { type: 'button', class: 'quiet tool' });
  const chosen = () => localStorage.getItem('plumb-theme') ?? 'system';
  const draw = () => {
    const [name, text] = THEMES.find(([known]) => known === chosen()) ?? THEMES[0];
    put(button, shape(name), h('span', {}, text));
  };
  button.addEventListener('click', () => nextTheme());
  draw();
  return { button, draw };
}

const theme = themeButton();

/** Goes from the system's theme to light, to dark, and back. */
export function nextTheme() {
  const chosen = localStorage.getItem('plumb-theme') ?? 'system';
  const at = THEMES.findIndex(([name]) => name === chosen);
  const [next] = THEMES[(at + 1) % THEMES.length];
  if (next === 'system') {
    localStorage.removeItem('plumb-theme');
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem('plumb-theme', next);
    document.documentElement.dataset.theme = next;
  }
  theme.draw();
}

const link = h('p', { class: 'link', role: 'status' });

/** Shows whether what is on the page follows the service. `null`: nothing on it changes by itself. */
export function showLink(isUp) {
  link.dataset.up = String(isUp);
  if (isUp === null) put(link);
  else put(link, shape(isUp ? 'live' : 'starting'), isUp ? 'Live' : 'Reconnecting…');
}

const main = h('main', { id: 'main', tabindex: '-1' });
const links = PLACES.map(([path, name]) => h('a', { href: to(path), 'data-path': path }, name));

/** The frame of all views, once somebody is signed in. Returns where the view goes. */
export function showShell() {
  put(document.body,
    h('a', { class: 'skip', href: '#main', onclick: (event) => { event.preventDefault(); main.focus(); } }, 'Skip to the content'),
    h('header', { class: 'side' },
      h('a', { class: 'brand', href: to('endpoints') }, mark(), h('span', {}, 'Plumb'), h('small', {}, location.host)),
      h('nav', { class: 'places', 'aria-label': 'Console' }, h('ul', {}, links.map((one) => h('li', {}, one)))),
      h('nav', { class: 'docs', 'aria-label': 'API pages' },
        h('a', { href: '/v1/docs' }, 'API version 1'), h('a', { href: '/v2/docs' }, 'API version 2')),
      h('div', { class: 'tools' }, link, theme.button,
        h('button', { type: 'button', class: 'quiet tool', onclick: showHelp, 'aria-keyshortcuts': '?' }, h('kbd', { 'aria-hidden': 'true' }, '?'), h('span', {}, 'Keyboard')),
        h('button', { type: 'button', class: 'quiet tool', onclick: signOut }, shape('stopped'), h('span', {}, 'Sign out')))),
    main, noticePlace(), helpDialog());
  return main;
}

/** Marks the place of the navigation that a view belongs to. */
export function markPlace(path) {
  for (const one of links) {
    if (one.dataset.path === path) {
      one.setAttribute('aria-current', 'page');
      one.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    } else one.removeAttribute('aria-current');
  }
}

/** The form for the key. Calls back once it was right. */
export function showSignIn(done, said = '') {
  const field = h('input', { id: 'key', type: 'password', name: 'key', autocomplete: 'current-password', required: true, spellcheck: 'false', 'aria-describedby': 'key-note key-error' });
  const error = h('p', { id: 'key-error', class: 'field-error', role: 'alert' }, said);
  const button = h('button', { class: 'primary' }, 'Sign in');
  const form = h('form', { class: 'sign-in' },
    h('div', { class: 'brand' }, mark(), h('span', {}, 'Plumb')),
    h('h1', {}, 'Sign in to the service'),
    h('p', { class: 'address' }, location.host),
    h('label', { for: 'key' }, 'Key'), field, error, button,
    h('p', { id: 'key-note', class: 'note' }, 'The key stands in ', h('code', {}, 'serve.json'),
      ' of the data folder, by default ', h('code', {}, '.plumb/service'),
      '. It is sent once; afterwards a cookie stands for it until you sign out or the service ends.'));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.disabled = true;
    put(error);
    try {
      await signIn(field.value);
      done();
    } catch (problem) {
      put(error, problem.message);
      field.setAttribute('aria-invalid', 'true');
      field.select();
    } finally {
      button.disabled = false;
    }
  });
  document.title = 'Sign in · Plumb console';
  put(document.body, h('main', { class: 'door' }, form));
  field.focus();
}
