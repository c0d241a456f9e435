// Keeps a Ghost to this machine, and ends it together with the test that started it: loaded before Ghost (node --require).
//
// A Ghost that publishes tells search engines, blogs that it links to, and its maker. A name that is not this machine's does not resolve
// here, and a connection to another address is refused at once.
'use strict';
const dns = require('node:dns');
const net = require('node:net');

const isLocal = (host) => !host || host === 'localhost' || host.endsWith('.localhost') || host === '::1' || host === '::' || host === '0.0.0.0' || /^(::ffff:)?127\./.test(host);
const refusal = (host, code) => Object.assign(new Error(`${code} ${host}: only this machine`), { code });

const { lookup } = dns;
dns.lookup = (host, options, callback) => {
  const done = typeof options === 'function' ? options : callback;
  return isLocal(host) ? lookup(host, options, callback) : process.nextTick(done, refusal(host, 'ENOTFOUND'));
};
const lookupLater = dns.promises.lookup;
dns.promises.lookup = async (host, options) => {
  if (!isLocal(host)) throw refusal(host, 'ENOTFOUND');
  return lookupLater(host, options);
};
for (const method of Object.getOwnPropertyNames(dns.Resolver.prototype).filter((name) => /^(resolve|reverse)/.test(name))) {
  dns.Resolver.prototype[method] = (host, ...rest) => process.nextTick(rest.at(-1), refusal(host, 'ENOTFOUND'));
  dns.promises.Resolver.prototype[method] = async (host) => {
    throw refusal(host, 'ENOTFOUND');
  };
}

const { connect } = net.Socket.prototype;
net.Socket.prototype.connect = function (...given) {
  const first = Array.isArray(given[0]) ? given[0][0] : given[0]; // node's own callers pass one list
  const host = first && typeof first === 'object' ? first.host : typeof given[1] === 'string' ? given[1] : '';
  if (!isLocal(host) && net.isIP(host)) {
    process.nextTick(() => this.destroy(refusal(host, 'ECONNREFUSED')));
    return this;
  }
  return connect.apply(this, given);
};

// Whoever started it holds the other end of standard input. When they are gone, however that came about, so is it.
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
process.stdin.unref?.();
