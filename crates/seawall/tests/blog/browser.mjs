// browser.mjs NAME: a journey through a blog in Chromium, with what is to be known as JSON on standard input. It says what is wrong and fails.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const facts = JSON.parse(readFileSync(0, 'utf8'));
const { chromium } = createRequire(`${facts.modules}/`)('playwright-core');
const browser = await chromium.launch({ executablePath: facts.chromium, args: ['--no-sandbox', '--disable-gpu'] });
const page = await (await browser.newContext()).newPage();
const wrong = [];
page.on('console', (message) => message.type() === 'error' && wrong.push(`console: ${message.text()}`));
page.on('pageerror', (error) => wrong.push(`${error}`));

const save = (text) => writeFileSync(facts.post, facts.template.replace('TEXT', text));
const shown = () => page.locator('body').innerText();

/** Until the server has seen the edit, asked past the browser. */
async function published(text) {
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    if ((await (await fetch(`${facts.url}/hello/`)).text()).includes(text)) return;
  }
  wrong.push(`the server never had ${text}`);
}

const journeys = {
  async reader() {
    await page.goto(`${facts.url}/`);
    await page.getByRole('link', { name: 'Hello' }).first().click();
    await page.waitForURL('**/hello/');
    if (!(await shown()).includes('version one')) wrong.push('the post is not there');
    save('version two');
    await published('version two');
    if (!(await shown()).includes('version one')) wrong.push('the page changed by itself, where others can ask');
    await page.goto(`${facts.url}/`);
    await page.getByRole('link', { name: 'Hello' }).first().click();
    await page.waitForURL('**/hello/');
    if (!(await shown()).includes('version two')) wrong.push(`opened again by a link, the post shows: ${await shown()}`);
  },
  async author() {
    await page.goto(`${facts.url}/hello/`);
    for (const version of ['two', 'three']) {
      save(`version ${version}`);
      await page.getByText(`version ${version}`).waitFor({ timeout: 20_000 }).catch(() => wrong.push(`version ${version} is not shown by itself`));
    }
  },
};

await journeys[process.argv[2]]();
await browser.close();
if (wrong.length) {
  console.log(wrong.join('\n'));
  process.exit(1);
}
