// The view of one job, from its submission to its result.
import { post, text, watch } from './api.js';
import { timeline } from './charts.js';
import { h, put } from './dom.js';
import { bytes, count, now } from './format.js';
import { pretty } from './json.js';
import {
  attempt, canRetry, copyButton, delayOf, emptiness, executionOf, facts, failure, heading, isOver, jobState, moment, tell, to,
} from './parts.js';
import { showLink } from './shell.js';
import { runAgain } from './view_submit.js';

/** The most bytes of a text that are shown before somebody asks for all. */
const HEAD = 64 * 1024;

export function job(endpoint, id) {
  const call = (verb) => post(`/v2/${encodeURIComponent(endpoint)}/${verb}/${encodeURIComponent(id)}`);
  const act = (verb, said) => (event) => attempt(event?.currentTarget, async () => {
    await call(verb);
    tell(said);
  });
  const retry = h('button', { type: 'button', 'aria-keyshortcuts': 'r', onclick: act('retry', 'The job is in the queue again.') }, 'Retry', h('kbd', { 'aria-hidden': 'true' }, 'r'));
  const cancel = h('button', { type: 'button', 'aria-keyshortcuts': 'x', onclick: act('cancel', 'The job is cancelled.') }, 'Cancel', h('kbd', { 'aria-hidden': 'true' }, 'x'));
  const again = h('button', { type: 'button', 'aria-keyshortcuts': 'a', onclick: (event) => attempt(event.currentTarget, () => runAgain(endpoint, id)) }, 'Use as input', h('kbd', { 'aria-hidden': 'true' }, 'a'));
  retry.hidden = true;
  cancel.hidden = true;
  const state = h('span', { class: 'job-state', role: 'status' });
  const head = heading({
    trail: [['Endpoints', to('endpoints')], [endpoint, to('endpoints', endpoint)]],
    title: h('span', { class: 'mono' }, id),
    beside: [state, copyButton(id, 'the id')],
    actions: [again, retry, cancel],
  });
  const line = h('div');
  const about = facts('Times and worker');
  const input = pane('Input', () => text(`jobs/${endpoint}/${id}/input`));
  const output = pane('Output', () => text(`jobs/${endpoint}/${id}/output`));
  const error = h('section', { class: 'pane error-pane', 'aria-label': 'Error', hidden: true });
  const body = h('div', {}, line, about.element, error, h('div', { class: 'panes' }, input.element, output.element));
  text(`jobs/${endpoint}/${id}/input?most=${HEAD}`).then((found) => input.show(found), (problem) => input.say(problem.message));

  let last = null;
  const drawLine = () => {
    if (!last) return;
    const at = last.finished ?? now();
    const start = last.started ?? at;
    put(line, timeline(start - last.created - last.spent, last.started === null ? 0 : at - start + last.spent, !isOver(last)));
  };
  const ticking = setInterval(() => last && !isOver(last) && drawLine(), 250);
  const stop = watch(`job/${endpoint}/${id}`, {
    state(found) {
      const isNew = last?.state !== found.state;
      last = found;
      if (isNew) put(state, jobState(found.state));
      put(head.element.querySelector('li:last-child a'), found.endpoint.name);
      const isFocused = [retry, cancel].includes(document.activeElement);
      retry.hidden = !canRetry(found);
      cancel.hidden = isOver(found);
      if (isFocused && document.activeElement?.hidden) head.name.focus();
      drawLine();
      about.update(aboutPairs(endpoint, found));
      error.hidden = !found.error;
      if (found.error) put(error, errorParts(found.error));
      if (found.output) output.show(found.output);
      else output.say(waiting(found));
    },
    gone() {
      clearInterval(ticking);
      retry.hidden = true;
      cancel.hidden = true;
      if (last) put(line, h('div', { class: 'failure', role: 'status' }, h('p', {}, 'The service has removed this job: results are kept for a while only. What was known stays here until you leave.')));
      else put(body, emptiness('There is no such job.', h('p', {}, 'Results of /run are kept for 30 minutes, those of /runsync for one.'),
        h('p', {}, h('a', { href: to('endpoints', endpoint) }, 'Go to the endpoint.'))));
    },
    link: showLink,
    refused: (problem) => put(body, failure(problem)),
  });
  const press = (button) => () => !button.hidden && button.click();
  return {
    title: `Job ${id.slice(0, 8)}`,
    element: h('div', {}, head.element, body),
    shortcuts: [
      { keys: 'r', text: 'Retry the job', run: press(retry) },
      { keys: 'x', text: 'Cancel the job', run: press(cancel) },
      { keys: 'a', text: 'Submit another job with this input', run: press(again) },
    ],
    end() {
      clearInterval(ticking);
      stop();
    },
  };
}

