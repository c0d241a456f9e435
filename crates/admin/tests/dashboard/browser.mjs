// browser.mjs JOURNEY: somebody before the dashboard, in Chromium. What there is to know comes as JSON on standard input:
//   modules, chromium, token   the tools, and what the server wants to see
//   pictures                   a folder for screenshots, or null
// What is wrong is written to standard output, a line each. Nothing but this machine can be reached.
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const facts = JSON.parse(readFileSync(0, 'utf8'));
const modules = createRequire(`${facts.modules}/`);
const { chromium } = modules('playwright-core');
const axe = readFileSync(modules.resolve('axe-core/axe.min.js'), 'utf8');
const wrong = [];
const must = (what, is) => { if (!is) wrong.push(`not so: ${what}`); };

const browser = await chromium.launch({
  executablePath: facts.chromium,
  args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
});
const SIZES = { phone: [390, 844, 2], tablet: [820, 1180, 1], laptop: [1366, 860, 1], wide: [1920, 1080, 1] };

/** Opens a page that tells of everything it should not do. */
async function opened({ size = 'laptop', scheme = 'light', name = size, quiet = false } = {}, use) {
  const [width, height, deviceScaleFactor] = SIZES[size];
  const context = await browser.newContext({ viewport: { width, height }, deviceScaleFactor, colorScheme: scheme, reducedMotion: 'reduce', locale: 'en-GB' });
  context.setDefaultTimeout(15000);
  const page = await context.newPage();
  if (!quiet) {
    page.on('console', (message) => { if (['error', 'warning'].includes(message.type()) && !/status of (400|401|403|404|421|429|503)/.test(message.text())) wrong.push(`${name}: console: ${message.text()}`); });
    page.on('pageerror', (error) => wrong.push(`${name}: ${error.stack}`));
    page.on('request', (asked) => {
      const { origin } = new URL(asked.url());
      if (page.url().startsWith('http') && origin !== new URL(page.url()).origin) wrong.push(`${name}: asked ${asked.url()}`);
    });
    await page.addInitScript(() => addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sourceFile }) => console.error(`policy: ${violatedDirective} ${blockedURI} ${sourceFile}`)));
  }
  try {
    return await use(page, context);
  } finally {
    await context.close();
  }
}

async function settled(page, url) {
  await page.goto(url, { waitUntil: 'load' });
  await page.waitForFunction(() => document.getElementById('counted').textContent !== '' && document.querySelectorAll('.uplot').length === 4);
  await page.waitForFunction(() => ['live', 'polling'].includes(document.getElementById('pulse').dataset.state));
}

