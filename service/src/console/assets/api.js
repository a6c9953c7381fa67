// Calls to the service. The page does not have the key. Instead it has a cookie that no script can
// read, and a token that only pages of this address can read.
import { setClock } from './format.js';

const TOKEN = 'plumb-console-token';

/** The longest silence of a stream; the service says something every five seconds. */
const SILENCE = 15_000;

/** An answer that is none, as a sentence for the person who asked. */
export class Refusal extends Error {
  constructor(message, status, response = null) {
    super(message);
    this.status = status;
    this.response = response;
  }
}

const listeners = new Set();

/** Calls back when the session has ended. */
export const onSignedOut = (listener) => listeners.add(listener);

async function send(method, path, { body, headers = {}, signal } = {}) {
  const token = localStorage.getItem(TOKEN);
  const sent = { ...headers };
  if (token) sent['x-plumb-console'] = token;
  if (body !== undefined) sent['content-type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, { method, headers: sent, body, signal, cache: 'no-store' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refusal('The service does not answer. Check that plumb serve is still running.', 0);
  }
  if (response.ok) return response;
  if (response.status === 401 && path !== '/console/session') listeners.forEach((tell) => tell());
  throw new Refusal(await reason(response.clone()), response.status, response);
}

async function reason(response) {
  const text = await response.text().catch(() => '');
  try {
    const body = JSON.parse(text);
    const said = body.error ?? body.detail ?? body.title;
    if (typeof said === 'string' && said) return sentence(said);
  } catch {
    // The answer is not JSON, so its status is all that can be shown.
  }
  return `The service answered with status ${response.status}.`;
}

export function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

/** The JSON of an answer of the REST APIs or the job API: `get('/v1/endpoints')`. */
export async function get(path) {
  return (await send('GET', `/console/api${path}`)).json();
}

/** Sends JSON text and returns the JSON of the answer, if there is one. */
export async function post(path, text = '{}') {
  const answer = await (await send('POST', `/console/api${path}`, { body: text })).text();
  return answer ? JSON.parse(answer) : null;
}

/** Removes an object. */
export async function remove(path) {
  await send('DELETE', `/console/api${path}`);
}

/** Sends a request to a worker, and returns what it answers, whatever its status. */
export async function exchange(method, path, body) {
  const began = performance.now();
  try {
    const response = await send(method, `/console/api${path}`, { body });
    return await exchanged(response, began);
  } catch (error) {
    if (error.response) return exchanged(error.response, began);
    throw error;
  }
}

async function exchanged(response, began) {
  const text = await response.text();
  return {
    status: response.status, text, ms: performance.now() - began,
    worker: response.headers.get('x-runpod-worker-id'), media: response.headers.get('content-type') ?? '',
  };
}

/** The JSON of an answer of the console's own routes. */
export async function read(path) {
  return (await send('GET', `/console/${path}`)).json();
}

/** A text that may be large, and the bytes of all of it. */
export async function text(path) {
  const response = await send('GET', `/console/${path}`);
  const whole = Number(response.headers.get('x-plumb-bytes') ?? 0);
  return { text: await response.text(), bytes: whole };
}

/** Opens a session with the key. */
export async function signIn(key) {
  const response = await send('POST', '/console/session', { body: JSON.stringify({ key }) });
  localStorage.setItem(TOKEN, (await response.json()).token);
}

/** Returns what the service says of the session, or null if there is none. */
export async function session() {
  if (!localStorage.getItem(TOKEN)) return null;
  try {
    return await (await send('GET', '/console/session')).json();
  } catch (error) {
    if (error.status === 401) return null;
    throw error;
  }
}

export async function signOut() {
  await send('DELETE', '/console/session').catch(() => {});
  localStorage.removeItem(TOKEN);
  listeners.forEach((tell) => tell());
}

/**
 * Follows server-sent events until it is told to stop; returns what stops it. `on.event(name, data)`
 * gets each event, `on.link(isUp)` hears whether the stream is open. With `once` it ends with the stream.
 */
export function follow(path, on, { once = false } = {}) {
  const stop = new AbortController();
  let last = '';
  const run = async () => {
    for (let pause = 500; !stop.signal.aborted; pause = Math.min(pause * 2, 8000)) {
      const attempt = new AbortController();
      const end = () => attempt.abort();
      stop.signal.addEventListener('abort', end);
      try {
        const headers = last ? { 'last-event-id': last } : {};
        const response = await send('GET', path, { headers, signal: attempt.signal });
        on.link?.(true);
        pause = 500;
        await events(response.body, attempt, (name, data, id) => {
          last = id || last;
          on.event(name, data);
        });
        if (once) return on.end?.();
      } catch (error) {
        if (stop.signal.aborted || error.status === 401) return;
        if (error.status >= 400 && error.status < 500) return on.refused?.(error);
      } finally {
        stop.signal.removeEventListener('abort', end);
      }
      on.link?.(false);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  };
  run();
  return () => stop.abort();
}

async function events(body, attempt, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const watch = setTimeout(() => attempt.abort(), SILENCE);
    const { value, done } = await reader.read().finally(() => clearTimeout(watch));
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const fields = { event: 'message', data: '', id: '' };
      for (const field of part.split('\n')) {
        const colon = field.indexOf(': ');
        if (colon > 0) fields[field.slice(0, colon)] = field.slice(colon + 2);
      }
      if (fields.data) take(fields.event, JSON.parse(fields.data), fields.id);
    }
  }
}

/**
 * Follows the state of a topic while the page is visible. `on.state(state)`, `on.gone()`,
 * `on.link(isUp)`. Returns what stops it.
 */
export function watch(topic, on) {
  let stop = null;
  const begin = () => {
    stop = follow(`/console/events?topic=${encodeURIComponent(topic)}`, {
      event(name, data) {
        if (name === 'gone') {
          stop?.();
          on.gone?.();
        } else {
          setClock(data.now);
          on.state(data.state);
        }
      },
      link: on.link,
      refused: on.refused,
    });
  };
  const turn = () => {
    if (document.hidden) {
      stop?.();
      stop = null;
    } else if (!stop) begin();
  };
  document.addEventListener('visibilitychange', turn);
  turn();
  return () => {
    document.removeEventListener('visibilitychange', turn);
    stop?.();
  };
}
