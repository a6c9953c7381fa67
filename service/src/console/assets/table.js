// A table that follows its rows. Unchanged rows keep their elements, and so focus and selection.
import { h, put } from './dom.js';

/**
 * `columns` hold `label`, `cell(row)`, and optionally `number` (aligned right), `wide` (takes what
 * room there is), `minor` (hidden on a narrow screen) and `head` (the row's own heading). `key(row)`
 * names a row, `empty` is shown when there are none.
 */
export function table({ caption, columns, key, empty, filter = () => true, none = 'Nothing matches the filter.' }) {
  const body = h('tbody');
  const head = h('tr', {}, columns.map((column) => h('th', { scope: 'col', class: classes(column) }, column.label)));
  const whole = h('table', {}, h('caption', { class: 'unseen' }, caption), h('thead', {}, head), body);
  const frame = h('div', { class: 'frame' }, whole);
  const element = h('div', { class: 'listing' });
  const shown = new Map();
  let all = [];

  const draw = () => {
    const rows = all.filter(filter);
    if (rows.length === 0) {
      put(element, all.length === 0 ? empty() : h('p', { class: 'empty' }, none));
      shown.clear();
      body.replaceChildren();
      return;
    }
    if (!frame.isConnected || element.firstChild !== frame) put(element, frame);
    const wanted = new Set();
    let before = null;
    for (const row of rows) {
      const id = key(row);
      wanted.add(id);
      const known = shown.get(id);
      const digest = JSON.stringify(row);
      let line = known?.line;
      if (!known) {
        line = h('tr', { 'data-key': id });
        fill(line, columns, row);
      } else if (known.digest !== digest) {
        fill(line, columns, row);
      }
      shown.set(id, { line, digest });
      const place = before ? before.nextSibling : body.firstChild;
      if (place !== line) body.insertBefore(line, place);
      before = line;
    }
    for (const [id, { line }] of shown) {
      if (!wanted.has(id)) {
        line.remove();
        shown.delete(id);
      }
    }
  };

  return {
    element,
    /** Shows these rows. */
    update(rows) {
      all = rows;
      draw();
    },
    /** Shows the rows that the filter lets through now. */
    draw,
  };
}

function classes(column) {
  const names = ['number', 'wide', 'minor'].filter((name) => column[name]);
  return names.length > 0 ? names.join(' ') : undefined;
}

/** Makes the cells of a row anew where they say something else. */
function fill(line, columns, row) {
  const before = [...line.children];
  columns.forEach((column, at) => {
    const tag = column.head ? 'th' : 'td';
    const scope = column.head ? 'row' : undefined;
    const made = h(tag, { scope, class: classes(column), 'data-label': column.label }, column.cell(row));
    const old = before[at];
    if (!old) line.append(made);
    else if (!old.isEqualNode(made)) {
      const hadFocus = old.contains(document.activeElement);
      old.replaceWith(made);
      if (hadFocus) made.querySelector('a, button')?.focus();
    }
  });
}
