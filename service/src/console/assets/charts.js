// Small drawings of numbers. The same numbers are shown as text beside each drawing.
import { h, s } from './dom.js';

/** The workers of an endpoint: a square for each that there may be, filled by what it does. */
export function strip(workers, most) {
  const MOST = 12;
  const parts = [];
  const add = (number, name) => {
    for (let at = 0; at < number && parts.length < MOST; at += 1) parts.push(name);
  };
  add(workers.running, 'running');
  add(workers.idle, 'idle');
  add(workers.starting, 'starting');
  add(workers.unhealthy, 'unhealthy');
  while (parts.length < Math.min(most, MOST)) parts.push('absent');
  if (parts.length === 0) return null;
  return h('span', { class: 'strip', 'aria-hidden': 'true' }, parts.map((name) => h('i', { class: name })));
}

/** The same in words: `2 running, 1 idle`. */
export function workerWords(workers, most) {
  const words = [];
  for (const name of ['running', 'idle', 'starting', 'unhealthy']) {
    if (workers[name] > 0) words.push(`${workers[name]} ${name}`);
  }
  return words.length > 0 ? words.join(', ') : most === 0 ? 'no workers allowed' : 'none needed';
}

/** A line of numbers over time, the newest at the right. */
export function spark(values, { width = 96, height = 18, samples = 60 } = {}) {
  const top = Math.max(1, ...values);
  const step = width / (samples - 1);
  const first = samples - values.length;
  const points = values.map((value, at) =>
    `${((first + at) * step).toFixed(1)},${(height - 1.5 - (value / top) * (height - 3)).toFixed(1)}`);
  const line = points.join(' ');
  const area = points.length > 1 ? `${(first * step).toFixed(1)},${height} ${line} ${width},${height}` : '';
  return s('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true' },
    s('path', { d: `M0 ${height - 1.5}H${width}`, class: 'spark-base' }),
    s('polygon', { points: area, class: 'spark-area' }),
    s('polyline', { points: line, class: 'spark-line' }));
}

/** Bars for a time each. `bars` hold `label`, `value` and the `title` that says both. */
export function bars(all, label) {
  const top = Math.max(...all.map((bar) => bar.value), Number.MIN_VALUE);
  const width = 640;
  const height = 120;
  const step = width / all.length;
  const drawn = all.map((bar, at) => {
    const tall = bar.value > 0 ? Math.max(2, (bar.value / top) * height) : 1;
    return s('g', {}, s('title', {}, bar.title),
      s('rect', { x: at * step, y: 0, width: step, height, class: 'bar-back' }),
      s('rect', { x: at * step + step * 0.14, y: height - tall, width: step * 0.72, height: tall, rx: 1.5,
        class: bar.value > 0 ? 'bar' : 'bar bar-none' }));
  });
  const chart = s('svg', { class: 'bars', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label, preserveAspectRatio: 'none' }, drawn);
  return h('figure', { class: 'chart' }, chart,
    h('figcaption', {}, h('span', {}, all[0].label), h('span', {}, all.at(-1).label)));
}

/** The time of a job as two parts of a line: it waited, then it ran. */
export function timeline(waited, ran, isOpen) {
  const whole = Math.max(1, waited + ran);
  const part = (name, value) => {
    const element = h('i', { class: name });
    element.style.flexGrow = String(Math.max(value / whole, 0.004));
    return element;
  };
  return h('div', { class: `timeline ${isOpen ? 'open' : ''}`, 'aria-hidden': 'true' },
    part('waited', waited), ran > 0 || !isOpen ? part('ran', ran) : null);
}