function aboutPairs(endpoint, found) {
  const pairs = [
    ['Created', moment(found.created)],
    ['Started', found.started ? moment(found.started) : 'not yet'],
    ['Finished', found.finished ? moment(found.finished) : 'not yet'],
    [[h('i', { class: 'swatch waited' }), 'Delay'], delayOf(found)],
    [[h('i', { class: 'swatch ran' }), 'Execution'], executionOf(found)],
    ['Worker', found.worker ? h('a', { class: 'mono', href: to('endpoints', endpoint, 'logs', found.worker) }, found.worker) : 'none yet'],
  ];
  if (found.retries > 0) pairs.push(['Retries', count(found.retries)]);
  if (found.losses > 0) pairs.push(['Workers lost', count(found.losses)]);
  if (found.lowPriority) pairs.push(['Priority', 'low']);
  if (found.chunks > 0) pairs.push(['Streamed', `${count(found.chunks)} parts, not read yet`]);
  if (found.webhook) pairs.push(['Webhook', 'yes']);
  return pairs;
}

function waiting(found) {
  switch (found.state) {
    case 'IN_QUEUE': return 'The job waits for a worker.';
    case 'IN_PROGRESS': return 'A worker has the job. The output comes here.';
    case 'COMPLETED': return 'The worker answered without an output.';
    case 'CANCELLED': return 'The job was cancelled before it had an output.';
    default: return 'There is no output.';
  }
}

/** The parts of an error: the SDK's handlers send an object with a traceback. */
function errorParts(text) {
  let parsed = null;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The error is not JSON but plain text.
  }
  const title = h('div', { class: 'pane-line' }, h('h2', {}, 'Error'), copyButton(text, 'the error'));
  if (typeof parsed?.error_message !== 'string') return [title, h('pre', { tabindex: '0', 'aria-label': 'Error' }, text)];
  const kind = typeof parsed.error_type === 'string' ? parsed.error_type : '';
  return [title, h('p', { class: 'error-message' }, kind && h('code', {}, kind), ' ', parsed.error_message),
    typeof parsed.error_traceback === 'string' && h('pre', { tabindex: '0', 'aria-label': 'Traceback' }, parsed.error_traceback)];
}

/** A text with its size; of a large one the beginning, and all of it when asked. */
function pane(title, whole) {
  const size = h('span', { class: 'note' });
  const content = h('pre', { tabindex: '0', 'aria-label': title });
  const foot = h('div', { class: 'pane-foot' });
  let known = null;
  const element = h('section', { class: 'pane', 'aria-label': title },
    h('div', { class: 'pane-line' }, h('h2', {}, title), size,
      copyButton(() => content.textContent, `the ${title.toLowerCase()}`)), content, foot);
  const draw = (text) => {
    content.classList.remove('waiting');
    put(content, pretty(text));
  };
  const self = {
    element,
    show(found) {
      if (known && known.text === found.text && known.bytes === found.bytes) return;
      known = found;
      draw(found.text);
      put(size, bytes(found.bytes));
      const isCut = new Blob([found.text]).size < found.bytes;
      const more = h('button', { type: 'button', onclick: (event) => attempt(event.currentTarget, async () => {
        const all = await whole();
        draw(all.text);
        put(foot);
      }) }, `Show all ${bytes(found.bytes)}`);
      put(foot, isCut && [h('span', {}, `The beginning is shown. `), more]);
    },
    say(sentence) {
      known = null;
      put(size);
      put(foot);
      content.classList.add('waiting');
      if (content.textContent !== sentence) put(content, sentence);
    },
  };
  return self;
}
