// The charts: what happened when. Four, of the same time, with one line at the pointer through all of them.

import { MIX } from './panels.js';
import { byId, el, put } from './dom.js';
import { percent, rate, stretch, time } from './words.js';

const HEIGHT = 150;
// More points than a screen has are drawn as means.
const POINTS_MAX = 720;
// The seconds of each span that can be chosen.
const SPANS = { hour: 3_600, day: 86_400, week: 604_800 };
// A chart shows at least so many rows: of seconds, five minutes.
const ROWS_MIN = 300;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const see = (name, strength) => `color-mix(in srgb, ${colour(name)} ${strength}%, transparent)`;

/** Reads a series: rows as objects, each with its time. A row without values stays one: nothing ran then. */
export function read({ columns, rows, step, from }) {
  return rows.map((row, at) => named(columns, row, from + at * step));
}

export function named(columns, row, at) {
  if (!row) return { at };
  const values = { at };
  columns.forEach((name, place) => { values[name] = row[place]; });
  return values;
}

/** Leaves out what was before counting began, but for so much that a chart has a width. */
export function sinceBegun(rows) {
  const begun = rows.findIndex(({ requests }) => requests !== undefined);
  return rows.slice(Math.max(0, Math.min(begun < 0 ? rows.length : begun, rows.length - ROWS_MIN)));
}

/** Sums up the columns of rows; times that responses took are left out. */
export function summed(rows) {
  const sum = { requests: 0, hits: 0, stale: 0, misses: 0, passes: 0, server_errors: 0, client_errors: 0, bytes: 0, hit_bytes: 0, origin_requests: 0, origin_failures: 0, origin_micros: 0 };
  for (const row of rows) if (row.requests !== undefined) for (const name of Object.keys(sum)) sum[name] += row[name];
  return sum;
}

/** Adds a second to the row that it belongs to. */
function joined(row, second) {
  if (row.requests === undefined) return { ...second, at: row.at };
  const slower = (name) => Math.max(row[name], second[name]);
  return { ...summed([row, second]), at: row.at, p50_micros: slower('p50_micros'), p99_micros: slower('p99_micros') };
}

/** Makes fewer rows of many: sums for each second, and the slowest of the times. `secondsOf` says how many seconds a row has. */
function thinned(rows, secondsOf) {
  const each = Math.max(1, Math.ceil(rows.length / POINTS_MAX));
  const points = [];
  for (let start = 0; start < rows.length; start += each) {
    const some = rows.slice(start, start + each).filter(({ requests }) => requests !== undefined);
    if (some.length === 0) {
      points.push({ at: rows[start].at });
      continue;
    }
    const sum = summed(some);
    const seconds = some.reduce((all, row) => all + secondsOf(row), 0);
    const slowest = (name) => Math.max(...some.map((row) => row[name]));
    points.push({ ...sum, at: rows[start].at, seconds, p50_micros: slowest('p50_micros'), p99_micros: slowest('p99_micros') });
  }
  return points;
}

const orNull = (point, value) => (point.requests === undefined ? null : value(point));
const perSecond = (name) => (point) => point[name] / point.seconds;

// The lines of each chart. Stacked ones are drawn from the sum of all downwards.
const CHARTS = [
  {
    id: 'requests', show: (value) => `${rate(value)}/s`,
    lines: [...MIX.map(({ name, words, of }) => ({ colour: name, words, of: (point) => of(point) / point.seconds })), { colour: 'others', words: 'Other', of: (point) => Math.max(0, point.requests - MIX.reduce((all, { of }) => all + of(point), 0)) / point.seconds }],
    stacked: true,
  },
  {
    id: 'ratio', show: (value) => percent(value, 100), range: () => [0, 100], axis: (value) => `${value} %`,
    lines: [
      { colour: 'hits', words: 'of requests', of: (point) => (point.requests > 0 ? (100 * point.hits) / point.requests : null) },
      { colour: 'bytes', words: 'of bytes', of: (point) => (point.bytes > 0 ? (100 * point.hit_bytes) / point.bytes : null), dash: [5, 3] },
    ],
  },
  {
    id: 'origin', show: (value) => rate(value),
    lines: [
      { colour: 'misses', words: 'requests/s', of: perSecond('origin_requests'), fill: true },
      { colour: 'passes', words: 'at once', of: (point) => point.origin_micros / 1e6 / point.seconds },
      { colour: 'errors', words: 'failures/s', of: perSecond('origin_failures'), width: 2 },
    ],
  },
  {
    id: 'times', show: (value) => time(value * 1000), axis: (value) => time(value * 1000), log: true,
    lines: [
      { colour: 'hits', words: 'half within', of: (point) => (point.requests > 0 ? Math.max(point.p50_micros, 1) / 1000 : null) },
      { colour: 'misses', words: '99 % within', of: (point) => (point.requests > 0 ? Math.max(point.p99_micros, 1) / 1000 : null) },
    ],
  },
];

