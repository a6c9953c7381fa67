// A test of the console in a real browser: it follows a job from the form to its result with the
// keyboard only.
// `node console.mjs ADDRESS KEY ENDPOINT BALANCED CHROMIUM MODULES SCREENSHOTS`; ends with status 0 if all is well.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [address, key, endpoint, balanced, chromium, modules, screenshots] = process.argv.slice(2);
const require = createRequire(join(modules, 'x.js'));
const { chromium: browserType } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const browser = await browserType.launch({
  executablePath: chromium,
  // The first start of a browser reads hundreds of MB.
  timeout: 90_000,
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
const troubles = [];
const requests = new Set();

async function open(settings = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'light', ...settings });
  const page = await context.newPage();
  page.setDefaultTimeout(45_000);
  page.on('pageerror', (error) => troubles.push(`error: ${error.message}`));
  page.on('console', (message) => {
    // The browser itself logs errors that the test expects: for a wrong key, and for the status 418
    // of a worker.
    const isExpected = /\/session$|status=418/.test(message.location().url);
    if (message.type() === 'error' && !isExpected) troubles.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on('request', (request) => requests.add(new URL(request.url()).origin));
  return page;
}

/** Nothing in the page is out of reach of those who cannot see, or use no mouse. */
async function accessible(page, where) {
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const said = found.violations.map((one) => `${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`);
  assert.deepEqual(said, [], where);
}

const heading = (page) => page.locator('h1').first();
const press = async (page, ...keys) => {
  for (const one of keys) await page.keyboard.press(one);
};

async function signIn(page) {
  await page.goto(address);
  await page.locator('#key').fill(key);
  await press(page, 'Enter');
  await page.locator('.places').waitFor();
}

// Signing in: a wrong key is refused with a sentence, and the right key is stored nowhere in the
// browser.
const page = await open();
await page.goto(address);
await page.locator('#key').fill('wrong');
await press(page, 'Enter');
await page.getByText('does not know that key').waitFor();
await signIn(page);
const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
assert.ok(!kept.includes(key) && !kept.includes('plumb-console-1'), kept);
const [cookie] = await page.context().cookies(`${address}/console`);
assert.ok(cookie.httpOnly && cookie.sameSite === 'Strict' && cookie.value !== key, JSON.stringify(cookie));

// With the keyboard only: to the endpoint, to the form, and to the result without a reload.
await page.evaluate(() => { window.sameDocument = true; });
await page.locator('tbody tr').first().waitFor();
await press(page, '/');
await page.keyboard.type('chat');
await press(page, 'Escape', 'j', 'Enter');
await page.locator('.columns').waitFor();
await press(page, 'n');
const input = page.locator('#input');
await input.waitFor();
assert.ok(await input.evaluate((element) => element === document.activeElement), 'the input has the focus');
await input.fill('{"text": 1,}');
await page.locator('.check-line.bad').waitFor();
await press(page, 'Control+Enter');
assert.equal(await heading(page).textContent(), 'Submit a job', 'what is no JSON is not sent');
const bad = '<img src=x onerror="window.owned = true"><script>window.owned = true</script>';
await input.fill(JSON.stringify({ sleep_ms: 1500, text: bad, big: 1 }).replace(':1}', ':12345678901234567890123}'));
await press(page, 'Control+Enter');
await page.locator('.job-state .state-running').waitFor();
assert.ok(!(await page.getByRole('button', { name: /^Cancel/ }).isHidden()));
await page.locator('.job-state .state-completed').waitFor();
const output = page.locator('section.pane[aria-label="Output"] pre');
await output.locator('.json-number').first().waitFor();
const shown = await output.textContent();
assert.ok(shown.includes('<img src=x onerror=') && shown.includes('12345678901234567890123'), shown);
assert.equal(await page.locator('main img, main script').count(), 0);
assert.equal(await page.evaluate(() => window.owned), undefined, 'no text of a job is ever markup');
assert.ok(await page.evaluate(() => window.sameDocument), 'the page was never loaded again');

// A key retries a failed job and cancels a running one.
const submitted = async (value) => {
  const response = await fetch(`${address}/v2/${endpoint}/run`, {
    method: 'POST', headers: { authorization: key }, body: JSON.stringify({ input: value }) });
  return (await response.json()).id;
};
const failed = await submitted({ fail: 'no more memory' });
await page.goto(`${address}/#/endpoints/${endpoint}/jobs/${failed}`);
await page.getByText('no more memory').first().waitFor();
await press(page, 'r');
await page.getByText('The job is in the queue again.').waitFor();
await page.locator('.job-state .state-failed').waitFor();
const long = await submitted({ sleep_ms: 60_000 });
await page.goto(`${address}/#/endpoints/${endpoint}/jobs/${long}`);
await page.locator('.job-state .state-running').waitFor();
await press(page, 'x');
await page.locator('.job-state .state-cancelled').waitFor();

// A large output is cut, and can be shown whole.
const large = await submitted({ output_bytes: 300_000 });
await page.goto(`${address}/#/endpoints/${endpoint}/jobs/${large}`);
await page.getByRole('button', { name: 'Show all 300 kB' }).click();
await page.waitForFunction(() => document.querySelector('section[aria-label="Output"] pre').textContent.length > 300_000);

// The view of a log follows new output.
await submitted({ log: 'first line' });
await press(page, 'u');
await page.locator('.columns').waitFor();
await press(page, 'l');
await page.getByText('first line').first().waitFor();
await submitted({ log: 'second line' });
await page.getByText('second line').first().waitFor();

// An endpoint that balances load shows its address and a form for a request, and no jobs.
await page.goto(`${address}/#/endpoints/${balanced}`);
await page.getByLabel('Base URL').filter({ hasText: `/lb/${balanced}` }).waitFor();
await press(page, 'n');
await page.keyboard.press('ControlOrMeta+A');
await page.keyboard.type('/hello?status=418');
await press(page, 'Enter');
await page.getByText('Answer: 418').waitFor();
const said = await page.locator('section[aria-label="Answer"] pre').textContent();
assert.ok(said.includes('"path"') && said.includes('/hello'), said);
assert.equal(await page.getByText('Submit a job').count() + await page.getByText('Completed').count(), 0);
await page.getByText('Requests running').waitFor();

// A pod is stopped and started, its output is read, and it is terminated.
const made = await fetch(`${address}/v2/pods`, {
  method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  body: JSON.stringify({ name: 'notebook', image: 'echo:1', gpu: { id: 'NVIDIA L4' }, ports: ['8888/http'],
    cmd: ['sh', '-c', 'echo a line of a pod; sleep 600'] }) });
const pod = (await made.json()).id;
await page.goto(`${address}/#/pods`);
const act = (name) => page.getByRole('button', { name: `${name} notebook` });
await page.locator('.state-running').waitFor();
await page.getByText('8888/http → :').waitFor();
await act('Stop').click();
await page.locator('tbody .state-cancelled').waitFor();
await act('Start').click();
await page.locator('tbody .state-running').waitFor();
await page.goto(`${address}/#/pods/${pod}/logs`);
await page.getByText('a line of a pod').first().waitFor();

// The help, the filter and the theme.
await press(page, '?');
await page.locator('dialog[open]').waitFor();
await accessible(await withAxe(page), 'help');
await press(page, 'Escape');
await page.goto(`${address}/#/endpoints/${endpoint}`);
await page.locator('.columns tbody tr').first().waitFor();
await press(page, '/');
assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
await page.keyboard.type('failed');
await page.waitForFunction(() => [...document.querySelectorAll('tr .state-completed')].length === 0);
await press(page, 'Escape');
const theme = () => page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]);
const system = await theme();
await press(page, 'd', 'd');
const dark = await theme();
assert.ok(dark[0] === 'dark' && dark[1] !== system[1], `${system} ${dark}`);
await press(page, 'd');
assert.deepEqual(await theme(), system);

