/**
 * Load client of policy-sim: Poisson arrivals of streamed chats, each timed from its due time. A short warm-up without
 * shared prompts precedes the measurement.
 */
import { parseArgs } from 'node:util'
import { build } from 'hdr-histogram-js'
import { type Arrival, arrivalsOf, OUTPUT_TOKENS } from './policy-workload.ts'
import { announceReady } from './process.ts'
import { requestBytes } from './request-bytes.ts'
import { StreamConnection } from './stream-connection.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    rate: { type: 'string', default: '80' },
    seconds: { type: 'string', default: '20' },
    shared: { type: 'string', default: '0.7' },
    seed: { type: 'string', default: '1' },
  },
})
const port = Number(values.port)
const WARM_UP_SECONDS = 2
/** Timeout after the last arrival; open requests count as failed. */
const DRAIN_TIMEOUT_MS = 30_000

const micros = () => build({ lowestDiscernibleValue: 1, highestTrackableValue: 120_000_000 })
const firstTokens = micros()
const gaps = micros()
const totals = micros()
const free: StreamConnection[] = []
let ok = 0
let errors = 0
let promptTokens = 0
let cachedTokens = 0
let outputTokens = 0

/** One open chat. */
class Chat {
  readonly #dueAtMs: number
  readonly #isCounted: boolean
  #previousAtMs = 0
  #events = 0
  #tail = ''

  constructor(dueAtMs: number, isCounted: boolean) {
    this.#dueAtMs = dueAtMs
    this.#isCounted = isCounted
  }

  take(part: Buffer): void {
    this.#tail = (this.#tail + part.toString('latin1')).slice(-600)
    if (!part.includes('"content":"')) return
    const nowMs = performance.now()
    // The first event only has the role; it arrives together with the first token.
    if (this.#isCounted) {
      if (this.#events === 0) record(firstTokens, nowMs - this.#dueAtMs)
      else record(gaps, nowMs - this.#previousAtMs)
    }
    this.#events++
    this.#previousAtMs = nowMs
  }

  end(failure: string | null): void {
    if (!this.#isCounted) return
    const usage = /"usage":(\{.*?\}\}|\{[^{}]*\})/.exec(this.#tail)?.[1]
    if (failure !== null || usage === undefined || !this.#tail.includes('[DONE]')) {
      errors++
      return
    }
    const { prompt_tokens, completion_tokens, prompt_tokens_details } = JSON.parse(usage)
    ok++
    promptTokens += prompt_tokens
    outputTokens += completion_tokens
    cachedTokens += prompt_tokens_details?.cached_tokens ?? 0
    if (completion_tokens !== OUTPUT_TOKENS) errors++
    record(totals, performance.now() - this.#dueAtMs)
  }
}

function record(histogram: ReturnType<typeof micros>, elapsedMs: number): void {
  histogram.recordValue(Math.max(1, Math.round(elapsedMs * 1_000)))
}

/** Returns an idle connection that is still open, or a new one. */
function openConnection(): StreamConnection {
  let connection = free.pop()
  while (connection !== undefined && !connection.isOpen) connection = free.pop()
  return connection ?? new StreamConnection(port)
}

/** Resolves when all requests are complete, or after the timeout. */
function play(arrivals: readonly Arrival[], isCounted: boolean): Promise<void> {
  const done = Promise.withResolvers<void>()
  const startedAtMs = performance.now()
  let next = 0
  let open = arrivals.length
  const start = ({ atMs, body }: Arrival) => {
    const chat = new Chat(startedAtMs + atMs, isCounted)
    const connection = openConnection()
    connection.send(requestBytes(port, body), {
      onBody: (part) => chat.take(part),
      onEnd(failure) {
        chat.end(failure)
        if (failure === null) free.push(connection)
        if (--open === 0) done.resolve()
      },
    })
  }
  const pump = () => {
    const nowMs = performance.now() - startedAtMs
    while (next < arrivals.length && arrivals[next].atMs <= nowMs) start(arrivals[next++])
    if (next < arrivals.length) setTimeout(pump, Math.max(0, arrivals[next].atMs - nowMs))
    else setTimeout(done.resolve, DRAIN_TIMEOUT_MS).unref()
  }
  pump()
  return done.promise.then(() => {
    if (isCounted) errors += open
  })
}

const workload = {
  ratePerSecond: Number(values.rate),
  seconds: Number(values.seconds),
  shared: Number(values.shared),
  seed: Number(values.seed),
}
await play(arrivalsOf({ ...workload, seconds: WARM_UP_SECONDS, shared: 0, seed: workload.seed + 1 }), false)
const startedAtMs = performance.now()
const cpuAtStart = process.cpuUsage()
await play(arrivalsOf(workload), true)
const elapsedMs = performance.now() - startedAtMs
const cpu = process.cpuUsage(cpuAtStart)
const ms = (histogram: ReturnType<typeof micros>, percentile: number) =>
  histogram.getValueAtPercentile(percentile) / 1_000
announceReady({
  ok,
  errors,
  perSecond: (ok / elapsedMs) * 1_000,
  outputTokensPerSecond: (outputTokens / elapsedMs) * 1_000,
  ttftMeanMs: firstTokens.mean / 1_000,
  ttftP50Ms: ms(firstTokens, 50),
  ttftP90Ms: ms(firstTokens, 90),
  ttftP99Ms: ms(firstTokens, 99),
  itlP50Ms: ms(gaps, 50),
  e2eP50Ms: ms(totals, 50),
  e2eP99Ms: ms(totals, 99),
  hitRate: promptTokens === 0 ? 0 : cachedTokens / promptTokens,
  clientCore: (cpu.user + cpu.system) / 1_000 / elapsedMs,
})
process.exit(0)
