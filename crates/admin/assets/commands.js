// The commands: explain, purge, warm. Each needs a session; without one, the token is asked for first.

import { byId, el, put, say } from './dom.js';
import { Refused, ask, command, signIn } from './server.js';
import { bytes, count, lasted, plain, rule } from './words.js';

const BROWSER_CODINGS = 'gzip, deflate, br, zstd';
const span = (seconds) => lasted(seconds * 1000);

const told = (id, error) => say(byId(id), error ? `${sentence(error.message)} ${sentence(error.remedy ?? '')}`.trim() : '');
const sentence = (text) => (text ? `${text[0].toUpperCase()}${plain(text.slice(1), 600)}${/[.!?]$/.test(text) ? '' : '.'}` : '');

function open(id) {
  const dialog = byId(id);
  if (!dialog.open) dialog.showModal();
  return dialog;
}

for (const button of document.querySelectorAll('[data-close]')) button.addEventListener('click', () => button.closest('dialog').close());
// A click beside the dialog closes it.
for (const dialog of document.querySelectorAll('dialog')) dialog.addEventListener('pointerdown', (event) => { if (event.target === dialog && isBeside(dialog, event)) dialog.close(); });
function isBeside(dialog, { clientX, clientY }) {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}

// Signing in.

let signed = () => {};
let unsigned = () => {};
let onChange = () => {};

/** Hears that somebody has signed in. */
export function whenSignedIn(listener) { onChange = listener; }

/** Asks for the token, then calls `then`, or `otherwise` if nobody signs in. */
export function askForToken(then = () => {}, otherwise = () => {}) {
  signed = then;
  unsigned = otherwise;
  told('sign-told');
  byId('token').value = '';
  open('dialog-sign');
}

byId('form-sign').addEventListener('submit', async (event) => {
  event.preventDefault();
  const token = byId('token').value.trim();
  try {
    await signIn(token);
    unsigned = () => {};
    byId('dialog-sign').close();
    onChange();
    signed();
  } catch (error) {
    told('sign-told', error.status === 401 ? { message: 'This is not the token of this server', remedy: 'copy it from its file; nothing else belongs to it' } : error);
    byId('token').select();
  } finally {
    if (!byId('dialog-sign').open) byId('token').value = '';
  }
});

byId('dialog-sign').addEventListener('close', () => {
  const act = unsigned;
  unsigned = () => {};
  act();
});

const NO_TOKEN = {
  message: 'Nothing was done: this needs the admin token',
  remedy: 'it lies on the server in the file that admin_token_file names: ~/.local/state/seawall/admin-token, or /var/lib/seawall/admin-token for the system’s service',
};

/** Does something that needs a session; `id` is where its refusal is told. */
async function tried(id, act) {
  told(id);
  try {
    await act();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) {
      onChange();
      askForToken(() => tried(id, act), () => told(id, NO_TOKEN));
    } else told(id, error);
  }
}

/** What is said of an address that was taken from a list. */
const HIDDEN = 'Values of a query, and what may be one person’s own in a path, are not kept: put in what you mean, in the place of each “…”.';

// Explain.

export function openExplain(url = '') {
  byId('explain-url').value = url;
  told('explain-told');
  put(byId('explanation'));
  open('dialog-explain');
  const hidden = url.includes('…');
  if (hidden) say(byId('explain-told'), HIDDEN);
  if (url && !hidden) explainNow();
  else byId('explain-url').focus();
}

byId('form-explain').addEventListener('submit', (event) => {
  event.preventDefault();
  explainNow();
});

function explainNow() {
  return tried('explain-told', async () => {
    const fields = byId('explain-fields').value.split('\n').map((line) => line.split(/:(.*)/s)).filter(([name]) => name.trim()).map(([name, value = '']) => [name.trim(), value.trim()]);
    if (!fields.some(([name]) => name.toLowerCase() === 'accept-encoding')) fields.push(['accept-encoding', BROWSER_CODINGS]);
    put(byId('explanation'), el('p', { class: 'calm', text: 'Asking …' }));
    try {
      put(byId('explanation'), ...explained(await command('/explain', { url: byId('explain-url').value.trim(), fields })));
    } catch (error) {
      put(byId('explanation'));
      throw error;
    }
  });
}

const VERDICTS = {
  lookup: 'The cache is asked.', pass: 'It passes: the cache is not asked.', purge: 'It is a purge.', webhook: 'It is a webhook of the origin.',
  redirect: 'It is redirected before the cache is asked.', answered: 'Seawall answers it before the cache is asked.', malformed: 'It is malformed.',
};

