// browser.mjs JOURNEY: a person in Chromium, with what they need to know as JSON on standard input.
//
// Nothing but this machine can be reached: the scripts that Ghost's pages load from a public CDN come from the Ghost here.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const facts = JSON.parse(readFileSync(0, 'utf8'));
const { chromium } = createRequire(`${facts.modules}/`)('playwright-core');
const browser = await chromium.launch({
  executablePath: facts.chromium,
  args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
});
const PATIENCE = 45000;

async function person() {
  const context = await browser.newContext({ viewport: { width: 1200, height: 1000 } });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  return { context, page };
}

function must(what, is) {
  if (!is) throw new Error(`not so: ${what}`);
}

const go = (page, path) => page.goto(facts.url + path, { waitUntil: 'domcontentloaded' });
const whoami = (page) => page.evaluate(() => fetch('/members/api/member/', { credentials: 'same-origin' }).then(async (response) => (response.status === 200 ? (await response.json()).name : null)));
const comments = async (page) => {
  await page.locator('#ghost-comments-root, iframe[title="comments-frame"]').first().scrollIntoViewIfNeeded();
  return page.frameLocator('iframe[title="comments-frame"]');
};

const journeys = {
  // A member signs in with a link as out of a mail, reads what is for members, comments, and signs out.
  async member() {
    const { context, page } = await person();
    await go(page, facts.before);
    must('the page is cut before signing in', !(await page.content()).includes(facts.secret));
    await page.goto(facts.link);
    must('the member is known', (await whoami(page)) === facts.name);
    await go(page, facts.before);
    must('the member reads it', (await page.content()).includes(facts.secret));
    await go(page, facts.talk);
    const frame = await comments(page);
    await frame.locator('[data-testid="form-editor"]').first().click();
    await frame.locator('[data-testid="form-editor"] [contenteditable="true"]').first().fill(facts.words);
    await frame.locator('[data-testid="submit-form-button"]').first().click();
    await frame.getByText(facts.words).first().waitFor();

    const stranger = await person();
    await go(stranger.page, facts.talk);
    await (await comments(stranger.page)).getByText(facts.words).first().waitFor();
    must('the stranger is nobody', (await whoami(stranger.page)) === null);

    await go(page, '/#/portal/account');
    const portal = page.frameLocator('iframe[title="portal-popup"]');
    await Promise.all([page.waitForResponse((response) => response.url().includes('/members/api/session') && response.request().method() === 'DELETE'), portal.getByText('Sign out', { exact: true }).click()]);
    await page.waitForTimeout(1500); // the portal loads the page anew
    await go(page, facts.before);
    must('nobody is known after signing out', (await whoami(page)) === null);
    must('the page is cut again', !(await page.content()).includes(facts.secret));
    must('the cookie is gone', !(await context.cookies()).some((cookie) => cookie.name === 'ghost-members-ssr'));
  },

  // Two members read at the same time, each in a browser of their own.
  async tiers() {
    const people = [];
    for (const one of facts.people) {
      const { page } = await person();
      await page.goto(one.link);
      people.push({ ...one, page });
    }
    for (let n = 0; n < 5; n++) {
      await Promise.all(people.map(async ({ page, name, reads, misses }) => {
        for (const [path, secret] of reads) {
          await go(page, path);
          must(`${name} reads ${path}`, (await page.content()).includes(secret));
        }
        for (const [path, secret] of misses) {
          await go(page, path);
          must(`${name} does not read ${path}`, !(await page.content()).includes(secret));
        }
        must(`${name} is ${name}`, (await whoami(page)) === name);
      }));
    }
  },

  // Charts are pictures of a post: each is loaded, and as wide as a column at least.
  async charts() {
    const { page } = await person();
    await go(page, facts.path);
    for (const name of facts.names) {
      const picture = page.locator(`img[alt="${name}"]`);
      await picture.scrollIntoViewIfNeeded();
      const [natural, shown] = await picture.evaluate(async (image) => (await image.decode(), [image.naturalWidth, image.getBoundingClientRect().width]));
      must(`${name} is shown: ${natural} px wide by itself, ${shown} px in the post`, natural > 200 && shown > 200);
    }
    if (facts.pictures) await page.screenshot({ path: `${facts.pictures}/charts.png`, fullPage: true });
  },

  // An editor signs in, writes a post with a picture, and publishes it.
  async editor() {
    const { page } = await person();
    await page.goto(`${facts.url}/ghost/`);
    await page.locator('input[name="identification"]').fill(facts.email);
    await page.locator('input[name="password"]').fill(facts.password);
    await page.locator('input[name="password"]').press('Enter');
    await page.waitForURL((url) => !url.hash.includes('signin'));
    await page.goto(`${facts.url}/ghost/#/editor/post`);
    const title = page.locator('textarea[placeholder="Post title"], [data-test-editor-title-input]').first();
    await title.fill(facts.title);
    await title.press('Enter');
    const chooser = page.waitForEvent('filechooser');
    await page.getByText('Add feature image').first().click();
    await (await chooser).setFiles({ name: 'from-the-editor.jpg', mimeType: 'image/jpeg', buffer: Buffer.from(facts.picture, 'base64') });
    await page.locator('img[src*="from-the-editor"]').first().waitFor();
    await page.locator('[data-kg="editor"] [contenteditable="true"], [contenteditable="true"].kg-prose').first().click();
    await page.keyboard.type(facts.words);
    await page.waitForURL(/editor\/post\/[0-9a-f]+/); // it has been saved
    await page.getByRole('button', { name: 'Publish', exact: true }).first().click();
    await page.getByRole('button', { name: /^Continue/ }).first().click();
    await Promise.all([
      page.waitForResponse((response) => response.request().method() === 'PUT' && response.ok() && response.request().postData()?.includes('"status":"published"')),
      // It pulses, and so is never as still as a click waits for.
      page.locator('[data-test-button="confirm-publish"]').first().evaluate((button) => button.click()),
    ]);
    // The next request of anybody.
    const front = await (await fetch(`${facts.url}/`)).text();
    must('the post is on the front page', front.includes(facts.title));
    must('its picture is, too', front.includes('from-the-editor'));
  },
};

try {
  await journeys[process.argv[2]]();
} catch (error) {
  for (const context of browser.contexts()) {
    for (const page of context.pages()) {
      console.error(`--- ${page.url()}: ${(await page.content().catch(() => '')).match(/<script[^>]*ghost-comments[^>]*>/)?.[0]}`);
      if (facts.pictures) await page.screenshot({ path: `${facts.pictures}/${process.argv[2]}-${Date.now()}.png` }).catch(() => {});
    }
  }
  console.error(String(error.stack ?? error));
  process.exitCode = 1;
} finally {
  await browser.close();
}
