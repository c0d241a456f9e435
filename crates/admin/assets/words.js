// Numbers, times and names as people read them.

const LENGTH_MAX = 300;

/** Shows what cannot be seen (control characters, marks that turn the direction of writing, what has no width) as its number, and cuts what is long. */
export function plain(text, length = LENGTH_MAX) {
  const whole = String(text ?? '');
  const cut = [...whole.slice(0, length * 2)].slice(0, length).join('');
  const seen = cut.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\u115f\u1160\u2800\u3164\ufe00-\ufe0f\uffa0]/gu, (mark) => `\\u{${mark.codePointAt(0).toString(16)}}`);
  return cut.length < whole.length ? `${seen} … (${count(whole.length)} characters)` : seen;
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** 1,234 · 12.3 k · 4.5 M */
export function count(number) {
  if (number < 10_000) return whole.format(number);
  if (number < 1_000_000) return `${figures(number / 1_000)} k`;
  return number < 1e9 ? `${figures(number / 1e6)} M` : `${figures(number / 1e9)} G`;
}

/** Three figures: 1.23, 12.3, 123. Rounds down, so that 999.9 is not 1000. */
function figures(number) {
  const digits = number < 10 ? 2 : number < 100 ? 1 : 0;
  const factor = 10 ** digits;
  return (Math.floor(number * factor) / factor).toFixed(digits).replace(/\.0+$/, '');
}

/** A rate for each second. */
export const rate = (number) => (number >= 100 || number === 0 ? count(number) : number >= 10 ? number.toFixed(0) : number.toFixed(1));

export function bytes(number) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  for (; number >= 1024 && unit < units.length - 1; unit += 1) number /= 1024;
  return unit === 0 ? `${whole.format(number)} B` : `${figures(number)} ${units[unit]}`;
}

/** A time: 41 µs · 3.2 ms · 1.4 s · 12 min · 9.3 h · 4.1 days */
export function time(micros) {
  if (micros === null || micros === undefined) return '–';
  if (micros < 1_000) return `${whole.format(micros)} µs`;
  if (micros < 1_000_000) return `${figures(micros / 1_000)} ms`;
  const seconds = micros / 1e6;
  if (seconds < 100) return `${figures(seconds)} s`;
  if (seconds < 100 * 60) return `${figures(seconds / 60)} min`;
  return seconds < 48 * 3600 ? `${figures(seconds / 3600)} h` : `${figures(seconds / 86400)} days`;
}

/**
 * A share, to the nearest tenth; half a tenth is rounded up. Less than all is never 100 %, and more than nothing never 0 %. `seawall top` and `seawall status`
 * have the same rule, so that one share is the same figure wherever it stands. Shares of a whole may so add up to 99.9 % or 100.1 %.
 */
