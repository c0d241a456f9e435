// Counts the requests that a Ghost gets, in the file COUNT_FILE: loaded before Ghost (node --require). It counts what arrives, whatever is answered.
'use strict';
const fs = require('node:fs');
const http = require('node:http');

let count = 0;
const { emit } = http.Server.prototype;
http.Server.prototype.emit = function (event, ...rest) {
  if (event === 'request') count += 1;
  return emit.call(this, event, ...rest);
};
setInterval(() => fs.writeFileSync(process.env.COUNT_FILE, String(count)), 200).unref();
