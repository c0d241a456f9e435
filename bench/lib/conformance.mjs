// Runs the public HTTP cache test suite against one proxy and prints what came out as JSON.
//
//     node conformance.mjs SUITE
//
// SUITE is a checkout of http-tests/cache-tests with its packages installed. Its runner, its origin and its rules for what a result means are used as they
// are; nothing is judged here. The talk goes over pipes, one line of JSON each way at a time: this program says {"origin": PORT}, is told {"proxy": "http://..."}
// once the proxy in front of that port is up, and says {"results": ...}. What the suite itself prints goes to stderr.

import http from 'node:http'
import net from 'node:net'
import path from 'node:path'
import readline from 'node:readline'
import { pathToFileURL } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

// The suite's own number of tests at a time.
const TESTS_AT_ONCE = 25
const PROXY_READY_MS = 30_000

const suite = path.resolve(isMainThread ? process.argv[2] : workerData)
const from = file => import(pathToFileURL(path.join(suite, file)).href)
const say = message => new Promise(resolve => process.stdout.write(JSON.stringify(message) + '\n', resolve))

if (isMainThread) await judge()
else await origin()

/** The suite's origin, in a thread of its own: the clients must not wait for it. It would listen on every interface, at a port named beforehand. */
async function origin () {
  http.Server.prototype.listen = function () {
    this.once('listening', () => parentPort.postMessage(this.address().port))
    return net.Server.prototype.listen.call(this, 0, '127.0.0.1')
  }
  await from('test-engine/server/server.mjs')
}

async function judge () {
  // Its log would fill the pipe on which the results go.
  console.log = console.error
  const env = { ...process.env, npm_config_protocol: 'http', npm_config_port: '0', npm_config_pidfile: '/dev/null' }
  const server = new Worker(new URL(import.meta.url), { workerData: suite, env, stdout: true })
  server.stdout.resume()
  server.once('error', error => {
    console.error(error)
    process.exit(1)
  })
  await say({ origin: await new Promise(resolve => server.once('message', resolve)) })

  const { value: line } = await readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]().next()
  const { proxy } = JSON.parse(line)
  await ready(proxy)
  await say({ results: await run(proxy) })
  // Connections that are kept alive would hold this process for a while.
  process.exit(0)
}

/** Tests are set up by PUT through the proxy. A proxy that listens need not forward yet. */
async function ready (proxy) {
  const end = Date.now() + PROXY_READY_MS
  for (;;) {
    let saw
    try {
      const answer = await fetch(`${proxy}/config/${crypto.randomUUID()}`, { method: 'PUT', body: '[]' })
      if (answer.status === 201) return
      saw = `answers ${answer.status} to a PUT`
    } catch (error) {
      saw = `does not answer (${error.cause?.code ?? error.message})`
    }
    if (Date.now() > end) throw new Error(`the proxy at ${proxy} ${saw}`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

async function run (proxy) {
  const { default: groups } = await from('tests/index.mjs')
  const { runTests, getResults } = await from('test-engine/client/runner.mjs')
  const { testResults } = await from('test-engine/client/test.mjs')
  const { determineTestResult, resultTypes } = await from('test-engine/lib/results.mjs')
  const outcome = (id, withDependencies = true) => {
    const found = determineTestResult(groups, id, testResults, withDependencies)
    return Object.keys(resultTypes).find(name => resultTypes[name] === found)
  }

  // A run writes into the tests that it is given.
  await runTests(structuredClone(groups), false, proxy, TESTS_AT_ONCE)

  // A test whose setup failed says nothing about the cache: a lost connection or a late answer is enough. Those get one more turn.
  const chosen = groups.map(group => ({ ...group, tests: group.tests.filter(test => test.browser_only !== true) }))
  const again = chosen.flatMap(group => group.tests).map(test => test.id).filter(id => ['setup_fail', 'harness_fail', 'retry'].includes(outcome(id, false)))
  if (again.length) {
    for (const id of again) delete testResults[id]
    const second = chosen.map(group => ({ ...group, tests: group.tests.filter(test => again.includes(test.id)) }))
    await runTests(structuredClone(second), false, proxy, TESTS_AT_ONCE)
  }

  const raw = getResults()
  const tests = chosen.flatMap(group => group.tests.map(test => ({
    id: test.id,
    name: test.name,
    group: group.id,
    kind: test.kind ?? 'required',
    outcome: outcome(test.id),
    said: Array.isArray(raw[test.id]) ? raw[test.id].join(': ') : '',
    // Only those that were not met: what a dependency_fail hangs on.
    needs: (test.depends_on ?? []).filter(id => !['pass', 'yes'].includes(outcome(id)))
  })))
  return { tests, again: again.length }
}
