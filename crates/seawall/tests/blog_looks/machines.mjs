// machines.mjs: reads blogs as other programs do. What to read comes as JSON on standard input:
//   modules             where open-graph-scraper is
//   cards               [{ url, expected }]: what it reads at `url`, as far as `expected` names it
//   searches            [{ url, typed, found, said }], chromium: what a search page shows after somebody typed
// What is wrong is written to standard output, a line each.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const facts = JSON.parse(readFileSync(0, 'utf8'));
const modules = createRequire(`${facts.modules}/`);
const wrong = [];

const ogs = facts.cards && modules('open-graph-scraper');
for (const { url, expected } of facts.cards ?? []) {
  const { result, html } = await ogs({ html: await (await fetch(url)).text() });
  const read = { ...result, image: result.ogImage?.[0] };
  for (const [key, value] of Object.entries(expected)) {
    if (JSON.stringify(read[key]) !== JSON.stringify(value)) wrong.push(`${url}: ${key} is ${JSON.stringify(read[key])}, not ${JSON.stringify(value)}`);
  }
  // The picture is there, and what is said of it is true.
  const answer = await fetch(read.image.url);
  const bytes = Buffer.from(await answer.arrayBuffer());
  const size = bytes.toString('latin1', 1, 4) === 'PNG' ? [bytes.readUInt32BE(16), bytes.readUInt32BE(20)] : [];
  const said = [Number(read.image.width), Number(read.image.height)];
  if (answer.status !== 200 || answer.headers.get('content-type') !== read.image.type) wrong.push(`${read.image.url}: ${answer.status}`);
  if (size.length && String(size) !== String(said)) wrong.push(`${read.image.url}: ${size}, not ${said}`);
  for (const [, json] of html.matchAll(/<script type="application\/ld\+json">(.*?)<\/script>/gs)) JSON.parse(json);
}

if (facts.searches) {
  const { chromium } = modules('playwright-core');
  const browser = await chromium.launch({ executablePath: facts.chromium, args: ['--no-sandbox', '--disable-gpu'] });
  for (const { url, typed, found, said } of facts.searches) {
    const page = await browser.newPage();
    const asked = [];
    page.on('request', (request) => asked.push(request.url()));
    page.on('pageerror', (error) => wrong.push(`${url}: ${error}`));
    await page.goto(url);
    if (asked.some((one) => one.endsWith('/search.json'))) wrong.push(`${url}: the index is loaded before anybody types`);
    await page.fill('input[type=search]', typed);
    await page.waitForFunction((said) => document.querySelector('[data-search-status]').textContent === said, said, { timeout: 5000 }).catch(async () => {
      wrong.push(`${url}: ${typed}: said ${await page.textContent('[data-search-status]')}, not ${said}`);
    });
    const titles = await page.$$eval('[data-search-results] a', (links) => links.map((link) => link.textContent));
    if (JSON.stringify(titles) !== JSON.stringify(found)) wrong.push(`${url}: ${typed}: found ${JSON.stringify(titles)}`);
    await page.close();
  }
  await browser.close();
}
console.log(wrong.join('\n'));
