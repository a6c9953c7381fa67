// DOM elements made from data. Every text becomes a text node, so no text of a job can become
// markup.

/** An element. Properties that start with `on` are listeners, the others attributes. */
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...kept(children));
  return element;
}

const kept = (children) =>
  children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false);

/** Gives an element these children in place of those it has. */
export function put(element, ...children) {
  element.replaceChildren(...kept(children));
  return element;
}

/** Sets the text of an element, if it is another one. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const SVG = 'http://www.w3.org/2000/svg';

/** An SVG element. */
export function s(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

const stroke = { fill: 'none', stroke: 'currentColor', 'stroke-width': '1.6', 'stroke-linecap': 'round',
  'stroke-linejoin': 'round' };
const ring = () => s('circle', { cx: 7, cy: 7, r: 5, ...stroke });
const line = (d) => s('path', { d, ...stroke });

/** The shapes of states: each can be told from the others without its colour. */
const SHAPES = {
  queued: () => [s('circle', { cx: 7, cy: 7, r: 5, ...stroke, 'stroke-dasharray': '2.2 2' })],
  running: () => [s('circle', { cx: 7, cy: 7, r: 5, ...stroke, opacity: '.3' }), line('M7 2a5 5 0 0 1 5 5'), s('circle', { cx: 7, cy: 7, r: 1.7, fill: 'currentColor' })],
  completed: () => [line('M2.5 7.6 5.6 10.6 11.5 3.9')],
  failed: () => [line('M3.2 3.2 10.8 10.8'), line('M10.8 3.2 3.2 10.8')],
  cancelled: () => [ring(), line('M3.6 10.4 10.4 3.6')],
  timedout: () => [ring(), line('M7 4.2V7l2 1.4')],
  idle: () => [ring()],
  starting: () => [s('circle', { cx: 7, cy: 7, r: 5, ...stroke, 'stroke-dasharray': '2.2 2' })],
  ending: () => [line('M3 7h8')],
  unhealthy: () => [line('M7 2 12.4 11.6H1.6z'), line('M7 5.6v2.6')],
  stopped: () => [s('rect', { x: 3, y: 3, width: 8, height: 8, rx: 1, ...stroke })],
  live: () => [s('circle', { cx: 7, cy: 7, r: 3.4, fill: 'currentColor' })],
  copy: () => [s('rect', { x: 4.6, y: 4.6, width: 7, height: 7, rx: 1.2, ...stroke }), line('M2.4 9V3.4a1 1 0 0 1 1-1H9')],
  next: () => [line('M5 3l4 4-4 4')],
  light: () => [s('circle', { cx: 7, cy: 7, r: 2.6, ...stroke }), line('M7 1v1.2M7 11.8V13M1 7h1.2M11.8 7H13M2.8 2.8l.8.8M10.4 10.4l.8.8M11.2 2.8l-.8.8M3.6 10.4l-.8.8')],
  dark: () => [line('M11.6 8.6A5 5 0 0 1 5.4 2.4a5 5 0 1 0 6.2 6.2z')],
  system: () => [s('rect', { x: 1.6, y: 2.4, width: 10.8, height: 7, rx: 1, ...stroke }), line('M5 12h4')],
};

/** A shape of 14 by 14; the text beside it says what it means. */
export function shape(name) {
  const drawn = SHAPES[name] ? SHAPES[name]() : SHAPES.idle();
  return s('svg', { class: `shape shape-${name}`, viewBox: '0 0 14 14', width: 14, height: 14, 'aria-hidden': 'true' }, drawn);
}

/** The mark of Plumb: a line and its weight. */
export function mark() {
  return s('svg', { class: 'mark', viewBox: '0 0 16 22', width: 16, height: 22, 'aria-hidden': 'true' },
    s('path', { d: 'M8 0v9', stroke: 'currentColor', 'stroke-width': '1.6', 'stroke-linecap': 'round' }),
    s('path', { d: 'M3 8.6h10l-.9 5.6L8 21.4l-4.1-7.2z', class: 'weight' }));
}