// Each view in light, in dark and on a phone: it is complete, fits the width, and axe-core finds no
// fault.
async function withAxe(of) {
  await of.evaluate(`(() => { ${axe} })()`).catch(() => {});
  return of;
}
const views = [['endpoints', ''], ['endpoint', `endpoints/${endpoint}`], ['submit', `endpoints/${endpoint}/submit`],
  ['job', `endpoints/${endpoint}/jobs/${large}`], ['failed', `endpoints/${endpoint}/jobs/${failed}`],
  ['logs', `endpoints/${endpoint}/logs`], ['balanced', `endpoints/${balanced}`], ['pods', 'pods'], ['pod-logs', `pods/${pod}/logs`], ['volumes', 'volumes'], ['templates', 'templates'],
  ['keys', 'keys'], ['costs', 'costs']];
for (const [mode, settings] of [['light', {}], ['dark', { colorScheme: 'dark' }],
  ['phone', { viewport: { width: 390, height: 844 } }]]) {
  const other = await open({ ...settings, bypassCSP: true });
  await signIn(other);
  await withAxe(other);
  for (const [name, path] of views) {
    await other.evaluate((to) => { location.hash = `#/${to}`; }, path);
    await other.waitForFunction(() => document.querySelector('main tbody tr, main .empty, main form, main .log-line, main .panes'));
    await other.waitForTimeout(120);
    await other.screenshot({ path: join(screenshots, `console-${name}-${mode}.png`) });
    await accessible(other, `${name}, ${mode}`);
    const beyond = await other.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(beyond <= 0, `${name} is ${beyond} px too wide, ${mode}`);
    assert.equal(await other.locator('.failure').count(), 0, `${name}, ${mode}`);
  }
  await other.context().close();
}

await page.goto(`${address}/#/pods`);
page.on('dialog', (dialog) => dialog.accept());
await act('Terminate').click();
await page.getByText('There are no pods.').waitFor();

// Signing out ends the session in the browser too.
await page.getByRole('button', { name: 'Sign out' }).click();
await page.locator('#key').waitFor();
assert.deepEqual([...requests], [new URL(address).origin], 'nothing is loaded from elsewhere');
assert.deepEqual(troubles, []);
await browser.close();
console.log('the console works in this browser');
