// seed.mjs APP DIR: starts the Ghost in APP, fills a blog through its own admin API, stops it, and leaves content, config.json and blog.json in DIR.
//
// The blog is small and each thing in it is there for a test: posts of all visibilities with a marker in what is not for all, tags, authors, members
// free and paid of two tiers, comments, pictures.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { createRequire } from 'node:module';

const [app, dir] = process.argv.slice(2).map((name) => path.resolve(name));
const here = import.meta.dirname;
const owner = { name: 'Olga Owner', email: 'owner@blog.example', password: 'tide-table-and-anchor-9271' };
const port = await new Promise((found) => {
  const server = net.createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => found(port));
  });
});
const url = `http://127.0.0.1:${port}`;

// ---------------------------------------------------------------------------------------------------------------------- starting

const config = {
  url,
  server: { host: '127.0.0.1', port, shutdownTimeout: 1000 },
  database: { client: 'better-sqlite3', connection: { filename: `${dir}/content/data/ghost.db` }, useNullAsDefault: true },
  paths: { contentPath: `${dir}/content/` },
  mail: { from: 'noreply@blog.example', transport: 'stub' },
  privacy: { useUpdateCheck: false, useGravatar: false, useRpcPing: false, useIndexNow: false },
  // Without this, the owner signs in with a code out of a mail, and webhooks to this machine are dropped.
  security: { staffDeviceVerification: false, allowWebhookInternalIPs: true },
  // Tests sign in more often than people do, always from one address.
  spam: Object.fromEntries(['user_login', 'member_login', 'content_api_key', 'private_block', 'global_block'].map((name) => [name, { freeRetries: 100000 }])),
  logging: { level: 'warn', transports: ['file'], path: `${dir}/content/logs/`, rotation: { enabled: false } },
};
for (const name of ['adapters', 'data', 'files', 'images', 'logs', 'media', 'public', 'settings', 'themes']) fs.mkdirSync(`${dir}/content/${name}`, { recursive: true });
fs.cpSync(`${app}/content/themes`, `${dir}/content/themes`, { recursive: true, dereference: true });
fs.writeFileSync(`${dir}/config.json`, JSON.stringify(config, null, 1));
fs.writeFileSync(`${dir}/config.production.json`, JSON.stringify(config));
fs.symlinkSync(app, `${dir}/current`);
const ghost = spawn(process.execPath, ['--require', `${here}/loopback.cjs`, 'current/index.js'], {
  cwd: dir,
  env: { ...process.env, NODE_ENV: 'production', NODE_COMPILE_CACHE: `${path.dirname(app)}/compiled` },
  stdio: ['pipe', fs.openSync(`${dir}/log`, 'a'), fs.openSync(`${dir}/log`, 'a')],
});
ghost.on('exit', (code) => {
  if (code) fail(`Ghost ended with ${code}`);
});

function fail(why) {
  console.error(`ghost: ${why}\n${fs.readFileSync(`${dir}/log`, 'utf8').slice(-2000)}`);
  process.exit(1);
}

// ---------------------------------------------------------------------------------------------------------------------------- asking

let session;
async function api(method, where, body) {
  const headers = { Origin: url, 'Accept-Version': 'v6.0', ...(session && { Cookie: session }) };
  if (body && !(body instanceof FormData)) {
    headers['Content-Type'] = 'application/json';
    body = JSON.stringify(body);
  }
  const response = await fetch(`${url}/ghost/api/admin/${where}`, { method, headers, body });
  const text = await response.text();
  if (!response.ok) fail(`${method} ${where}: ${response.status} ${text.slice(0, 500)}`);
  session ??= where === 'session/' ? response.headers.getSetCookie().map((line) => line.split(';')[0]).join('; ') : undefined;
  return response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text;
}

for (let tries = 0; ; tries++) {
  const status = await fetch(`${url}/ghost/api/admin/site/`).then((response) => response.status, () => 0);
  if (status === 200) break;
  if (tries > 600) fail(`Ghost does not answer: ${status}`);
  await new Promise((later) => setTimeout(later, 100));
}

// --------------------------------------------------------------------------------------------------------------------- what is in it

await api('POST', 'authentication/setup/', { setup: [{ ...owner, blogTitle: 'The Sea Wall' }] });
await api('POST', 'session/', { username: owner.email, password: owner.password });
const { integrations: [integration] } = await api('POST', 'integrations/?include=api_keys', { integrations: [{ name: 'Tests' }] });
await api('PUT', 'settings/', {
  settings: [
    { key: 'comments_enabled', value: 'all' },
    { key: 'cover_image', value: null }, // Ghost's own is on another machine
    { key: 'navigation', value: JSON.stringify([{ label: 'Home', url: '/' }, { label: 'Tides', url: '/tag/tides/' }]) },
  ],
});
for (const kind of ['posts', 'pages']) for (const one of (await api('GET', `${kind}/?limit=100&fields=id`))[kind]) await api('DELETE', `${kind}/${one.id}/`);

