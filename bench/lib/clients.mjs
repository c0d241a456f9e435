// Node's https and http2 as clients of Seawall: `node clients.mjs ADDRESS ROOTS`, one line for each protocol. See bench/clients.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import https from "node:https";

const REQUESTS = 500, AT_ONCE = 50, LARGE = 3 << 20;
const [address, roots] = process.argv.slice(2);
const ca = readFileSync(roots);
const upload = Buffer.alloc(LARGE, "0123456789abcdef");

function digest(content) {
  return createHash("sha256").update(content).digest("hex");
}

function insist(holds, what) {
  if (!holds) throw new Error(what);
}

async function collected(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

/** `ask(path, content)` gives [status, content]; what is asked is the same in both protocols. */
async function everything(ask) {
  for (let begun = 0; begun < REQUESTS; begun += AT_ONCE) {
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => ask(`/page/${(begun + at) % 17}`)));
    for (const [status, content] of answers) insist(status === 200 && content.length === 8192, `a page: ${status}, ${content.length} bytes`);
  }
  const [, once] = await ask("/large"), [, again] = await ask("/large");
  insist(once.length === LARGE && digest(once) === digest(again), "3 MB: a miss and a hit differ");
  const [status, echoed] = await ask("/echo", upload);
  insist(status === 200 && digest(echoed) === digest(upload), `an upload came back changed: ${status}, ${echoed.length} bytes`);
}

function said(socket, protocol) {
  console.log(`${protocol}, ${socket.getProtocol()}, ${socket.getCipher().standardName}, ${socket.getEphemeralKeyInfo().name}`);
}

async function http1() {
  const agent = new https.Agent({ keepAlive: true, maxSockets: AT_ONCE, ca });
  let socket;
  await everything((path, content) => new Promise((resolve, reject) => {
    const request = https.request(`https://${address}${path}`, { agent, method: content ? "POST" : "GET" }, async (response) => {
      socket ??= response.socket;
      resolve([response.statusCode, await collected(response)]);
    });
    request.on("error", reject).end(content);
  }));
  said(socket, "HTTP/1.1");
  agent.destroy();
}

async function http2_() {
  const session = http2.connect(`https://${address}`, { ca });
  await new Promise((resolve, reject) => session.once("connect", resolve).once("error", reject));
  await new Promise((resolve, reject) => session.ping((error) => (error ? reject(error) : resolve())));
  await everything(async (path, content) => {
    const stream = session.request({ ":path": path, ":method": content ? "POST" : "GET" });
    const head = new Promise((resolve, reject) => stream.once("response", resolve).once("error", reject));
    stream.end(content);
    const body = collected(stream);
    return [(await head)[":status"], await body];
  });
  said(session.socket, "HTTP/2");
  await new Promise((resolve) => session.close(resolve));
}

await http1();
await http2_();
