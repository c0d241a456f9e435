// The panels: each shows a part of what was seen. Names come from strangers, and are shown as text.

import { byId, el, put, rows, say } from './dom.js';
import { at, atSecond, bytes, count, exactly, fully, kind, lasted, onDay, percent, plain, rate, result, rule, time } from './words.js';

const SHOWN = 10;
const LIVE_MAX = 200;

// What readers got, in the order of the bar, with the columns of a row.
export const MIX = [
  { name: 'hits', words: 'Hit', of: (row) => Math.max(0, row.hits - row.stale) },
  { name: 'stale', words: 'Stale copy', of: (row) => row.stale },
  { name: 'misses', words: 'Miss', of: (row) => row.misses },
  { name: 'passes', words: 'Passed', of: (row) => row.passes },
];

const address = (url, length = 120) => {
  const text = plain(url, length);
  const start = /^https?:\/\/[^/?#]*/.exec(text)?.[0] ?? '';
  return el('bdi', { class: 'address', title: plain(url, 1000) }, el('span', { class: 'host', text: start.replace(/^https?:\/\//, '') }), el('span', { text: text.slice(start.length) }));
};
const code = (text, length) => el('code', {}, el('bdi', { text: plain(text, length) }));
/** A text of Seawall's own, in which what is between grave accents is to be typed. */
const prose = (text) => plain(text, 400).split('`').map((part, at) => (at % 2 ? el('code', { text: part }) : part));
function tell(node, text) {
  if (node.dataset.told !== text) put(node, ...prose(text));
  node.dataset.told = text;
}
const when = (ms, words = at(ms)) => el('time', { datetime: new Date(ms).toISOString(), title: fully(ms), text: words });
const explain = (url, words = 'Explain') => el('button', { type: 'button', class: 'small', 'data-explain': url, 'aria-label': `${words} ${plain(url, 100)}`, text: words });
const purge = (url) => el('button', { type: 'button', class: 'small', 'data-purge': url, 'aria-label': `Purge ${plain(url, 100)}`, text: 'Purge' });
const siteOf = (seen, name) => (seen.sites.length > 1 && !seen.site && name ? el('span', { class: 'tag' }, el('bdi', { text: plain(name, 60) })) : null);
/** The name of a site in a sentence: the only one may have none of its own. */
const nameOf = (seen, name) => (seen?.sites.length === 1 && name === 'default' ? 'this site' : plain(name, 80));

/** Shows what of the answers is about the time that is chosen: `sum` are the sums of the columns, `words` what it is called. */
export function ratio(sum, words) {
  say(byId('ratio-requests'), percent(sum.hits, sum.requests));
  say(byId('ratio-bytes'), percent(sum.hit_bytes, sum.bytes));
  say(byId('ratio-foot'), sum.requests > 0 ? `${count(sum.requests)} requests and ${bytes(sum.bytes)} in the last ${words}` : `No request in the last ${words}`);
  const part = (name, words, number) => ({ name, words, number, share: percent(number, sum.requests) });
  const parts = MIX.map(({ name, words, of }) => part(name, words, of(sum)));
  const rest = sum.requests - parts.reduce((all, { number }) => all + number, 0);
  if (rest > 0) parts.push(part('others', 'Other', rest));
  rows(byId('mix'), parts.filter(({ number }) => number > 0), ({ name }) => name, ({ name }) => {
    const node = el('i', { class: name });
    return { node, show: ({ number }) => { node.style.flexGrow = number; } };
  }, '');
  rows(byId('mix-legend'), parts, ({ name }) => name, ({ name, words }) => {
    const figure = el('b');
    return { node: el('li', { class: name }, el('i', { 'aria-hidden': 'true' }), `${words} `, figure), show: ({ share }) => say(figure, share) };
  }, '');
}

/** Shows what happens right now, as columns of the last second and the mean of the last ten. */
export function now({ last, mean }, moment) {
  say(byId('now-rate'), rate(mean.requests));
  say(byId('now-origin'), `${rate(mean.origin_requests)}/s`);
  say(byId('now-busy'), rate(mean.origin_micros / 1e6));
  if (!moment) return;
  say(byId('now-waiting'), count(moment.waiting));
  say(byId('now-connections'), count(moment.connections));
  byId('now-waiting').classList.toggle('warn', moment.waiting > 0 && last.origin_requests === 0);
}

/** Shows what stands in the way of readers: alerts that stand, and origins that cannot be reached. */
export function alarms(moment, seen) {
  const since = new Map((seen?.outages ?? []).filter(({ until }) => !until).map(({ site, from }) => [site, from]));
  const { alerts, down } = moment ?? { alerts: seen.alerts, down: [...since.keys()] };
  const stand = alerts.filter(({ until }) => !until);
  const told = new Set(stand.filter(({ name }) => name === 'origin-down').map(({ about }) => about));
  const items = [
    ...stand.map(({ name, about, text, from, right_since: right }) => ({ key: `${name} ${about}`, from, right, words: plain(text) })),
    ...down.filter((site) => !told.has(site)).map((site) => ({ key: `down ${site}`, from: since.get(site), words: `The origin of ${nameOf(seen, site)} cannot be reached. What is stored is served.` })),
  ];
  rows(byId('alarms'), items, ({ key }) => key, () => {
    const [mark, again, text, time] = [el('span', { class: 'mark', 'aria-hidden': 'true' }), el('b'), el('bdi'), el('span', { class: 'since' })];
    const node = el('p', { class: 'alarm' }, mark, el('span', {}, again, ' ', text, ' ', time));
    return {
      node,
      show: ({ words, from, right }) => {
        node.classList.toggle('right', Boolean(right));
        say(mark, right ? '✓' : '!');
        say(again, right ? `Right again since ${exactly(right)}. It was:` : '');
        say(text, words);
        say(time, right ? `Began at ${exactly(from)}. It is over when all stays right for five minutes, or as long as clear_after says.` : from ? `since ${exactly(from)} (${lasted(Date.now() - from)})` : '');
      },
    };
  }, '');
}

/** Shows the machines of the cluster; nothing where there is none. */
export function cluster(state) {
  byId('cluster').hidden = !state;
  if (!state) return;
  const { machine, leased, why, in_doubt_ms: doubt, pending, name_is_taken: taken, machines, tier } = state;
  const lease = leased ? `${plain(machine, 64)} has a lease: purges of all machines hold here.`
    : `${plain(machine, 64)} has had no lease for ${lasted(doubt)}${why ? ` (${plain(why, 300)})` : ''}: it validates what it has stored before it shows it.`;
  const told = pending > 0 ? ` ${count(pending)} purges are not known to hold everywhere.` : '';
  say(byId('cluster-lease'), `${lease}${told}${taken ? ' Another machine has the same name.' : ''}`);
  byId('cluster-lease').classList.toggle('bad', !leased || taken);
  sharedTier(tier);
  rows(byId('machines'), machines, ({ name }) => name, ({ name }) => {
    const cells = ['', '', 'n', 'n'].map((kind) => el('td', { class: kind }));
    return {
      node: el('tr', {}, el('th', { scope: 'row' }, el('bdi', { text: plain(name, 64) })), ...cells),
      show: (now) => {
        const seen = now.name === machine ? 'this machine' : `${time(1000 * now.seen_ms)} ago`;
        [plain(now.version, 40), now.leased ? 'yes' : 'no', now.behind ?? 'unknown', seen].forEach((text, at) => say(cells[at], String(text)));
        cells[1].classList.toggle('bad', !now.leased);
      },
    };
  }, 'The server has not answered yet.');
}

/** Shows what the machines share of what they store; nothing where they share none. */
function sharedTier(tier) {
  byId('cluster-tier').hidden = !tier;
  if (!tier) return;
  const { place, hits, misses, written, refused, open, why } = tier;
  const found = `${count(hits)} pages were found there, ${count(misses)} were not, ${count(written)} were written${refused > 0 ? `, ${count(refused)} were refused` : ''}.`;
  const alone = open ? ` It is left alone for a while: ${why ? plain(why, 300) : 'it was too slow, or failed'}.` : '';
  say(byId('cluster-tier'), `Shared tier in ${plain(place, 120)}: ${found}${alone}`);
  byId('cluster-tier').classList.toggle('warn', open);
}

/** Shows everything that is summed up since counting began. */
export function sums(seen) {
  const { totals } = seen;
  const hasSome = totals.requests > 0;
  say(byId('saved-time'), hasSome ? time(totals.saved_micros) : '–');
  say(byId('saved-bytes'), hasSome ? bytes(totals.hit_bytes) : '–');
  say(byId('saved-requests'), hasSome ? count(totals.hits) : '–');
  say(byId('saved-foot'), seen.since ? `since ${onDay(seen.since)}` : '');
  say(byId('counted'), seen.since ? `Counted since ${onDay(seen.since)}, ${at(seen.since)}: ${count(totals.requests)} requests. Counting takes ${bytes(seen.memory[0])} of ${bytes(seen.memory[1])} of memory.` : 'Nothing has been counted yet.');
  cost(seen);
  reasons(seen);
  cookies(seen);
  pages(seen);
  events(seen);
  bars(byId('agents'), seen.agents, 'No program has asked yet.');
  bars(byId('referrers'), seen.referrers, 'Nobody has come from another site yet.');
  rows(byId('latencies'), seen.latencies.filter(({ count }) => count > 0), ({ name }) => name, ({ name }) => {
    const cells = [0, 0, 0].map(() => el('td', { class: 'n' }));
    return { node: el('tr', {}, el('th', { scope: 'row', text: result(name) }), ...cells), show: (line) => [line.p50, line.p95, line.p99].forEach((micros, at) => say(cells[at], time(micros))) };
  }, 'Nothing was answered yet.');
  rows(byId('classes'), seen.by_class.filter(({ requests }) => requests > 0), ({ name }) => name, ({ name }) => {
    const cells = [0, 0, 0].map(() => el('td', { class: 'n' }));
    return { node: el('tr', {}, el('th', { scope: 'row', text: kind(name) }), ...cells), show: (line) => [count(line.requests), bytes(line.bytes), time(line.origin_micros)].forEach((text, at) => say(cells[at], text)) };
  }, 'Nothing was answered yet.');
}

/** The one reason that costs most. */
function cost(seen) {
  const [worst] = seen.reasons;
  const box = byId('cost');
  const all = seen.totals.origin_micros;
  const shown = JSON.stringify([worst, seen.site]);
  if (box.shown === shown) return;
  box.shown = shown;
  if (!worst || all === 0) {
    put(box, el('p', { class: 'calm', text: seen.totals.requests > 0 ? 'Nothing: the origin was not asked.' : 'Nothing was counted yet.' }));
    return;
  }
  put(
    box,
    el('p', { class: 'figure' }, el('b', { text: percent(worst.origin_micros, all) }), el('span', { text: 'of its time' })),
    el('p', { class: 'what' }, label('Reason'), words(worst), ' ', siteOf(seen, worst.site)),
    worst.remedy ? el('p', { class: 'remedy' }, ...prose(worst.remedy)) : null,
    worst.example ? el('p', { class: 'example' }, label('For example'), address(worst.example, 80), ' ', explain(worst.example)) : null,
  );
}

const label = (text) => el('span', { class: 'label', text: `${text}: ` });

function words({ rule: name, detail }) {
  return el('span', {}, el('b', { text: rule(name) }), detail ? ': ' : null, detail ? code(detail, 80) : null);
}

function reasons(seen) {
  const all = seen.totals.origin_micros;
  const most = seen.reasons[0]?.origin_micros ?? 0;
  rows(byId('reasons'), seen.reasons.slice(0, SHOWN).map((reason) => ({ ...reason, all, most })), ({ site, rule, detail }) => JSON.stringify([site, rule, detail]), (reason) => {
    const share = el('b');
    const cost = el('span', { class: 'n' });
    const bar = el('i', { class: 'bar', 'aria-hidden': 'true' });
    const remedy = el('p', { class: 'remedy' });
    const example = el('p', { class: 'example' });
    const node = el('li', {},
      el('p', { class: 'what' }, label('Reason'), words(reason), ' ', siteOf(seen, reason.site), el('span', { class: 'sum' }, share, ' ', cost)),
      bar, el('div', { class: 'end' }, remedy, example));
    let shown;
    return {
      node,
      show: (now) => {
        say(share, percent(now.origin_micros, now.all));
        say(cost, `${time(now.origin_micros)} · ${count(now.requests)} requests`);
        bar.style.width = `${now.most > 0 ? (100 * now.origin_micros) / now.most : 0}%`;
        tell(remedy, now.remedy || 'Nothing to do: it is as it should be.');
        remedy.classList.toggle('calm', !now.remedy);
        if (shown !== now.example) put(example, ...(now.example ? [label('For example'), address(now.example), ' ', explain(now.example)] : []));
        shown = now.example;
      },
    };
  }, 'The origin was not asked yet.');
}

function cookies(seen) {
  rows(byId('cookies'), seen.cookies.slice(0, SHOWN), ({ site, name }) => JSON.stringify([site, name]), (cookie) => {
    const share = el('b');
    const facts = el('p', { class: 'fact' });
    const setBy = el('p', { class: 'fact' });
    const remedy = el('p', { class: 'remedy' });
    const known = cookie.known_for ? el('span', { class: 'known', text: plain(cookie.known_for, 80) }) : null;
    let shown;
    return {
      node: el('li', {}, el('p', { class: 'what' }, code(cookie.name, 80), ' ', known, ' ', siteOf(seen, cookie.site), el('span', { class: 'spacer' }), share), facts, setBy, remedy),
      show: (now) => {
        say(share, `${percent(now.share, 1)} of requests`);
        say(facts, [now.requests > 0 ? `kept out ${count(now.requests)} requests` : '', now.answers > 0 ? `came with ${count(now.answers)} responses` : '', `cost the origin ${time(now.origin_micros)}`].filter(Boolean).join(', '));
        if (shown !== now.set_by) put(setBy, ...(now.set_by ? ['Set by ', address(now.set_by, 80), ' ', explain(now.set_by)] : []));
        shown = now.set_by;
        setBy.hidden = !now.set_by;
        tell(remedy, now.remedy);
        remedy.hidden = !now.remedy;
      },
    };
  }, 'None: no cookie keeps a reader from the cache.');
}

function pages(seen) {
  const page = ({ url }) => url;
  rows(byId('missed'), seen.missed.slice(0, SHOWN), page, (line) => {
    const [why, requests, origin] = [el('td', { class: 'why' }), el('td', { class: 'n', 'data-label': 'asked' }), el('td', { class: 'n strong', 'data-label': 'origin time' })];
    return {
      node: el('tr', {}, el('th', { scope: 'row' }, address(line.url)), why, origin, requests, el('td', { class: 'commands' }, explain(line.url), purge(line.url))),
      show: (now) => { say(why, rule(now.rule)); say(requests, about(now)); say(origin, time(now.origin_micros)); },
    };
  }, 'No page had to be fetched yet.');
  rows(byId('hot'), seen.hot.slice(0, SHOWN), page, (line) => {
    const requests = el('td', { class: 'n' });
    return { node: el('tr', {}, el('th', { scope: 'row' }, address(line.url, 80)), requests), show: (now) => say(requests, about(now)) };
  }, 'No page was read yet.');
}

/** A count that may be too high: as far as that matters, it says so. */
const about = ({ requests, error }) => (error > requests / 20 ? `≤ ${count(requests)}` : count(requests));

function bars(box, items, nothing) {
  const most = items[0]?.requests ?? 0;
  rows(box, items.slice(0, SHOWN).map((item) => ({ ...item, most })), ({ name }) => name, ({ name }) => {
    const [bar, number] = [el('i', { class: 'bar', 'aria-hidden': 'true' }), el('span', { class: 'n' })];
    return {
      node: el('li', {}, el('bdi', { text: plain(name, 60), title: plain(name, 1000) }), number, bar),
      show: (now) => { say(number, about(now)); bar.style.width = `${now.most > 0 ? (100 * now.requests) / now.most : 0}%`; },
    };
  }, nothing);
}

const done = (hard) => (hard ? 'removed' : 'refreshed');

function events(seen) {
  const show = (id, items, keyOf, make, nothing) => rows(byId(id), items.slice(0, 30), keyOf, (item) => {
    const node = el('li');
    let shown;
    return { node, show: (now) => { const text = JSON.stringify(now); if (text !== shown || now.until === null) put(node, ...make(now)); shown = text; } };
  }, nothing);
  show('outages', seen.outages, ({ site, address, from }) => JSON.stringify([site, address, from]), ({ site, address, from, until }) => [
    el('p', { class: 'what' }, when(from, exactly(from)), ' – ', until ? when(until, exactly(until, from)) : el('b', { class: 'bad', text: 'now' }), el('span', { class: 'spacer' }), el('span', { class: 'n', text: lasted((until ?? Date.now()) - from) })),
    el('p', { class: 'fact' }, el('bdi', { text: nameOf(seen, site) }), address ? ' at ' : null, address ? code(address, 80) : null),
  ], 'Never, since counting began.');
  show('errors', seen.errors, ({ site, status, failure }) => JSON.stringify([site, status, failure]), ({ site, status, failure, requests, last, example }) => [
    el('p', { class: 'what' }, el('b', { class: status >= 500 ? 'bad' : '', text: String(status) }), ' ', failure ? rule(failure) : status >= 500 ? 'The origin answered so' : 'Not what was hoped for', el('span', { class: 'spacer' }), el('span', { class: 'n', text: count(requests) })),
    el('p', { class: 'fact' }, siteOf(seen, site), ' ', example ? address(example, 70) : null, ' ', 'last ', when(last)),
    status < 400 && failure ? el('p', { class: 'fact', text: 'Readers got a stored copy.' }) : null,
  ], 'None.');
  show('purges', seen.purges, (line) => JSON.stringify([line.at, line.by, line.covered]), ({ at: ms, site, by, covered, count: number, hard }) => [
    el('p', { class: 'what' }, el('bdi', { text: plain(covered, 200) }), el('span', { class: 'spacer' }), number === null || number === undefined ? null : el('span', { class: 'n', text: `${count(number)} ${number === 1 ? 'copy' : 'copies'} ${done(hard)}` })),
    el('p', { class: 'fact' }, when(ms, exactly(ms)), ' by ', el('bdi', { text: plain(by, 120) }), number === null || number === undefined ? `, ${done(hard)}` : '', ' ', siteOf(seen, site)),
  ], 'Nothing was purged.');
  show('alerts', seen.alerts, ({ name, about, from }) => JSON.stringify([name, about, from]), ({ about, text, from, until, right_since: right }) => [
    el('p', { class: 'what one' }, el('span', { class: until || right ? 'dot over' : 'dot', 'aria-hidden': 'true' }), el('bdi', { text: plain(text, 300) })),
    el('p', { class: 'fact' }, until ? 'Over: ' : right ? 'Right again, not over yet: ' : 'Stands: ', when(from, exactly(from)), ' – ', until ?? right ? when(until ?? right, exactly(until ?? right, from)) : 'now', about ? ', ' : '', el('bdi', { text: nameOf(seen, about) })),
  ], 'None stands, none stood.');
}

/** The list of requests that were not plain hits, the newest first. */
export class Live {
  #box = byId('live');
  #waiting = [];
  #last = 0;
  #lastAt = 0;
  #held = false;
  #find = '';

  constructor() {
    const hold = byId('live-hold');
    hold.addEventListener('click', () => {
      this.#held = !this.#held;
      hold.setAttribute('aria-pressed', String(this.#held));
      this.#words();
      if (!this.#held) this.#show();
    });
    byId('live-find').addEventListener('input', ({ target }) => {
      this.#find = target.value.trim().toLowerCase();
      for (const row of this.#box.children) this.#hide(row);
    });
    this.clear();
  }

  get last() { return this.#last; }

  clear() {
    this.#waiting = [];
    put(this.#box, el('tr', { class: 'nothing' }, el('td', { colspan: 9, text: 'None yet. Plain hits are not listed.' })));
  }

  add(requests) {
    const newest = requests.at(-1);
    // After a restart, numbers may begin anew.
    if (newest && newest.number < this.#last && newest.at > this.#lastAt) this.#last = 0;
    const fresh = requests.filter(({ number }) => number > this.#last);
    if (fresh.length === 0) return;
    this.#last = Math.max(...fresh.map(({ number }) => number));
    this.#lastAt = newest.at;
    this.#waiting = [...this.#waiting, ...fresh].slice(-LIVE_MAX);
    if (this.#held || this.#box.matches(':hover, :focus-within')) this.#words();
    else this.#show();
  }

  #words() {
    const waiting = this.#waiting.length;
    say(byId('live-hold'), this.#held ? (waiting > 0 ? `Go on (${waiting} new)` : 'Go on') : 'Hold');
  }

  #show() {
    this.#box.querySelector('.nothing')?.remove();
    this.#box.prepend(...this.#waiting.reverse().map((request) => this.#row(request)));
    this.#waiting = [];
    while (this.#box.children.length > LIVE_MAX) this.#box.lastChild.remove();
    this.#words();
  }

  #hide(row) {
    row.hidden = this.#find !== '' && !row.classList.contains('nothing') && !row.textContent.toLowerCase().includes(this.#find);
  }

  #row(request) {
    const { at: ms, result: name, rule: why, detail, status, method, scheme, host, path, origin_micros, micros, bytes: length, agent, complete, collapsed } = request;
    const url = `${scheme}://${host}${path}`;
    const row = el('tr', {},
      el('td', { class: 'first' }, when(ms, atSecond(ms))),
      el('td', { class: 'first' }, el('span', { class: `result ${Object.hasOwn(MIX_OF, name) ? MIX_OF[name] : 'others'}`, text: result(name) })),
      el('td', { class: 'why' }, why ? rule(why) : '', detail ? ' ' : null, detail ? code(detail, 60) : null, collapsed ? el('span', { class: 'fact', text: ' shared' }) : null),
      el('td', { class: `n first ${status >= 500 ? 'bad' : ''}`, text: String(status) }),
      el('th', { scope: 'row' }, method === 'GET' ? null : el('b', {}, el('bdi', { text: `${plain(method, 20)} ` })), address(url, 100)),
      el('td', { class: 'n first', 'data-label': 'origin', text: time(origin_micros) }),
      el('td', { class: 'n', 'data-label': 'total', text: time(micros) }),
      el('td', { class: 'n', text: `${bytes(length)}${complete ? '' : ' (broke off)'}` }),
      el('td', {}, el('bdi', { text: plain(agent, 40), title: plain(agent, 1000) })));
    this.#hide(row);
    return row;
  }
}

const MIX_OF = { hit: 'hits', updating: 'hits', stale: 'stale', revalidated: 'misses', expired: 'misses', miss: 'misses', bypass: 'passes' };