export function percent(part, all) {
  if (!(all > 0)) return '–';
  if (part === 0) return '0 %';
  if (part >= all) return '100 %';
  const tenths = (1000 * part) / all;
  return tenths < 1 ? '< 0.1 %' : tenths > 999 ? '> 99.9 %' : `${(Math.round(tenths) / 10).toFixed(1)} %`;
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const minute = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short' });
const date = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

export const atSecond = (ms) => clock.format(ms);
export const fully = (ms) => new Date(ms).toISOString().replace('T', ' ').replace('.000Z', ' UTC');

/** A point in time, as short as today allows. */
export function at(ms, now = Date.now()) {
  return new Date(ms).toDateString() === new Date(now).toDateString() ? minute.format(ms) : `${day.format(ms)}, ${minute.format(ms)}`;
}

/** A point in time with its seconds, and with its day if that is not today. */
export function exactly(ms, now = Date.now()) {
  return new Date(ms).toDateString() === new Date(now).toDateString() ? clock.format(ms) : `${day.format(ms)}, ${clock.format(ms)}`;
}

export const onDay = (ms) => date.format(ms);

/** A length of time as it follows “the last”: 40 seconds · 7 minutes · 5 hours · 3 days */
export function stretch(seconds) {
  const units = [['day', 86_400], ['hour', 3_600], ['minute', 60], ['second', 1]];
  const [unit, length] = units.find(([, each]) => seconds >= 2 * each) ?? units.at(-1);
  const number = Math.max(1, Math.floor(seconds / length));
  return `${number} ${unit}${number === 1 ? '' : 's'}`;
}

export function lasted(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  return seconds < 36 * 3600 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86400)} days`;
}

// The rules, as `Cache-Status` names them, in words. What is not here has its own name, with the names of software in it as they are written.
const RULES = {
  cold: 'Nothing was stored yet',
  expired: 'The stored copy had expired',
  revalidated: 'The stored copy had to be confirmed',
  'vary-miss': 'Another variant was stored, not this one',
  collapsed: 'It shared the fetch of another request',
  request: 'The reader’s program wants a new copy',
  'only-if-cached': 'Only a stored copy was wanted',
  target: 'An address that cannot be understood',
  'session-cookie': 'The reader has a session cookie',
  'php-session': 'The reader has a PHP session',
  'wordpress-user-cookie': 'The reader is signed in to WordPress',
  'woocommerce-session': 'The reader has a WooCommerce session',
  'woocommerce-cart': 'The reader has something in the cart',
  'ghost-member-cookie': 'A member of the Ghost is signed in',
  purged: 'The stored copy had been purged',
  'in-doubt': 'Another machine may have purged the stored copy',
  'no-cache': 'The origin wants to be asked each time',
  'set-cookie': 'The page sets a cookie',
  cookie: 'The reader has a cookie',
  authorization: 'The request carries credentials',
  'no-store': 'The origin forbids to store it',
  private: 'The origin says it is for one reader',
  'private-fields': 'Some fields are for one reader',
  'vary-star': 'The origin says that it always varies',
  unfresh: 'The origin does not say for how long it is fresh',
  status: 'A status that is not stored',
  method: 'Not a request to read (POST and others)',
  upgrade: 'A connection that changes its protocol',
  content: 'A request with content',
  route: 'A part of the site that is not cached',
  direct: 'A load test that goes past the cache',
  'request-no-store': 'The reader’s program forbids to store it',
  'request-no-cache': 'The reader’s program wants a new copy',
  'request-max-age': 'The reader’s program wants a younger copy',
  'request-min-fresh': 'The reader’s program wants a fresher copy',
  ranged: 'A part of something was asked for',
  partial: 'The answer is a part of something',
  'must-understand': 'A status that Seawall does not know',
  'not-modified': 'The reader had it already',
  'redirect-loop': 'The page redirects to itself',
  'just-purged': 'Not found, just after a purge',
  'too-large': 'Too large to be stored',
  'two-visitors-differ': 'Two readers were given different pages',
  'two-visitor-proof': 'Being proved the same for two readers',
  connection_refused: 'The origin refuses connections',
  connection_timeout: 'The origin cannot be reached in time',
  connection_terminated: 'The origin closes the connection',
  connection_read_timeout: 'The origin does not answer in time',
  http_response_timeout: 'The origin does not answer in time',
  http_request_error: 'The request was wrong',
  http_response_incomplete: 'The origin’s answer broke off',
  http_protocol_error: 'The origin does not speak HTTP',
  destination_unavailable: 'The origin is away',
  destination_not_found: 'No site of that name',
  dns_error: 'The origin’s name cannot be resolved',
};

const SOFTWARE = { wordpress: 'WordPress', woocommerce: 'WooCommerce', ghost: 'Ghost', php: 'PHP', api: 'API', rest: 'REST', edd: 'EDD', jetpack: 'Jetpack', supercache: 'WP Super Cache', cron: 'cron', http: 'HTTP', dns: 'DNS', tls: 'TLS' };
const spelt = (word) => (Object.hasOwn(SOFTWARE, word) ? SOFTWARE[word] : word);

/** A rule in words. */
export function rule(name) {
  if (Object.hasOwn(RULES, name)) return RULES[name];
  if (!name) return 'No rule';
  const words = plain(name, 60).split(/[-_]/).map(spelt).join(' ');
  return words[0].toUpperCase() + words.slice(1);
}

const RESULTS = {
  hit: 'Hit', updating: 'Hit, being refreshed', stale: 'Stale copy', revalidated: 'Confirmed', expired: 'Refetched', miss: 'Miss', bypass: 'Passed', refused: 'Refused', none: 'Not asked for',
};
export const result = (name) => (Object.hasOwn(RESULTS, name) ? RESULTS[name] : plain(name, 40));

const CLASSES = { document: 'Pages', feed: 'Feeds', script: 'Scripts', style: 'Styles, fonts', picture: 'Pictures', media: 'Sound, video', api: 'Data (API)', other: 'Other' };
export const kind = (name) => (Object.hasOwn(CLASSES, name) ? CLASSES[name] : plain(name, 40));
