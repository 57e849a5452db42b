/** HTTP/1.1 requests with unusual framing: no request may be read as two, and none may stay unanswered. */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { startByteWorker } from './byte-worker.ts'
import { type FuzzCase, type Outcome, type Suite, startFuzzed, type Target } from './harness.ts'
import { type Draw, mutate, pickOf } from './mutate.ts'

const LANES = 16
const LIMIT_MS = 15_000
/** Silence after which a request counts as ended, also an incomplete one. */
const QUIET_MS = 300
const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
interface Variant {
  readonly name: string
  readonly headers?: readonly string[]
  /** Default: the body. */
  readonly body?: string
  /** Separates lines of the head. */
  readonly newline?: string
  readonly line?: string
}

/** Forms that servers read differently, such as a proxy in front of the gateway. */
export const VARIANTS: readonly Variant[] = [
  ...JSON.parse(readFileSync(new URL('./seeds/framing.json', import.meta.url), 'utf8')),
  { name: 'huge head', headers: [`X-A: ${'a'.repeat(70_000)}`, `Content-Length: ${BODY.length}`] },
]

function bytesOf({
  headers = [],
  body = BODY,
  newline = '\r\n',
  line = 'POST /v1/chat/completions HTTP/1.1',
}: Variant): Buffer {
  return Buffer.from(
    `${[line, 'Host: a', 'Content-Type: application/json', ...headers].join(newline)}${newline}${newline}${body}`,
    'latin1',
  )
}

export const framing: Suite = { lanes: LANES, count: 600, start }

async function start(): Promise<Target> {
  const worker = await startByteWorker()
  const gateway = await startFuzzed({
    workers: [{ url: worker.url, models: [{ id: 'm' }], runtime_type: 'sglang' }],
  })
  return {
    gateway,
    make: makeCase,
    run: ({ label, parts }) => send(gateway.port, label, parts),
    close: () => worker.close(),
  }
}

/** The first cases are the unmodified variants; then combinations with mutations and other splits into packets. */
function makeCase(draw: Draw, index: number): FuzzCase {
  const variant = VARIANTS[index] ?? pickOf(VARIANTS, draw)
  let bytes = bytesOf(variant)
  if (index < VARIANTS.length) return { label: variant.name, parts: [bytes] }
  if (draw(2) === 0) bytes = mutate(bytes, [bytesOf(pickOf(VARIANTS, draw))], draw)
  const at = draw(bytes.length + 1)
  return {
    label: `mutated ${variant.name}`,
    parts: draw(2) === 0 ? [bytes] : [bytes.subarray(0, at), bytes.subarray(at)],
  }
}

/** Half-closes after all responses: then the server must close, even after an incomplete request. */
function send(port: number, label: string, parts: readonly Buffer[]): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let received = ''
  let isSilent = false
  const limit = setTimeout(() => {
    isSilent = true
    socket.destroy()
  }, LIMIT_MS)
  const quiet = setTimeout(() => socket.end(), QUIET_MS)
  const writeNext = ([part, ...rest]: readonly Buffer[]) => {
    if (part !== undefined) socket.write(part, () => setTimeout(writeNext, 5, rest))
  }
  socket.setEncoding('latin1').on('connect', () => writeNext(parts))
  socket.on('data', (text: string) => {
    received += text
    quiet.refresh()
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    clearTimeout(limit)
    clearTimeout(quiet)
    const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
    const ending = isSilent
      ? 'silent'
      : statuses.join('+') || (socket.writableEnded ? 'unfinished' : 'closed')
    const isTwo = statuses.filter((status) => status !== '100').length > 1 && !label.startsWith('mutated')
    const fault = isSilent ? 'silent' : isTwo ? `two responses: ${received.slice(0, 600)}` : undefined
    resolve({ ending, fault })
  })
  return promise
}
