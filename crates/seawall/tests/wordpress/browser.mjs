// browser.mjs JOURNEY: a person in Chromium, with what they need to know as JSON on standard input.
//
// Nothing but this machine can be reached. What the blog itself answers with 4xx or 5xx, and what its pages complain of, fails the journey.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const facts = JSON.parse(readFileSync(0, 'utf8'));
const { chromium } = createRequire(`${facts.modules}/`)('playwright-core');
const browser = await chromium.launch({
  executablePath: facts.chromium,
  args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
});
const PATIENCE = 60000;
const complaints = [];

async function person() {
  const context = await browser.newContext({ viewport: { width: 1300, height: 1000 } });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.on('response', (response) => {
    if (response.url().startsWith(facts.url) && response.status() >= 400) complaints.push(`${response.status()} ${response.request().method()} ${response.url()}`);
  });
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && (message.location().url ?? '').startsWith(facts.url)) complaints.push(`${page.url()}: ${message.text()} (${message.location().url})`);
  });
  return { context, page };
}

function must(what, is) {
  if (!is) throw new Error(`not so: ${what}`);
}

const go = (page, path) => page.goto(facts.url + path, { waitUntil: 'load' });

async function signIn(page) {
  await go(page, '/wp-login.php');
  await page.locator('#user_login').fill(facts.login);
  await page.locator('#user_pass').fill(facts.password);
  await page.locator('#wp-submit').click();
  await page.waitForURL(/wp-admin/);
}

// What a stranger's next request shows.
const stranger = async (path) => (await fetch(facts.url + path)).text();

// The block editor greets who is new there.
async function openEditor(page, path) {
  await go(page, path);
  await page.waitForFunction(() => window.wp?.data?.select('core/editor')?.getCurrentPostId?.());
  await page.evaluate(() => {
    for (const scope of ['core/edit-post', 'core']) {
      window.wp.data.dispatch('core/preferences').set(scope, 'welcomeGuide', false);
      window.wp.data.dispatch('core/preferences').set(scope, 'fullscreenMode', false);
    }
  });
  const frame = page.frameLocator('iframe[name="editor-canvas"]');
  const title = page.locator('iframe[name="editor-canvas"], .editor-post-title__input').first();
  await title.waitFor();
  return (await page.locator('iframe[name="editor-canvas"]').count()) ? frame : page;
}

const saved = (page) =>
  page.waitForResponse((response) => /\/wp-json\/wp\/v2\/posts\/\d+(\?|$)/.test(response.url()) && ['POST', 'PUT'].includes(response.request().method()) && response.ok());