async function judged(page, name) {
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  must(`${name}: the page is ${overflow} px wider than the screen`, overflow <= 0);
  // The policy lets no script in, not even a judge: it comes by the debugger.
  const client = await page.context().newCDPSession(page);
  await client.send('Runtime.evaluate', { expression: axe });
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  for (const { id, help, nodes } of violations) wrong.push(`axe, ${name}: ${id} (${help}): ${nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary?.replace(/\s+/g, ' ')}`).join(' | ')}`);
}

async function picture(page, name, whole = true) {
  if (!facts.pictures) return;
  mkdirSync(facts.pictures, { recursive: true });
  await page.screenshot({ path: join(facts.pictures, `${name}.png`), fullPage: whole });
}

const text = (page, selector) => page.locator(selector).innerText();

async function signIn(page, token = facts.token) {
  await page.locator('#token').fill(token);
  await page.locator('#form-sign button.main').click();
}

const journeys = {
  async scenes() {
    for (const [scene, url] of Object.entries(facts.scenes)) {
      for (const scheme of ['light', 'dark']) {
        for (const size of scheme === 'light' ? Object.keys(SIZES) : ['phone', 'laptop']) {
          const name = `${scene}-${scheme}-${size}`;
          await opened({ size, scheme, name }, async (page) => {
            await settled(page, url);
            await page.waitForTimeout(250);
            await picture(page, name);
            await judged(page, name);
            if (scheme === 'light' && size === 'laptop') await looked(page, scene);
            if (size === 'phone' && scene !== 'empty') await narrow(page, scene);
          });
        }
      }
    }
  },

  async commands() {
    await opened({ name: 'commands' }, async (page, context) => {
      await settled(page, facts.url);
      // Without a token: that is told where it was asked for.
      await page.locator('#reasons button[data-explain]').first().click();
      await page.locator('#dialog-sign[open]').waitFor();
      await page.keyboard.press('Escape');
      await page.locator('#explain-told', { hasText: 'this needs the admin token' }).waitFor();
      await judged(page, 'no token');
      await page.keyboard.press('Escape');
      // A wrong token, then the right one; then the command that it was for is carried out.
      await page.locator('#reasons button[data-explain]').first().click();
      await page.locator('#dialog-sign[open]').waitFor();
      await judged(page, 'sign in');
      await picture(page, 'sign-in', false);
      await signIn(page, 'f'.repeat(32));
      await page.locator('#sign-told', { hasText: 'not the token' }).waitFor();
      await signIn(page);
      await page.locator('#explanation .outcome', { hasText: 'answered from the store' }).waitFor();
      must('the explanation names the cookie', (await text(page, '#explanation')).includes('PHPSESSID'));
      await judged(page, 'explanation');
      await picture(page, 'explanation', false);
      await page.locator('#dialog-explain summary').first().click();
      await page.locator('#explain-fields').fill('Cookie: session=1');
      await page.locator('#explain-url').fill('https://shop.example/cart');
      await page.locator('#form-explain button.main').click();
      await page.locator('#explanation .outcome').waitFor();
      await page.locator('#explain-url').fill('https://elsewhere/');
      await page.locator('#form-explain button.main').click();
      await page.locator('#explain-told', { hasText: 'Served are: shop.example' }).waitFor();
      await page.keyboard.press('Escape');
      must('Escape closes a dialog', !(await page.locator('#dialog-explain').isVisible()));

      const [cookie, ...others] = await context.cookies();
      must('there is one cookie', others.length === 0);
      must('no script reads it', cookie.httpOnly && !(await page.evaluate(() => document.cookie)));
      must('no other site sends it', cookie.sameSite === 'Strict' && cookie.path === '/');
      must('the token is kept nowhere', !(await page.evaluate(() => JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }))).includes(facts.token) && !cookie.value.includes(facts.token));

      // A purge asks twice.
      await page.reload();
      await settled(page, facts.url);
      must('a session outlasts a reload', (await text(page, '#sign')) === 'Sign out');
      await page.locator('#missed button[data-purge]').first().click();
      await judged(page, 'purge');
      await picture(page, 'purge', false);
      await page.locator('#purge-go').click();
      await page.locator('#purge-question', { hasText: '/product/tide-clock' }).waitFor();
      await page.locator('#purge-back').click();
      await page.locator('#purge-go').click();
      await page.locator('#purge-go').click();
      await page.locator('#purge-question', { hasText: 'Done: ' }).waitFor();
      must('it says how much it was', (await text(page, '#purge-question')).includes('3 stored responses'));
      await page.locator('#purge-back').click();
      await page.locator('#open-purge').click();
      await page.locator('#purge-what').selectOption('tag');
      await page.locator('#purge-name').fill('unknown');
      await page.locator('#purge-go').click();
      await page.locator('#purge-go').click();
      await page.locator('#purge-told', { hasText: 'Nothing has the tag unknown' }).waitFor();
      await page.locator('#purge-back').click();
      await page.locator('#purge-what').selectOption('all');
      await page.locator('input[name=hardness][value=hard]').check();
      await page.locator('#purge-go').click();
      must('what is removed is called so', (await text(page, '#purge-go')) === 'Remove it');
      await page.locator('#purge-go').click();
      await page.locator('#purge-question', { hasText: 'Done: ' }).waitFor();
      await page.locator('#purge-back').click();

      await page.locator('#open-warm').click();
      await page.locator('#warm-host option').first().waitFor({ state: 'attached' });
      await page.locator('#warm-go').click();
      await page.locator('#warm-progress', { hasText: '120 of 412 pages' }).waitFor();
      await judged(page, 'warm');
      await picture(page, 'warm', false);
      await page.keyboard.press('Escape');

      // By the keyboard alone: from the top of the page to a command, and back to where it was.
      await page.reload();
      await settled(page, facts.url);
      const way = [];
      for (let step = 0; step < 12; step += 1) {
        await page.keyboard.press('Tab');
        const at = await page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.name);
        way.push(at);
        if (at === 'open-explain') break;
      }
      must(`the keyboard goes from the top to the commands: ${way}`, way[0] === 'skip' && way.includes('site') && way.includes('span') && way.at(-1) === 'open-explain');
      await page.keyboard.press('Enter');
      must('a dialog has the focus', await page.evaluate(() => document.activeElement.id === 'explain-url'));
      await page.keyboard.press('Escape');
      must('the focus comes back', await page.evaluate(() => document.activeElement.id === 'open-explain'));
      await page.locator('input[name=span][value=hour]').focus();
      await page.keyboard.press('ArrowRight');
      await page.waitForFunction(() => document.getElementById('ratio-foot').textContent.endsWith('last day'));
      await page.locator('#site').selectOption('docs.example');
      await page.waitForFunction(() => ![...document.querySelectorAll('#missed th')].some((cell) => cell.textContent.includes('shop.example')));

      await page.locator('#sign').click();
      await page.waitForFunction(() => document.getElementById('sign')?.textContent === 'Sign in');
      must('signing out takes the cookie away', (await context.cookies()).length === 0);
      must('and the key', (await page.evaluate(() => localStorage.length)) === 0);
    });
  },

  async gate() {
    for (const scheme of ['light', 'dark']) {
      await opened({ name: 'gate', scheme }, async (page) => {
        await page.goto(facts.url, { waitUntil: 'load' });
        await page.locator('#gate').waitFor();
        must('nothing is shown', !(await page.locator('#shown').isVisible()));
        must('nothing is told', (await page.evaluate(() => Promise.all(['/seen', '/series', '/recent', '/status'].map((path) => fetch(path).then(({ status }) => status))))).every((status) => status === 401));
        await judged(page, `gate ${scheme}`);
        await picture(page, `gate-${scheme}`, false);
        await page.locator('#gate-sign').click();
        await signIn(page);
        await page.locator('#shown').waitFor();
        await page.waitForFunction(() => document.getElementById('counted').textContent.includes('requests'));
      });
    }
  },

  async strangers() {
    // Another server on this machine: for the browser, its pages are of the same site, as a site has no port.
    const other = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html><title>other</title>')).listen(0, '127.0.0.1');
    await new Promise((resolve) => { other.on('listening', resolve); });
    const port = other.address().port;
    const { port: own } = new URL(facts.url);
    await opened({ quiet: true }, async (page, context) => {
      await settled(page, facts.url);
      await page.locator('#sign').click();
      await signIn(page);
      await page.waitForFunction(() => document.getElementById('sign').textContent === 'Sign out');
      const [cookie] = await context.cookies();
      for (const elsewhere of [`http://127.0.0.1:${port}/`, `http://evil.example:${port}/`]) {
        const stranger = await context.newPage();
        const statuses = [];
        stranger.on('response', (response) => { if (response.url().startsWith(facts.url)) statuses.push(`${response.request().method()} ${response.status()}`); });
        await stranger.goto(elsewhere);
        const came = await stranger.evaluate(async ([url]) => {
          const tried = [];
          const attempt = async (what, act) => { try { await act(); tried.push(what); } catch { /* as it should be */ } };
          const body = JSON.stringify({ all: true });
          await fetch(`${url}/purge`, { method: 'POST', mode: 'no-cors', credentials: 'include', body }).catch(() => {});
          await attempt('command', async () => { const answer = await fetch(`${url}/purge`, { method: 'POST', credentials: 'include', body }); if (answer.ok) return; throw new Error(); });
          await attempt('command with a key', async () => { await fetch(`${url}/purge`, { method: 'POST', credentials: 'include', headers: { 'seawall-session': '0' }, body }); });
          await attempt('read', async () => { await (await fetch(`${url}/seen`, { credentials: 'include' })).json(); });
          await attempt('events', () => new Promise((resolve, reject) => { const source = new EventSource(`${url}/events`, { withCredentials: true }); source.onopen = resolve; source.onerror = reject; }));
          await attempt('script', () => new Promise((resolve, reject) => { const script = document.createElement('script'); script.src = `${url}/seen`; script.onload = resolve; script.onerror = reject; document.head.append(script); }));
          const form = document.createElement('form');
          form.method = 'post';
          form.action = `${url}/purge`;
          form.enctype = 'text/plain';
          const field = document.createElement('input');
          field.name = '{"all": true, "x": "';
          field.value = '"}';
          form.append(field);
          const frame = document.createElement('iframe');
          frame.name = 'frame';
          frame.src = url;
          form.target = 'posted';
          const posted = document.createElement('iframe');
          posted.name = 'posted';
          document.body.append(frame, posted, form);
          form.submit();
          await new Promise((resolve) => { setTimeout(resolve, 1500); });
          return tried;
        }, [facts.url]);
        must(`a page of ${elsewhere} came to: ${came}`, came.length === 0);
        must(`a page of ${elsewhere} was refused: ${statuses}`, statuses.some((line) => line.startsWith('POST')) && !statuses.some((line) => line.startsWith('POST 2')));
        const framed = stranger.frames().find((frame) => frame.name() === 'frame');
        must('the dashboard is in no frame', !framed || !(await framed.evaluate(() => Boolean(document.getElementById('reasons'))).catch(() => false)));
        await stranger.close();
      }
      // Rebinding: evil.example has the address of this machine now.
      const rebound = await context.newPage();
      const response = await rebound.goto(`http://evil.example:${own}/`);
      must(`a name of another machine is not answered: ${response.status()}`, response.status() === 421);
      // A page that came from there before, when the name still had another address, asks so: for the browser it is of this origin.
      const asked = (method, path, content) => new Promise((resolve) => {
        const fields = { host: `evil.example:${own}`, origin: `http://evil.example:${own}`, 'sec-fetch-site': 'same-origin', accept: 'text/html' };
        request({ host: '127.0.0.1', port: own, method, path, headers: fields }, (answer) => resolve(answer.resume().statusCode)).end(content);
      });
      const tried = [['GET', '/'], ['GET', '/seen'], ['GET', '/events'], ['GET', '/session'], ['GET', '/assets/dashboard.js'], ['POST', '/session', '{"token": "x"}'], ['POST', '/purge', '{"all": true}']];
      for (const [method, path, content] of tried) {
        const status = await asked(method, path, content);
        must(`${method} ${path} under a name of another machine is refused: ${status}`, status === 421);
      }
      // Whoever has seen the cookie, but not the page, commands nothing.
      const thief = await fetch(`${facts.url}/purge`, { method: 'POST', headers: { cookie: `${cookie.name}=${cookie.value}`, origin: facts.url }, body: '{"all": true}' });
      must(`a cookie alone commands nothing: ${thief.status}`, thief.status === 401);
    });
    other.close();
    other.closeAllConnections();
  },
};

