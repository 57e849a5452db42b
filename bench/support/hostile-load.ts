/** A malicious client that repeats one attack and counts the statuses of the responses. */
import { request } from 'node:http'
import { parseArgs } from 'node:util'
import { announceReady } from './process.ts'
import { BENCH_KEY } from './subject.ts'

interface Attack {
  readonly method: string
  readonly path: string
  readonly body: Buffer | null
}

/** Default body limit of the gateway, in bytes. */
const BODY_LIMIT = 67_108_864
const CHAT = '/v1/chat/completions'
/** Below the limit of request heads. */
const SLASHES_IN_PATH = 12_000
const SLASHES_IN_URL = 20_000

const chat = (body: string): Attack => ({ method: 'POST', path: CHAT, body: Buffer.from(body, 'latin1') })
const messages = (content: string, key = '"model"') =>
  `{${key}:"bench","messages":[{"role":"user","content":"${content}"}]}`

const ATTACKS: Readonly<Record<string, () => Attack>> = {
  harmless: () => chat(messages('a')),
  'harmless-16m': () => chat(messages('a'.repeat(16_000_000))),
  nesting: () => chat('['.repeat(30_000_000)),
  'nested-member': () => chat(`{"model":"bench","messages":${'['.repeat(30_000_000)}`),
  'escaped-key': () => chat(messages('a'.repeat(16_000_000), '"mod\\u0065l"')),
  'many-objects': () => {
    const head = '{"model":"bench","messages":['
    const tail = '{}]}'
    return chat(head + '{},'.repeat(Math.floor((BODY_LIMIT - head.length - tail.length) / 3)) + tail)
  },
  'engine-metrics': () => ({ method: 'GET', path: '/engine_metrics', body: null }),
  'slashes-path': () => ({ method: 'GET', path: '/'.repeat(SLASHES_IN_PATH), body: null }),
  'slashes-url': () => ({
    method: 'POST',
    path: '/workers',
    body: Buffer.from(JSON.stringify({ url: `http://127.0.0.1:9${'/'.repeat(SLASHES_IN_URL)}x` })),
  }),
  'grpc-million': () => chat('{"model":"million","stream":true,"messages":[{"role":"user","content":"a"}]}'),
  'grpc-half-million': () =>
    chat('{"model":"half-million","stream":true,"messages":[{"role":"user","content":"a"}]}'),
  dripping: () => chat('{"model":"hostile","stream":true,"messages":[{"role":"user","content":"a"}]}'),
}

/** @returns the status; 0 if there was no response */
function attempt(port: number, { method, path, body }: Attack, endsAtMs: number): Promise<number> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${BENCH_KEY}`,
      'content-type': 'application/json',
      ...(body !== null && { 'content-length': body.length }),
    }
    const call = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      // An endless response is closed at the end of the measurement.
      const timer = setTimeout(() => call.destroy(), Math.max(0, endsAtMs - performance.now()))
      response.resume().on('error', () => {})
      response.on('close', () => {
        clearTimeout(timer)
        resolve(response.statusCode ?? 0)
      })
    })
    call.on('error', () => resolve(0))
    call.end(body)
  })
}

const { values } = parseArgs({
  options: { port: { type: 'string' }, attack: { type: 'string' }, seconds: { type: 'string' } },
})
const make = ATTACKS[values.attack ?? '']
if (make === undefined) throw new Error(`--attack must be one of ${Object.keys(ATTACKS).join(', ')}`)
const attack = make()
announceReady({ ready: 1 })
const endsAtMs = performance.now() + Number(values.seconds) * 1_000
const statuses: Record<string, number> = {}
while (performance.now() < endsAtMs) {
  const status = await attempt(Number(values.port), attack, endsAtMs)
  statuses[status] = (statuses[status] ?? 0) + 1
}
announceReady({ statuses })