const journeys = {
  // Charts that were put into a post are drawn there, and have their words.
  async charts() {
    const { page } = await person();
    await go(page, facts.path);
    const charts = page.locator('figure.chart svg');
    must(`all charts are there: ${await charts.count()}`, (await charts.count()) === facts.count);
    for (let at = 0; at < facts.count; at++) {
      const chart = charts.nth(at);
      await chart.scrollIntoViewIfNeeded();
      const { width, height } = await chart.boundingBox();
      must(`chart ${at} is shown: ${width} x ${height}`, width > 200 && height > 50);
      must(`chart ${at} has words`, (await chart.locator('text').count()) > 0);
    }
    if (facts.pictures) await page.screenshot({ path: `${facts.pictures}/charts.png`, fullPage: true });
  },

  // Somebody writes a post with a picture, publishes it, and edits it.
  async editor() {
    const { page } = await person();
    await signIn(page);
    let canvas = await openEditor(page, '/wp-admin/post-new.php');
    await canvas.locator('.editor-post-title__input').first().click();
    await page.keyboard.type(facts.title);
    await page.keyboard.press('Enter');
    await page.keyboard.type(facts.words);

    // A picture, as the button of its block uploads it.
    await page.keyboard.press('Enter');
    await page.keyboard.type('/image');
    await page.locator('.components-autocomplete__result').first().waitFor();
    await page.keyboard.press('Enter');
    const chooser = page.waitForEvent('filechooser');
    await canvas.getByRole('button', { name: 'Upload' }).first().click();
    const upload = page.waitForResponse((response) => response.url().includes('/wp-json/wp/v2/media') && response.request().method() === 'POST');
    await (await chooser).setFiles({ name: 'from-the-editor.jpg', mimeType: 'image/jpeg', buffer: Buffer.from(facts.picture, 'base64') });
    must('the picture is taken', (await upload).status() === 201);
    await canvas.locator('img[src*="from-the-editor"]').first().waitFor();
    await page.waitForFunction(() => !document.querySelector('.components-spinner'));

    // The draft saves itself.
    const autosave = page.waitForResponse((response) => /\/(autosaves|posts\/\d+)/.test(response.url()) && response.request().method() === 'POST');
    await page.evaluate(() => window.wp.data.dispatch('core/editor').autosave());
    must('the draft is saved', (await autosave).ok());
    must('nobody else sees the draft', !(await stranger('/')).includes(facts.title));

    await page.getByRole('button', { name: 'Publish', exact: true }).first().click();
    await Promise.all([saved(page), page.locator('.editor-post-publish-panel').getByRole('button', { name: 'Publish', exact: true }).click()]);
    // The next request of anybody.
    const front = await stranger('/');
    must('the post is on the front page', front.includes(facts.title));
    const link = await page.evaluate(() => window.wp.data.select('core/editor').getCurrentPost().link);
    const post = await stranger(new URL(link).pathname);
    must('the post is there', post.includes(facts.words) && post.includes('from-the-editor'));

    const id = await page.evaluate(() => window.wp.data.select('core/editor').getCurrentPostId());
    for (const title of [`${facts.title}, changed`, `${facts.title}, again`]) {
      canvas = await openEditor(page, `/wp-admin/post.php?post=${id}&action=edit`);
      const input = canvas.locator('.editor-post-title__input').first();
      await input.click();
      await page.keyboard.press('Control+A');
      await page.keyboard.type(title);
      await Promise.all([saved(page), page.getByRole('button', { name: /^(Save|Update)$/ }).first().click()]);
      must(`${title} is on the front page`, (await stranger('/')).includes(title));
      must(`${title} is on its page`, (await stranger(new URL(link).pathname)).includes(title));
    }
  },

  // Every page of the admin, and what runs behind them.
  async admin() {
    const { page } = await person();
    await signIn(page);
    for (const name of ['index', 'edit', 'upload', 'edit-comments', 'themes', 'plugins', 'users', 'profile', 'tools', 'options-general', 'options-reading', 'options-permalink', 'site-health', 'customize', 'site-editor', 'edit-tags.php?taxonomy=category', 'post-new.php?post_type=page']) {
      await go(page, `/wp-admin/${name.includes('.php') ? name : `${name}.php`}`);
      await page.waitForFunction(() => document.readyState === 'complete');
      if (name === 'site-editor') await page.locator('iframe[name="editor-canvas"], .edit-site-layout').first().waitFor();
      if (name === 'customize') await page.locator('#customize-preview iframe').first().waitFor();
    }
    await go(page, '/wp-admin/edit.php');
    const beat = page.waitForResponse((response) => response.url().includes('admin-ajax.php') && (response.request().postData() ?? '').includes('action=heartbeat'));
    await page.evaluate(() => window.wp.heartbeat.connectNow());
    must('the heart beats', (await beat).ok());
  },

  // A reader signs in, comments, and signs out.
  async reader() {
    const { context, page } = await person();
    await signIn(page);
    await go(page, facts.page);
    must('the reader is known', (await page.content()).includes('wpadminbar'));
    await page.locator('#comment').fill(facts.words);
    await page.locator('#commentform [type=submit]').click();
    await page.waitForURL((url) => url.hash.startsWith('#comment-') || url.search.includes('unapproved'));
    must('the reader sees the comment', (await page.content()).includes(facts.words));
    must('nobody else does', !(await stranger(facts.page)).includes(facts.words));
    const out = await page.locator('#wp-admin-bar-logout a').first().getAttribute('href');
    await page.goto(out);
    await go(page, facts.page);
    must('nobody is known after signing out', !(await page.content()).includes('wpadminbar'));
    must('the cookie is gone', !(await context.cookies()).some((cookie) => cookie.name.startsWith('wordpress_logged_in_')));
  },
};

try {
  await journeys[process.argv[2]]();
  if (complaints.length) throw new Error(`complaints:\n${complaints.join('\n')}`);
} catch (error) {
  for (const context of browser.contexts()) {
    for (const page of context.pages()) {
      console.error(`--- ${page.url()}`);
      if (facts.pictures) await page.screenshot({ path: `${facts.pictures}/${process.argv[2]}-${Date.now()}.png` }).catch(() => {});
    }
  }
  console.error([...complaints, String(error.stack ?? error)].join('\n'));
  process.exitCode = 1;
} finally {
  await browser.close();
}