function explained(answer) {
  const { site, rules, verdict, key, lookup, stored, not_kept: notKept, flight, now } = answer;
  const bdi = (text, length) => el('bdi', { text: plain(text, length) });
  const line = (name, ...value) => el('div', {}, el('dt', { text: name }), el('dd', {}, ...value));
  const steps = (list) => el('ol', { class: 'steps' }, ...list.map(({ rule: name, decided, detail }) => el('li', { class: decided ? 'decides' : null }, el('span', { class: 'step', text: plain(name, 60) }), bdi(detail, 400), decided ? el('b', { text: 'decides' }) : null)));
  const variant = (one) => el('dl', { class: `variant ${one.selected ? 'selected' : ''}` },
    line(one.selected ? 'For this request' : one.refused ? 'Fits, and is refused' : 'For other requests', `${one.status}, `, bdi(one.content_type ?? 'without a media type', 100), one.content_coding ? `, ${plain(one.content_coding, 20)}` : null, one.refused ? `: ${plain(one.refused, 60)}` : null),
    line('Age', span(one.age_seconds)),
    line('Freshness', one.fresh ? `fresh for another ${span(one.fresh_seconds)} of ${span(one.lifetime_seconds)}` : `stale for ${span(-one.fresh_seconds)}`, one.validate_always ? ', and asked about each time' : null),
    line('When stale', `served for ${span(one.stale_while_revalidate_seconds)} while it is asked about, for ${span(one.stale_if_error_seconds)} if the origin fails`),
    line('Purged', one.purged === 'no' ? 'no' : `${one.purged}, by ${one.purges.map(({ target }) => plain(target, 40)).join(', ')}`),
    line('Size', `${bytes(one.body_bytes)}, in ${plain(one.tiers.join(', '), 60)}`),
    one.vary.length > 0 ? line('Varies', bdi(one.vary.map(([name, value]) => `${name}: ${value ?? '(absent)'}`).join('; '), 400)) : null,
    one.tags.length > 0 ? line('Tags', bdi(one.tags.slice(0, 12).join(', '), 400)) : null,
    line('For readers with cookies', one.for_cookies ? 'yes' : 'no'));
  const badge = now.x_cache || 'no answer';
  return [
    el('p', { class: 'outcome' }, el('b', { class: `badge ${badge.toLowerCase().replace(/[^a-z]/g, '')}`, text: plain(badge, 40) }), bdi(now.words[0] ?? '', 400)),
    ...now.words.slice(1).map((text) => el('p', {}, bdi(text, 400))),
    notKept ? el('div', { class: 'because' },
      el('p', {}, el('b', { text: notKept.status ? 'The last answer was not stored: ' : 'The origin did not answer: ' }), rule(notKept.reason), el('span', { class: 'fact', text: ` (${notKept.status ?? 'no status'}, ${span(notKept.seconds_ago)} ago)` })),
      notKept.words ? el('p', {}, bdi(notKept.words, 400)) : null,
      notKept.cookie ? el('p', {}, 'It sets the cookie ', el('code', {}, bdi(notKept.cookie, 80)), notKept.cookie_of ? `, known for ${plain(notKept.cookie_of, 80)}` : null, '.') : null,
      notKept.difference ? el('p', {}, 'Two readers were given: ', bdi(notKept.difference, 400)) : null) : null,
    el('h3', { text: 'How it is judged' }), steps(rules),
    el('p', { class: 'fact' }, el('b', { text: VERDICTS[verdict] ?? plain(verdict, 60) }), ` ${site.hosts.length > 0 ? `Site ${plain(site.name, 80)}` : 'This site'}, ${plain(site.kind, 40)}.`),
    key ? el('p', { class: 'fact' }, 'Key: ', el('code', {}, bdi(`${key.scheme} ${key.host} ${key.target} accept=${key.accept}`, 400))) : null,
    lookup.length > 0 ? el('h3', { text: 'What the cache finds' }) : null, lookup.length > 0 ? steps(lookup) : null,
    ...stored.map(variant),
    answer.stored_under_other_scheme ? el('p', { text: 'The same address is stored under the other of http and https. Behind a proxy that does TLS, the proxy must be in trusted_proxies.' }) : null,
    flight ? el('p', { text: `A fetch is under way, and ${count(flight.followers)} others wait for it or read along.` }) : null,
    answer.uncacheable_seconds === null ? null : el('p', { text: `For another ${span(answer.uncacheable_seconds)}, requests for it go to the origin one by one.` }),
    answer.origin_down_seconds === null ? null : el('p', { text: `The origin counts as down for another ${span(answer.origin_down_seconds)}.` }),
    el('details', {}, el('summary', { text: 'The whole answer, as JSON' }), el('pre', { tabindex: '0' }, el('bdi', { text: JSON.stringify(answer, null, 2) }))),
  ].filter(Boolean);
}

// Purge.

const NAMES = { url: 'Address, as readers see it', prefix: 'Address, as readers see it', host: 'Host', tag: 'Tag' };
const WHAT = { url: (name) => name, prefix: (name) => `everything below ${name}`, host: (name) => `everything of ${name}`, tag: (name) => `everything with the tag ${name}`, all: () => 'everything that is stored' };
let step = 'form';