/** On a phone, the address of a page and what its list is sorted by are seen without turning the table. */
async function narrow(page, scene) {
  for (const [list, cell] of [['missed', 'td.strong'], ['missed', 'th'], ['live', 'time'], ['live', 'th']]) {
    const { left, right } = await page.locator(`#${list} tr:first-child ${cell}`).first().evaluate((node) => node.getBoundingClientRect());
    must(`${scene}: ${cell} of ${list} is on the screen (${left} to ${right})`, left >= 0 && right <= 390 && right > left);
  }
}

/** What each scene must say. */
async function looked(page, scene) {
  const all = await text(page, 'main');
  const has = (...words) => words.forEach((word) => must(`${scene}: the page says “${word}”`, all.includes(word)));
  const panels = await page.locator('main section, main figure, main article').evaluateAll((nodes) => nodes.filter((node) => node.innerText.trim() === '').length);
  must(`${scene}: no panel is blank`, panels === 0);
  if (scene === 'empty') has('Nothing was counted yet', 'No request in the last hour', 'no cookie keeps a reader', 'Nothing was purged', 'Never, since counting began', 'None yet. Plain hits are not listed.');
  if (scene === 'empty') {
    // A page that is opened before counting began has charts of some minutes all the same, not of an hour in which there is nothing.
    const shown = await page.evaluate(async () => {
      const { sinceBegun } = await import('/assets/charts.js');
      const hour = Array.from({ length: 3600 }, (_, at) => ({ at }));
      return [hour, [...hour.slice(1), { at: 3600, requests: 1 }], [{ at: 0, requests: 1 }, ...hour.slice(1)]].map((rows) => sinceBegun(rows).length);
    });
    must(`empty: the charts have ${shown} seconds`, shown.join() === '300,300,3600');
  }
  if (scene !== 'empty') {
    // What is shown goes on to be true while the numbers change: parts of all requests are all requests, and each is rounded by itself to a tenth.
    await page.waitForTimeout(2500);
    const parts = await page.locator('#mix-legend b').allInnerTexts();
    const sum = parts.filter((part) => !part.startsWith('<')).reduce((all, part) => all + Number.parseFloat(part), 0);
    const small = parts.filter((part) => part.startsWith('<')).length;
    must(`${scene}: ${parts} are everything`, Math.abs(sum - 100) <= 0.05 * parts.length + 0.1 * small + 0.001);
    // Whoever adds hits and stale copies gets the share that is written large above them.
    const [ratio, hit, stale] = await page.evaluate(() => ['#ratio-requests', '#mix-legend .hits b', '#mix-legend .stale b'].map((at) => Number.parseFloat(document.querySelector(at).innerText.replace(/^[<>] /, ''))));
    must(`${scene}: ${hit} % and ${stale} % are ${ratio} %`, Math.abs(hit + stale - ratio) <= 0.151);
    must(`${scene}: the page is live`, (await text(page, '#pulse')) === 'Live');
  }
  if (scene === 'calm') {
    const requests = async (span) => {
      await page.locator(`input[name=span][value=${span}]`).check({ force: true });
      await page.waitForFunction((words) => document.getElementById('ratio-foot').textContent.endsWith(words), `the last ${span}`);
      const [, number, unit] = /^([\d.,]+)( [kMG])? requests/.exec(await text(page, '#ratio-foot'));
      return Number(number.replaceAll(',', '')) * { ' k': 1e3, ' M': 1e6, ' G': 1e9 }[unit ?? ' k'] / (unit ? 1 : 1e3);
    };
    const [hour, day, week] = [await requests('hour'), await requests('day'), await requests('week')];
    must(`calm: an hour (${hour}) is a part of a day (${day}), and that of a week (${week})`, hour < day && day < week);
    await page.locator('input[name=span][value=hour]').check({ force: true });
    has('3 copies removed', '41 copies refreshed', 'Asked of the origin', 'Reads', 'Reason:', 'For example:');
  }
  if (scene === 'calm') has('of requests', 'of bytes', 'WooCommerce', 'Ghost, in an answer to an editor', 'The stored copy had expired');
  if (scene === 'crowd') {
    has('PHPSESSID', 'PHP sessions', '/product/tide-clock', 'drop_set_cookies', '46.0 %');
    must('crowd: the worst reason is first', (await text(page, '#reasons li:first-child')).includes('PHPSESSID'));
    has('Shared tier in s3://pages/seawall: 1,200 pages were found there, 3 were not, 4 were written.');
    must('crowd: nothing is alarming', (await page.locator('.alarm').count()) === 0);
  }
  if (scene === 'down') {
    must('down: what is right again is told apart', (await text(page, '.alarm.right')).startsWith('✓'));
    has('Right again since', 'It is over when all stays right');
    must('down: it says so above everything', (await text(page, '#alarms')).includes('shop.example'));
    has('It is left alone for a while: there is no bucket of this name.');
    must('down: a tier that is left alone stands out', (await page.locator('#cluster-tier.warn').count()) === 1);
    has('now', 'The origin refuses connections', 'Readers got a stored copy.');
  }
  if (scene === 'hostile') {
    must('hostile: no script ran', await page.evaluate(() => globalThis.harmed === undefined));
    const foreign = await page.evaluate(() => document.querySelectorAll('main script, main iframe, main img, main object, main embed, main a, main form, [onerror], [onload], [srcdoc]').length);
    must('hostile: nothing became an element', foreign === 0);
    for (const harm of facts.hostile.slice(0, 3)) must(`hostile: ${harm} is shown as text`, all.includes(harm.slice(0, 20)));
    must('hostile: no mark turns the text or hides in it', !/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069]/.test(await page.evaluate(() => document.body.textContent + [...document.querySelectorAll('[title]')].map(({ title }) => title).join(''))));
    must('hostile: what is long is cut', all.length < 120_000);
    await page.locator('#live-find').fill('<img');
    await page.waitForTimeout(100);
    must('hostile: it can be looked for', (await page.locator('#live tr:visible').count()) > 0);
  }
}

try {
  await journeys[process.argv[2]]();
} catch (error) {
  wrong.push(`${error.stack}`.replace(/\s+/g, ' '));
}
await browser.close();
console.log(wrong.join('\n'));
process.exit(0);
