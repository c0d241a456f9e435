// browser.mjs: looks at blogs as browsers, people who see little, and search engines do. What to look at comes as JSON on standard input:
//   modules, chromium   where the tools are
//   pages               [{ name, url }]: every page is judged by axe in light and in dark, and by the HTML checker of the W3C
//   lighthouse          [{ name, url }]: every page must have 100 in all four categories, but for the audits named in `explained`
//   pictures, shots     a folder, and [{ name, url }]: screenshots, light and dark, on a phone and on a wide screen
// What is wrong is written to standard output, a line each. Nothing but this machine can be reached.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const facts = JSON.parse(readFileSync(0, 'utf8'));
const modules = createRequire(`${facts.modules}/`);
const { chromium } = modules('playwright-core');
const axe = readFileSync(modules.resolve('axe-core/axe.min.js'), 'utf8');
const wrong = [];
const work = mkdtempSync(join(tmpdir(), 'blog-looks-'));

const browser = await chromium.launch({
  executablePath: facts.chromium,
  args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
});

const sizes = { phone: { width: 390, height: 844, deviceScaleFactor: 2 }, wide: { width: 1440, height: 900, deviceScaleFactor: 1 } };

async function opened({ scheme = 'light', size = 'wide', script = true }, use) {
  const { deviceScaleFactor, ...viewport } = sizes[size];
  const context = await browser.newContext({ viewport, deviceScaleFactor, colorScheme: scheme, reducedMotion: 'reduce', javaScriptEnabled: script });
  const page = await context.newPage();
  try {
    return await use(page);
  } finally {
    await context.close();
  }
}

// Photographs: large, with noise, as a camera writes them.
if (facts.photographs) {
  await opened({}, async (page) => {
    for (let number = 1; number <= facts.photographs.count; number++) {
      const data = await page.evaluate((number) => {
        const canvas = Object.assign(document.createElement('canvas'), { width: 3000, height: number % 3 ? 2000 : 3600 });
        const pen = canvas.getContext('2d');
        const hue = (number * 47) % 360;
        const sky = pen.createLinearGradient(0, 0, 0, canvas.height);
        [0, 0.55, 0.56, 1].forEach((at, index) => sky.addColorStop(at, `hsl(${hue + index * 12} ${40 + index * 5}% ${[82, 62, 38, 20][index]}%)`));
        pen.fillStyle = sky;
        pen.fillRect(0, 0, canvas.width, canvas.height);
        for (let dot = 0; dot < 20000; dot++) {
          pen.fillStyle = `hsl(${hue} 30% ${Math.random() * 100}% / 0.15)`;
          pen.fillRect(Math.random() * canvas.width, Math.random() * canvas.height, 14, 6);
        }
        return canvas.toDataURL('image/jpeg', 0.9).split(',')[1];
      }, number);
      writeFileSync(join(facts.photographs.folder, `${number}.jpg`), Buffer.from(data, 'base64'));
    }
  });
}

// axe: WCAG 2.2 A and AA, and what it holds to be good practice.
for (const scheme of ['light', 'dark']) {
  for (const size of ['wide', 'phone']) {
    await opened({ scheme, size }, async (page) => {
      for (const { name, url } of facts.pages ?? []) {
        await page.goto(url, { waitUntil: 'load' });
        // Boxes that are closed are judged, too.
        await page.evaluate(() => document.querySelectorAll('details').forEach((box) => (box.open = true)));
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
        for (const { id, help, nodes } of violations) {
          wrong.push(`axe, ${scheme}, ${size}, ${name}: ${id} (${help}): ${nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary?.replace(/\s+/g, ' ')}`).join(' | ')}`);
        }
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (overflow > 0) wrong.push(`${size}, ${name}: the page is ${overflow} px wider than the screen`);
      }
    });
  }
}

// The checker of the W3C, for what the server sent.
if (facts.pages?.length) {
  const files = [];
  for (const [at, { name, url }] of facts.pages.entries()) {
    const file = join(work, `${at}.html`);
    writeFileSync(file, await (await fetch(url)).text());
    files.push({ name, file });
  }
  const jar = modules.resolve('vnu-jar/build/dist/vnu.jar');
  const { stderr } = spawnSync('java', ['-jar', jar, '--format', 'json', '--exit-zero-always', ...files.map(({ file }) => file)], { encoding: 'utf8', maxBuffer: 1 << 28 });
  for (const { type, subType, url, lastLine, message } of JSON.parse(stderr).messages) {
    const page = files.find(({ file }) => url?.endsWith(file));
    wrong.push(`vnu, ${page?.name}:${lastLine}: ${subType ?? type}: ${message}`);
  }
}

for (const { name, url } of facts.shots ?? []) {
  mkdirSync(facts.pictures, { recursive: true });
  for (const scheme of ['light', 'dark']) {
    for (const size of ['phone', 'wide']) {
      await opened({ scheme, size }, async (page) => {
        await page.goto(url, { waitUntil: 'load' });
        await page.waitForTimeout(300); // pictures that are decoded later
        await page.screenshot({ path: join(facts.pictures, `${name}-${scheme}-${size}.png`), fullPage: false });
      });
    }
  }
}
await browser.close();

// A page's pictures are made in the background when a blog first has them. Until then the originals go out, and a build without optimisation takes a minute
// for ten photographs: what is judged is the page that readers find after it.
async function picturesAreMade(url) {
  const html = await (await fetch(url)).text();
  const asked = new Set([...html.matchAll(/\/pictures\/[^\s"',]+\.(?:webp|avif)/g)].map(([path]) => new URL(path, url).href));
  for (const picture of asked) {
    for (let tries = 0; ; tries++) {
      const answer = await fetch(picture);
      await answer.arrayBuffer();
      if (answer.headers.get('content-type') === `image/${picture.split('.').pop()}`) break;
      if (tries === 60) {
        wrong.push(`${picture} is never made: ${answer.status} ${answer.headers.get('content-type')}`);
        break;
      }
      await new Promise((later) => setTimeout(later, 1000));
    }
  }
}

for (const { name, url, explained = [] } of facts.lighthouse ?? []) {
  await picturesAreMade(url);
  for (const preset of ['mobile', 'desktop']) {
    const file = join(work, 'lighthouse.json');
    execFileSync(
      process.execPath,
      [
        modules.resolve('lighthouse/cli/index.js'), url, '--quiet', '--output=json', `--output-path=${file}`, '--chrome-flags=--headless=new --no-sandbox --disable-gpu',
        ...(preset === 'desktop' ? ['--preset=desktop'] : []),
      ],
      { env: { ...process.env, CHROME_PATH: facts.chromium }, stdio: ['ignore', 'ignore', 'inherit'] },
    );
    const { categories, audits } = JSON.parse(readFileSync(file, 'utf8'));
    for (const { id, score, auditRefs } of Object.values(categories)) {
      const less = auditRefs.filter(({ id, weight }) => weight && audits[id].score !== null && audits[id].score < 1).map(({ id }) => id);
      const open = less.filter((audit) => !explained.includes(audit));
      console.error(`lighthouse, ${preset}, ${name}: ${id} ${Math.round(score * 100)} ${less.join(' ')}`);
      if (score < 1 && (open.length || !less.length)) wrong.push(`lighthouse, ${preset}, ${name}: ${id} ${Math.round(score * 100)}: ${less.map((audit) => `${audit} (${audits[audit].displayValue ?? audits[audit].title})`).join(', ')}`);
    }
  }
}
rmSync(work, { recursive: true, force: true });
console.log(wrong.join('\n'));
