// report.mjs: a report in Chromium, with what is to be known as JSON on standard input. It says what is wrong and fails.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const facts = JSON.parse(readFileSync(0, 'utf8'));
const { chromium } = createRequire(`${facts.modules}/`)('playwright-core');
const browser = await chromium.launch({ executablePath: facts.chromium, args: ['--no-sandbox', '--disable-gpu'] });
const wrong = [];

async function look(name, options, work) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, ...options });
  const page = await context.newPage();
  const url = pathToFileURL(facts.report).href;
  page.on('request', (request) => request.url() !== url && !request.url().startsWith('data:') && wrong.push(`${name}: asked for ${request.url()}`));
  page.on('console', (message) => message.type() === 'error' && wrong.push(`${name}: ${message.text()}`));
  page.on('pageerror', (error) => wrong.push(`${name}: ${error}`));
  await page.goto(url);
  await work(page);
  if (facts.pictures) await page.screenshot({ path: `${facts.pictures}/report-${name}.png`, fullPage: true });
  await context.close();
}

async function charts(page, name) {
  const boxes = await page.locator('svg').evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ width, height }) => [width, height]));
  const shown = boxes.filter(([width, height]) => width > 200 && height > 50);
  if (shown.length < 4) wrong.push(`${name}: ${shown.length} charts are to be seen, of ${JSON.stringify(boxes)}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) wrong.push(`${name}: the page is ${wide} px wider than the window`);
}

async function accessible(page, name) {
  // Not as an element: the policy of the report lets no script run but its own.
  await page.evaluate(`${readFileSync(facts.axe, 'utf8')}; undefined`);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  for (const { id, impact, nodes } of violations) wrong.push(`${name}: axe: ${id} (${impact}): ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`);
}

for (const colorScheme of ['light', 'dark']) {
  await look(colorScheme, { colorScheme }, async (page) => {
    await charts(page, colorScheme);
    await accessible(page, colorScheme);
  });
}
await look('without-scripts', { javaScriptEnabled: false }, async (page) => {
  const text = await page.locator('body').innerText();
  for (const words of [/p99/i, /bottleneck|kept up|keeps up/]) if (!words.test(text)) wrong.push(`without scripts: no ${words}`);
  if ((await page.locator('svg').count()) < 4) wrong.push('without scripts: fewer than four charts');
});
await look('narrow', { viewport: { width: 380, height: 800 } }, (page) => charts(page, 'narrow').then(() => accessible(page, 'narrow')));
await look('print', {}, async (page) => {
  await page.emulateMedia({ media: 'print' });
  await charts(page, 'print');
});

// Each chart alone, as an editor shows it in a post.
const context = await browser.newContext();
const page = await context.newPage();
for (const file of readdirSync(facts.charts)) {
  await page.setContent(`<img alt="" src="data:image/svg+xml;base64,${readFileSync(`${facts.charts}/${file}`).toString('base64')}">`);
  const width = await page.locator('img').evaluate(async (image) => (await image.decode(), image.naturalWidth));
  if (width < 100) wrong.push(`${file}: ${width} px wide as a picture`);
  if (facts.pictures) await page.screenshot({ path: `${facts.pictures}/${file}.png` });
}

await browser.close();
if (wrong.length) {
  console.log(wrong.join('\n'));
  process.exit(1);
}
