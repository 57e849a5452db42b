/** Load client that reads the long stream at a limited speed and reports its hash. */
import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { parseArgs } from 'node:util'
import { ChunkedDecoder } from '../../test/support/chunked-decoder.ts'
import { announceReady } from './process.ts'
import { chatBody, messageBody, requestBytes } from './request-bytes.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    /** Bytes per millisecond. */
    'bytes-per-ms': { type: 'string', default: '8192' },
    /** 1: requests a message instead of a chat completion. */
    messages: { type: 'string', default: '0' },
    /** 1: requests the long generation; the hash is that of its text, independent of the chunks. */
    text: { type: 'string', default: '0' },
  },
})

/** Extracts the content of each delta of a streamed chat. */
class DeltaTexts {
  /** `[DONE]` was received. */
  isWhole = false
  readonly #onText: (text: string) => void
  readonly #decoder = new TextDecoder()
  #rest = ''

  constructor(onText: (text: string) => void) {
    this.#onText = onText
  }

  push(part: Buffer): void {
    const events = (this.#rest + this.#decoder.decode(part, { stream: true })).split('\n\n')
    this.#rest = events.pop() ?? ''
    for (const event of events) this.#take(event)
  }

  #take(event: string): void {
    if (!event.startsWith('data: ')) return
    const data = event.slice('data: '.length)
    if (data === '[DONE]') {
      this.isWhole = true
      return
    }
    const { choices } = JSON.parse(data) as { choices: readonly { delta: { content?: string | null } }[] }
    const content = choices[0]?.delta.content
    if (typeof content === 'string') this.#onText(content)
  }
}

const port = Number(values.port)
const bytesPerMs = Number(values['bytes-per-ms'])
const isText = values.text === '1'
const hash = createHash('sha256')
const texts = new DeltaTexts((text) => hash.update(text))
const startedAtMs = performance.now()
let received = 0
let decoder: ChunkedDecoder | null = null

const socket = connect(port, '127.0.0.1')
socket.write(
  values.messages === '1'
    ? requestBytes(port, messageBody(250, 'bulk'), { path: '/v1/messages' })
    : requestBytes(port, chatBody({ stream: true, bodyBytes: 250, user: isText ? 'bulk-text' : 'bulk' })),
)
socket.on('data', (bytes) => {
  if (decoder === null) {
    decoder = new ChunkedDecoder((part) => {
      if (isText) texts.push(part)
      else hash.update(part)
      received += part.length
    })
    decoder.push(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4))
  } else decoder.push(bytes)
  if (decoder.isDone) finish()
  const aheadMs = received / bytesPerMs - (performance.now() - startedAtMs)
  if (aheadMs <= 1) return
  socket.pause()
  setTimeout(() => socket.resume(), aheadMs)
})
socket.on('close', finish)

function finish(): void {
  announceReady({
    bytes: received,
    sha256: hash.copy().digest('hex'),
    isWhole: decoder?.isDone === true && (!isText || texts.isWhole),
    elapsedMs: performance.now() - startedAtMs,
  })
  process.exit(0)
}
