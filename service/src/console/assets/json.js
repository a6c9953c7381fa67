// JSON text, indented. It is cut into tokens but not parsed, so that large numbers, the order of
// keys, and a text that ends in the middle stay as they are.
import { h } from './dom.js';

const TOKEN = /"(?:[^"\\]|\\.)*"?|-?\d[\d.eE+-]*|true|false|null|[{}[\],:]|[^\s{}[\],:"]+/g;

/** The most tokens that get a colour: a browser slows down with more elements than that. */
const COLOURED = 20_000;

/** The text of a JSON document as a fragment with a line for each value. */
export function pretty(text) {
  const fragment = document.createDocumentFragment();
  const tokens = text.match(TOKEN) ?? [];
  let plain = '';
  let depth = 0;
  const flush = () => {
    if (plain) fragment.append(plain);
    plain = '';
  };
  const line = () => `\n${'  '.repeat(Math.max(0, depth))}`;
  tokens.forEach((token, at) => {
    const following = tokens[at + 1];
    if (token === '{' || token === '[') {
      const isEmpty = following === '}' || following === ']';
      depth += 1;
      plain += isEmpty ? token : token + line();
    } else if (token === '}' || token === ']') {
      depth -= 1;
      const before = tokens[at - 1];
      plain += before === '{' || before === '[' ? token : line() + token;
    } else if (token === ',') {
      plain += `,${line()}`;
    } else if (token === ':') {
      plain += ': ';
    } else if (at < COLOURED) {
      flush();
      fragment.append(h('span', { class: kind(token, following) }, token));
    } else {
      plain += token;
    }
  });
  flush();
  return fragment;
}

function kind(token, following) {
  if (token.startsWith('"')) return following === ':' ? 'json-key' : 'json-text';
  return /^[-\d]/.test(token) ? 'json-number' : 'json-word';
}

/** Checks the input of a job: the sentence that says what is wrong, or nothing. */
export function fault(text) {
  if (!text.trim()) return 'Write a JSON object, such as {"prompt": "hello"}.';
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return place(text, error.message);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    return 'The input of a job is a JSON object: put it in braces, with names in quotes.';
  }
  return '';
}

function place(text, message) {
  const found = /position (\d+)/.exec(message);
  const at = found ? Number(found[1]) : text.length;
  const before = text.slice(0, at).split('\n');
  const what = message.replace(/ in JSON at position.*$/, '').replace(/, ".*$/s, '');
  return `Line ${before.length}, column ${before.at(-1).length + 1}: ${what}.`;
}