export class Charts {
  #plots = new Map();
  #rows = [];
  #step = 1;
  #span = 'hour';
  // The end of the last second that is counted, and when counting began.
  #until = 0;
  #since = 0;
  #outages = [];
  #purges = [];

  constructor() {
    // Colours are drawn, not styled: they have to be drawn again when light becomes dark.
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#again());
    new ResizeObserver(() => this.#resize()).observe(byId('chart-requests'));
  }

  get rows() { return this.#rows; }

  show(series, span) {
    this.#rows = sinceBegun(read(series));
    this.#step = series.step || 1;
    this.#span = span;
    this.#until = series.until;
    this.#draw();
  }

  /** Adds a second to what is shown. */
  add(second) {
    if (second.at < this.#until) return;
    const at = Math.floor(second.at / this.#step) * this.#step;
    const last = this.#rows.at(-1);
    this.#rows = last && last.at >= at ? [...this.#rows.slice(0, -1), joined(last, second)] : [...this.#rows, { ...second, at }].filter((row) => row.at > at - SPANS[this.#span]);
    this.#until = second.at + 1;
    if (second.at % Math.max(1, Math.ceil((this.#rows.length * this.#step) / POINTS_MAX)) === 0) this.#draw();
  }

  marks(outages, purges, since) {
    this.#outages = outages;
    this.#purges = purges;
    this.#since = since / 1000;
  }

  /** Returns how many seconds a row has: the last one may not be over. */
  secondsOf({ at }) { return Math.min(this.#step, Math.max(1, this.#until - at)); }

  /** Says which time is shown: the hour, day or week that was chosen, or the time since counting began if that is less. */
  get stretch() {
    const first = this.#rows.find(({ requests }) => requests !== undefined)?.at;
    if (first === undefined) return this.#span;
    const begun = this.#since > first && this.#since < first + this.#step ? this.#since : first;
    const [seconds, whole] = [this.#until - begun, SPANS[this.#span]];
    return seconds > whole - Math.max(2 * this.#step, whole / 60) ? this.#span : stretch(seconds);
  }

  #again() {
    for (const plot of this.#plots.values()) plot.destroy();
    this.#plots.clear();
    this.#draw();
  }

  #resize() {
    for (const [id, plot] of this.#plots) plot.setSize({ width: byId(`chart-${id}`).clientWidth, height: HEIGHT });
  }

  #draw() {
    const points = thinned(this.#rows, (row) => this.secondsOf(row));
    for (const chart of CHARTS) {
      const box = byId(`chart-${chart.id}`);
      const isEmpty = points.every(({ requests }) => !requests);
      box.classList.toggle('empty', isEmpty);
      box.setAttribute('role', 'img');
      box.setAttribute('aria-label', isEmpty ? 'Nothing happened in this time.' : this.#inWords(chart, points));
      this.#keys(chart);
      const data = [points.map(({ at }) => at), ...this.#values(chart, points)];
      const plot = this.#plots.get(chart.id);
      if (plot) plot.setData(data);
      else this.#plots.set(chart.id, new globalThis.uPlot(this.#options(chart, box), data, box));
    }
  }

  /** The values of each line. Those of a stack are added up, the sum of all comes first. */
  #values({ lines, stacked }, points) {
    const values = lines.map(({ of }) => points.map((point) => orNull(point, of)));
    // A line along the bottom would say that there is something to see.
    if (!stacked) return values.map((line, at) => (lines[at].colour === 'errors' && line.every((value) => !value) ? line.map(() => null) : line));
    for (let line = 1; line < values.length; line += 1) values[line] = values[line].map((value, at) => (value === null ? null : value + values[line - 1][at]));
    return values.reverse();
  }

  #keys({ id, lines }) {
    const box = byId(`keys-${id}`);
    if (box.childElementCount === 0) put(box, ...lines.map(({ colour: name, words }) => el('span', { class: name }, el('i', { 'aria-hidden': 'true' }), words)));
  }

  /** Says what a chart shows, for whoever does not see it. */
  #inWords({ lines, show }, points) {
    const said = lines.map(({ words, of }) => {
      const values = points.map((point) => orNull(point, of)).filter((value) => value !== null);
      return values.length > 0 ? `${words}: ${show(values.at(-1))} now, ${show(Math.min(...values))} at least, ${show(Math.max(...values))} at most` : `${words}: nothing`;
    });
    return `The last ${this.stretch}. ${said.join('. ')}.`;
  }

  #options({ id, lines, stacked, show, range, axis, log }, box) {
    const ink = colour('faint');
    const decades = log ? (plot, ticks) => ticks.map((value) => (isDecade(value) ? value : null)) : (plot, ticks) => ticks;
    const grid = { stroke: colour('line'), width: 1, filter: decades };
    const series = lines.map(({ colour: name, words, fill, dash, width }) => ({
      label: words, stroke: colour(name), width: width ?? (stacked ? 0 : 1.5), dash, points: { show: false }, spanGaps: false,
      fill: stacked ? colour(name) : fill ? see(name, 18) : undefined,
    }));
    if (stacked) series.reverse();
    const tip = el('p', { class: 'tip' });
    return {
      width: box.clientWidth || 400, height: HEIGHT, padding: [8, 18, 0, 0],
      cursor: { sync: { key: 'seawall' }, drag: { x: false, y: false }, points: { show: false }, y: false },
      legend: { show: false },
      scales: { x: { time: true }, y: log ? { distr: 3, range: (plot, low, high) => [10 ** Math.floor(Math.log10(Math.max(low ?? 0.1, 0.01))), 10 ** Math.ceil(Math.log10(Math.max(high ?? 1000, 1)))] } : range ? { range } : { range: (plot, low, high) => [0, Math.max(high ?? 0, 1) * 1.1] } },
      axes: [
        { stroke: ink, grid: { show: false }, ticks: { stroke: colour('line'), width: 1 }, size: 28, font: '11px system-ui', space: 60, values: (plot, ticks) => ticks.map((at) => this.#tick(at)) },
        { stroke: ink, grid, ticks: { show: false }, size: 52, font: '11px system-ui', space: log ? 22 : 30, filter: decades, values: (plot, ticks) => ticks.map((value) => (value === null ? '' : (axis ?? rate)(value))) },
      ],
      series: [{}, ...series],
      hooks: {
        init: [(plot) => plot.over.append(tip)],
        drawClear: [(plot) => this.#shade(plot)],
        setCursor: [(plot) => {
          const at = plot.cursor.idx;
          tip.hidden = at === null || at === undefined || plot.cursor.left < 0;
          if (tip.hidden) return;
          const data = stacked ? unstacked(plot.data.slice(1), at).reverse() : plot.data.slice(1).map((values) => values[at]);
          put(tip, el('b', { text: this.#moment(plot.data[0][at]) }), ...lines.map(({ colour: name, words }, line) => el('span', { class: name }, el('i'), `${words} ${data[line] === null || data[line] === undefined ? '–' : show(data[line])}`)));
          tip.classList.toggle('left', plot.cursor.left > plot.over.clientWidth / 2);
        }],
      },
    };
  }

  #tick(at) {
    const time = new Date(at * 1000);
    return this.#span === 'week' ? time.toLocaleDateString('en-GB', { weekday: 'short', day: 'numeric' }) : time.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
  }

  #moment(at) {
    const time = new Date(at * 1000);
    return this.#span === 'week' ? time.toLocaleString('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' }) : time.toLocaleTimeString('en-GB');
  }

  /** Behind the lines: when the origin was away, and when something was purged. */
  #shade(plot) {
    const { ctx, bbox } = plot;
    const clamp = (x) => Math.min(Math.max(x, bbox.left), bbox.left + bbox.width);
    const place = (ms) => clamp(plot.valToPos(ms / 1000, 'x', true));
    ctx.save();
    ctx.fillStyle = see('errors', 14);
    for (const { from, until } of this.#outages) {
      const [start, end] = [place(from), place(until ?? Date.now())];
      if (end > start) ctx.fillRect(start, bbox.top, Math.max(end - start, 2), bbox.height);
    }
    ctx.strokeStyle = colour('faint');
    ctx.setLineDash([2, 4]);
    for (const { at } of this.#purges) {
      const x = place(at);
      if (x <= bbox.left || x >= bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }
}

const isDecade = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6;
const unstacked = (data, at) => data.map((values, line) => (values[at] === null ? null : values[at] - (data[line + 1]?.[at] ?? 0)));

/** A small line of the last minutes, drawn as an SVG path. */
export function spark(box, rows) {
  const values = rows.slice(-120).map(({ requests }) => requests ?? 0);
  const most = Math.max(1, ...values);
  const SVG = 'http://www.w3.org/2000/svg';
  let svg = box.firstElementChild;
  if (!svg) {
    svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', '0 0 120 24');
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.append(document.createElementNS(SVG, 'path'));
    box.append(svg);
  }
  const start = 120 - values.length;
  const line = values.map((value, at) => `${start + at} ${(23 - (22 * value) / most).toFixed(1)}`).join('L');
  svg.firstChild.setAttribute('d', values.length > 1 ? `M${start} 24L${line}L119 24Z` : 'M0 23.5L120 23.5');
}