// Invited authors would need a mailbox; the importer does not.
const authors = [{ name: 'Ada Author', slug: 'ada' }, { name: 'Ben Author', slug: 'ben' }];
const form = new FormData();
const role = 'a'.repeat(24);
const id = (letter, n) => letter.repeat(22) + String(n).padStart(2, '0');
form.append('importfile', new Blob([JSON.stringify({ db: [{
  meta: { exported_on: 1, version: '6.0.0' },
  data: {
    users: authors.map((author, n) => ({ id: id('b', n), email: `${author.slug}@blog.example`, ...author })),
    roles: [{ id: role, name: 'Author' }],
    roles_users: authors.map((_, n) => ({ id: id('c', n), role_id: role, user_id: id('b', n) })),
  },
}] })], { type: 'application/json' }), 'authors.json');
await api('POST', 'db/', form);

const sharp = createRequire(`${fs.realpathSync(`${app}/package.json`)}`)('sharp');
const pictures = [];
for (const [n, background] of ['#1f6f8b', '#8b1f4a'].entries()) {
  const upload = new FormData();
  const picture = await sharp({ create: { width: 1600, height: 900, channels: 3, background, noise: { type: 'gaussian', mean: 128, sigma: 30 } } }).jpeg().toBuffer();
  upload.append('file', new Blob([picture], { type: 'image/jpeg' }), `picture-${n + 1}.jpg`);
  pictures.push((await api('POST', 'images/upload/', upload)).images[0].url);
}

for (const [slug, name] of [['tides', 'Tides'], ['stones', 'Stones'], ['birds', 'Birds']]) await api('POST', 'tags/', { tags: [{ slug, name }] });
const { tiers: [gold] } = await api('POST', 'tiers/', { tiers: [{ name: 'Gold', monthly_price: 900, yearly_price: 9000, currency: 'usd' }] });
const silver = (await api('GET', 'tiers/?filter=type:paid')).tiers.find((tier) => tier.id !== gold.id);

// The newest first: post-01 is on the front page, post-20 the oldest.
const posts = {};
for (let n = 20; n >= 1; n--) {
  const slug = `post-${String(n).padStart(2, '0')}`;
  const visibility = { 4: 'members', 5: 'paid', 6: 'tiers', 14: 'members', 15: 'paid' }[n] ?? 'public';
  const secret = visibility === 'public' ? '' : `<p>SECRET-OF-${visibility.toUpperCase()}-POSTS</p>`;
  const html = `<p>Words of ${slug}: ${'the tide comes in and the tide goes out. '.repeat(20)}</p>${secret}<p>And more.</p>`;
  const { posts: [made] } = await api('POST', 'posts/?source=html', { posts: [{
    title: `Title of ${slug}`, slug, html, status: 'published', visibility, ...(visibility === 'tiers' && { tiers: [{ id: gold.id }] }),
    published_at: new Date(Date.UTC(2026, 0, 31 - n, 12)).toISOString(),
    feature_image: n % 3 === 0 ? pictures[n % 2] : null,
    tags: [{ slug: ['tides', 'stones', 'birds'][n % 3] }],
    authors: [{ email: [owner.email, 'ada@blog.example', 'ben@blog.example'][n % 3] }],
  }] });
  posts[slug] = { id: made.id, uuid: made.uuid, visibility };
}
const { posts: [draft] } = await api('POST', 'posts/?source=html', { posts: [{ title: 'Title of the draft', slug: 'draft', html: '<p>Words of the draft.</p>' }] });
await api('POST', 'pages/?source=html', { pages: [{ title: 'About', slug: 'about', html: '<p>About the wall.</p>', status: 'published' }] });

const members = {};
for (const [key, name, tier] of [['free', 'Freda Freemarker'], ['silver', 'Sylvia Silvermarker', silver], ['gold', 'Gordon Goldmarker', gold]]) {
  const { members: [made] } = await api('POST', 'members/', { members: [{ name, email: `${key}@member.example`, ...(tier && { tiers: [{ id: tier.id }] }) }] });
  members[key] = { id: made.id, uuid: made.uuid, name, email: made.email, tier: tier?.id ?? null };
}
for (const slug of ['post-01', 'post-02', 'post-03']) {
  await api('POST', 'comments/', { comments: [{ post_id: posts[slug].id, member_id: members.silver.id, html: `<p>First comment on ${slug}</p>` }] });
}

const key = (type) => integration.api_keys.find((one) => one.type === type).secret;
const { site } = await api('GET', 'site/');
fs.writeFileSync(`${dir}/blog.json`, JSON.stringify({
  version: site.version, owner, posts, draft: { id: draft.id, uuid: draft.uuid }, members, integration: integration.id,
  tiers: { silver: silver.id, gold: gold.id }, content_key: key('content'), picture: new URL(pictures[0]).pathname,
}, null, 1));

ghost.kill('SIGTERM');
await new Promise((ended) => ghost.once('exit', ended));
for (const name of ['current', 'log', 'config.production.json']) fs.rmSync(`${dir}/${name}`);
fs.rmSync(`${dir}/content/logs`, { recursive: true });
fs.mkdirSync(`${dir}/content/logs`);