export function openPurge(what = 'url', name = '') {
  byId('purge-what').value = what;
  byId('purge-name').value = name;
  told('purge-told');
  at('form');
  open('dialog-purge');
  if (name.includes('…')) say(byId('purge-told'), HIDDEN);
}

const purgeName = () => byId('purge-name').value.trim();
const hardness = () => document.querySelector('input[name=hardness]:checked').value === 'hard';

function at(next) {
  step = next;
  const what = byId('purge-what').value;
  byId('purge-form').hidden = step !== 'form';
  byId('purge-sure').hidden = step === 'form';
  byId('purge-name-label').hidden = what === 'all';
  byId('purge-name').required = what !== 'all';
  byId('purge-go').hidden = step === 'done';
  byId('purge-go').classList.toggle('danger', step === 'sure');
  say(byId('purge-name-words'), NAMES[what] ?? '');
  say(byId('purge-go'), step === 'sure' ? (hardness() ? 'Remove it' : 'Refresh it') : 'Purge …');
  say(byId('purge-back'), step === 'form' ? 'Cancel' : step === 'sure' ? 'Back' : 'Close');
}

byId('purge-what').addEventListener('change', () => at('form'));
byId('purge-back').addEventListener('click', () => (step === 'sure' ? at('form') : byId('dialog-purge').close()));
byId('form-purge').addEventListener('submit', (event) => {
  event.preventDefault();
  const what = byId('purge-what').value;
  if (step === 'form') {
    const covered = el('b', {}, el('bdi', { text: plain(WHAT[what](purgeName()), 300) }));
    put(byId('purge-question'), hardness() ? 'Remove ' : 'Refresh ', covered, hardness() ? '? Readers wait for the origin until it has made it anew.' : '? Readers get the old copy until the new one is there.');
    told('purge-told');
    at('sure');
    byId('purge-go').focus();
  } else if (step === 'sure') {
    tried('purge-told', async () => {
      const { covered, variants, complete, spread } = await command('/purge', { ...(what === 'all' ? { all: true } : { [what]: purgeName() }), hard: hardness() });
      const number = variants === null || variants === undefined ? '' : ` ${complete ? '' : 'At least '}${count(variants)} stored ${variants === 1 ? 'response' : 'responses'}.`;
      const everywhere = spread ? (spread.everywhere ? ' It holds on every machine.' : ` It is not known to hold on every machine${spread.why ? `: ${plain(spread.why, 300)}` : ''}.`) : '';
      put(byId('purge-question'), el('b', { text: 'Done: ' }), el('bdi', { text: plain(covered, 300) }), `.${number}${everywhere}`);
      at('done');
      byId('purge-back').focus();
    });
  }
});

// Warm.

let watching;

export async function openWarm(site) {
  told('warm-told');
  put(byId('warm-progress'));
  open('dialog-warm');
  try {
    const { sites } = await ask('/status');
    const hosts = sites.filter(({ name }) => !site || name === site).flatMap(({ hosts }) => hosts);
    put(byId('warm-host'), ...hosts.map((host) => el('option', { value: host, text: plain(host, 100) })));
    byId('warm-go').disabled = hosts.length === 0;
    if (hosts.length === 0) say(byId('warm-told'), 'The configuration names no host whose sitemap could be read: use seawall warm --host.');
    watch();
  } catch (error) {
    told('warm-told', error);
  }
}

byId('form-warm').addEventListener('submit', (event) => {
  event.preventDefault();
  tried('warm-told', async () => {
    await command('/warm', { host: byId('warm-host').value });
    watch();
  });
});
byId('dialog-warm').addEventListener('close', () => clearTimeout(watching));

async function watch() {
  clearTimeout(watching);
  try {
    const { host, pages, done, running, results, told: words } = await ask('/warm');
    const box = byId('warm-progress');
    byId('warm-go').disabled = running;
    if (!host) return;
    put(box,
      el('p', {}, el('b', {}, el('bdi', { text: plain(host, 100) })), running ? (pages > 0 ? `: ${count(done)} of ${count(pages)} pages` : ': reading the sitemap') : `: done, ${count(done)} of ${count(pages)} pages`),
      pages > 0 ? el('progress', { max: pages, value: done, 'aria-label': 'Pages that were fetched' }) : null,
      el('ul', { class: 'results' }, ...results.map(({ name, requests }) => el('li', {}, el('b', { text: count(requests) }), ' ', el('bdi', { text: plain(name, 120) })))),
      words ? el('p', { class: 'fact' }, el('bdi', { text: plain(words, 400) })) : null);
    if (running && byId('dialog-warm').open) watching = setTimeout(watch, 1000);
  } catch (error) {
    told('warm-told', error);
  }
}
