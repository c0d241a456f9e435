// The dashboard: what is shown of which site and time, and when it is asked for.

import { Charts, named, spark, summed } from './charts.js';
import { askForToken, openExplain, openPurge, openWarm, whenSignedIn } from './commands.js';
import { byId, el, say } from './dom.js';
import { Live, alarms, cluster, now, ratio, sums } from './panels.js';
import { ask, listen, signOut, standing } from './server.js';
import { plain } from './words.js';

// Sums are asked for so often, in milliseconds; a day or a week as well.
const SUMS = 5_000;
const SERIES = 60_000;
// Requests that are listed at the start.
const LISTED = 100;

const charts = new Charts();
const live = new Live();
let columns = [];
let seen;
let moment;
let site = '';
let span = 'hour';
let signedIn = false;
let started = false;

const PULSE = { waiting: 'Connecting', live: 'Live', polling: 'Every 5 s', lost: 'No connection' };
function pulse(state) {
  byId('pulse').dataset.state = state;
  say(byId('pulse'), PULSE[state]);
}

function stands(state) {
  // What was true of the last second is so no longer.
  if (state !== 'live') moment = undefined;
  pulse(state);
}

function showRatio() {
  ratio(summed(charts.rows), charts.stretch);
}

async function series() {
  const [asked, of] = [span, site];
  const answer = await ask('/series', { span, site });
  if (asked !== span || of !== site) return;
  columns = answer.columns;
  charts.show(answer, span);
  showRatio();
  if (!moment) showNow();
}

async function totals() {
  const of = site;
  const answer = await ask('/seen', { site });
  if (of !== site) return;
  seen = answer;
  charts.marks(seen.outages, seen.purges, seen.since);
  showRatio();
  sums(seen);
  alarms(moment, seen);
  choices();
}

// `null` is the answer of a server that stands alone.
const machines = async () => cluster(await ask('/cluster'));

async function recent() {
  const { requests } = await ask('/recent', { after: live.last, limit: LISTED, where: '' });
  live.add(requests.slice(-LISTED).filter(mine));
}

const mine = (request) => !site || request.site === site;

function choices() {
  const select = byId('site');
  byId('site-choice').hidden = seen.sites.length < 2;
  const known = [...select.options].slice(1).map(({ value }) => value);
  if (JSON.stringify(known) === JSON.stringify(seen.sites)) return;
  while (select.options.length > 1) select.options[1].remove();
  select.append(...seen.sites.map((name) => el('option', { value: name, text: plain(name, 60) })));
  select.value = site;
}

// The last ten seconds, for a rate that does not jump.
let last = [];
function showNow() {
  const some = (last.length > 0 ? last : charts.rows.filter(({ requests }) => requests !== undefined).slice(-10));
  const sum = summed(some);
  const seconds = Math.max(1, last.length > 0 ? last.length : some.reduce((all, row) => all + charts.secondsOf(row), 0));
  const mean = Object.fromEntries(Object.entries(sum).map(([name, value]) => [name, value / seconds]));
  now({ last: some.at(-1) ?? sum, mean }, moment);
  if (span === 'hour') spark(byId('spark'), charts.rows);
}

const COLUMNS = ['requests', 'hits', 'stale', 'misses', 'passes', 'server_errors', 'client_errors', 'bytes', 'hit_bytes', 'origin_requests', 'origin_failures', 'origin_micros', 'p50_micros', 'p99_micros'];

function hear(told) {
  moment = told;
  const values = site ? told.sites.find(([name]) => name === site)?.[1] ?? COLUMNS.map(() => 0) : told.total;
  const row = named(columns.length > 0 ? columns : COLUMNS, values, told.at - 1);
  last = [...last, row].slice(-10);
  charts.add(row);
  showRatio();
  showNow();
  alarms(told, seen);
  live.add(told.recent.filter(mine));
}

const quietly = (act) => () => act().catch(() => {});

async function start() {
  if (started) return;
  started = true;
  await Promise.all([series(), totals(), recent(), machines()]).catch(() => pulse('lost'));
  setInterval(() => { if (!document.hidden) { quietly(totals)(); quietly(machines)(); } }, SUMS);
  setInterval(() => { if (!document.hidden && span !== 'hour') quietly(series)(); }, SERIES);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) { quietly(totals)(); quietly(machines)(); quietly(series)(); } });
  listen({ moment: hear, state: stands, fallback: async () => { await Promise.all([totals(), recent(), span === 'hour' ? series() : undefined]); } });
}

async function stand() {
  try {
    const { signedIn: has, reads } = await standing();
    signedIn = has;
    say(byId('sign'), signedIn ? 'Sign out' : 'Sign in');
    byId('gate').hidden = reads;
    byId('shown').hidden = !reads;
    for (const id of ['open-explain', 'open-purge', 'open-warm', 'spans', 'pulse']) byId(id).hidden = !reads;
    if (reads) await start();
  } catch {
    pulse('lost');
    setTimeout(stand, SUMS);
  }
}

byId('site').addEventListener('change', ({ target }) => {
  site = target.value;
  last = [];
  live.clear();
  quietly(series)();
  quietly(totals)();
});
for (const choice of document.querySelectorAll('input[name=span]')) {
  choice.addEventListener('change', () => {
    span = choice.value;
    quietly(series)();
  });
}
byId('open-explain').addEventListener('click', () => openExplain());
byId('open-purge').addEventListener('click', () => openPurge());
byId('open-warm').addEventListener('click', () => openWarm(site));
byId('gate-sign').addEventListener('click', () => askForToken());
byId('sign').addEventListener('click', async () => {
  if (!signedIn) {
    askForToken();
    return;
  }
  await signOut().catch(() => {});
  location.reload();
});
whenSignedIn(stand);
document.addEventListener('click', ({ target }) => {
  const button = target.closest?.('[data-explain], [data-purge]');
  if (button?.dataset.explain) openExplain(button.dataset.explain);
  else if (button?.dataset.purge) openPurge('url', button.dataset.purge);
});
stand();
