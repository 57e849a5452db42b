/**
 * A custom engine whose protocol is lines over TCP. A request is one line `ASK <json>`; the answer is
 * `WORD <text>` lines and `DONE <tokens in> <tokens out>`, or `FAIL <status> <why>`. `PING` is answered with `PONG <model>`.
 *
 * Three parts: the transport sends and receives bytes, the control plane probes workers, the engine adapter converts the
 * internal request to a line and lines to events. The gateway adds retries, breakers, balancing, health checks and draining.
 */

import { connect } from 'node:net'
import {
  defineErrors,
  definePlugin,
  type EngineAdapter,
  type GenerationRequest,
  Generations,
  type Transport,
  Type,
  UpstreamFailure,
  type UpstreamFailureKind,
  type WorkerControl,
} from 'weir-gateway'

const MODE = 'lines'

const lineErrors = defineErrors('line-engine', {
  line_engine_failed: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: (why: string) => `the engine failed: ${why}`,
  },
  line_engine_unreachable: {
    kind: 'unavailable',
    source: 'worker',
    text: (url: string, why: string) => `${url} does not answer: ${why}`,
  },
})

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url.replace(/^lines:/, 'http:'))
  return { host: hostname, port: Number(port) }
}

/** A line that is longer is none of an engine's. */
const MAX_LINE_BYTES = 1_048_576

/** One connection a request. What comes is passed on whole lines at a time, each chunk a line. */
const transport: Transport = {
  mode: MODE,
  open(worker, request, limits, handler) {
    const socket = connect({ ...addressOf(worker.url), noDelay: true })
    let isOver = false
    let hasStarted = false
    let isPaused = false
    let rest: Buffer = Buffer.alloc(0)
    // One timeout for the exchange, and one that restarts with each event.
    const whole =
      limits.requestMs > 0 ? setTimeout(() => fail('request_timeout'), limits.requestMs) : undefined
    let step: NodeJS.Timeout | undefined
    const allow = (ms: number, kind: UpstreamFailureKind) => {
      clearTimeout(step)
      step = ms > 0 ? setTimeout(() => fail(kind), ms) : undefined
    }
    const allowSilence = () =>
      hasStarted
        ? allow(limits.idleMs, 'idle_timeout')
        : allow(limits.firstTokenMs || limits.headMs, 'first_byte_timeout')
    const end = () => {
      isOver = true
      clearTimeout(whole)
      clearTimeout(step)
      socket.destroy()
    }
    const fail = (kind: UpstreamFailureKind, why = 'the engine took too long') => {
      if (isOver) return
      end()
      handler.onResponseError(new UpstreamFailure(kind, why, hasStarted))
    }
    const readLines = () => {
      for (let at = rest.indexOf(10); at >= 0 && !isOver && !isPaused; at = rest.indexOf(10)) {
        const line = rest.subarray(0, at)
        rest = rest.subarray(at + 1)
        if (!hasStarted) {
          hasStarted = true
          // Reported as a status, so that the gateway's breaker and retries apply.
          const refused = /^FAIL (\d{3})/.exec(line.toString('utf8'))
          handler.onResponseStart(refused === null ? 200 : Number(refused[1]), [], -1)
          if (isOver) return
        }
        handler.onResponseData(line)
        if (/^(DONE|FAIL|PONG)/.test(line.toString('latin1', 0, 4)) && !isOver) {
          end()
          handler.onResponseEnd()
        }
      }
      if (rest.length > MAX_LINE_BYTES && !isPaused) fail('protocol', 'a line has no end')
    }
    allow(limits.connectMs, 'connect')
    socket.on('connect', () => {
      allowSilence()
      socket.write(request.body ?? '')
    })
    socket.on('error', (error) => fail(hasStarted ? 'reset' : 'connect', error.message))
    socket.on('close', () => fail('reset', 'the connection ended before the answer'))
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      readLines()
      if (!isPaused && !isOver) allowSilence()
    })
    return {
      pause() {
        isPaused = true
        socket.pause()
        clearTimeout(step)
      },
      resume() {
        if (isOver || !isPaused) return
        isPaused = false
        allowSilence()
        socket.resume()
        process.nextTick(readLines)
      },
      abort: end,
    }
  },
  onWorkersChanged() {},
  close() {},
}

/** Sends one line and gives the first line of the answer. */
function askOnce(url: string, line: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(addressOf(url))
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('no answer in time')))
    let text = ''
    socket.on('connect', () => socket.write(`${line}\n`))
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      text += chunk.toString('utf8')
      if (!text.includes('\n') && text.length < MAX_LINE_BYTES) return
      socket.destroy()
      resolve(text.split('\n')[0])
    })
    socket.on('close', () => reject(new Error('the connection ended')))
  })
}

const control: WorkerControl = {
  mode: MODE,
  schemes: [MODE],
  runtimes: ['liner'],
  actions: [],
  isExternal: () => false,
  async probe({ url }, _path, timeoutMs) {
    try {
      const line = await askOnce(url, 'PING', timeoutMs)
      return line.startsWith('PONG') ? null : `PING was answered with ${line.slice(0, 100)}`
    } catch (error) {
      return String(error)
    }
  },
  async describe({ url, models }, { health, signal, wait, note, startupTimeoutMs, checkIntervalMs }) {
    const timeoutMs = health?.timeoutMs ?? 5_000
    const endsAtMs = Date.now() + startupTimeoutMs
    for (;;) {
      try {
        const model = (await askOnce(url, 'PING', timeoutMs)).split(' ')[1]
        const found = model === undefined ? [] : [{ id: model }]
        return { runtimeType: 'liner', models: models ?? found, labels: {}, apis: [], isExternal: false }
      } catch (error) {
        signal.throwIfAborted()
        if (Date.now() >= endsAtMs) throw lineErrors.line_engine_unreachable(url, String(error))
        note(String(error))
        await wait(Math.min(checkIntervalMs, 500))
      }
    }
  },
}

const engine: EngineAdapter = {
  name: 'lines',
  accepts: (worker) => worker.connectionMode === MODE,
  requestFor: ({ request, model }) => ({
    method: 'ASK',
    path: '/',
    body: Buffer.from(`ASK ${toLine(request, model)}\n`),
  }),
  read({ model, worker }, sink) {
    return {
      onStart() {
        const createdAtSec = Math.floor(Date.now() / 1000)
        sink.emit({
          type: 'started',
          id: null,
          model,
          createdAtSec,
          inputTokens: null,
          systemFingerprint: null,
          worker,
        })
      },
      onData(line) {
        const [word, ...rest] = line.toString('utf8').split(' ')
        if (word === 'WORD') sink.emit({ type: 'text', choice: 0, delta: rest.join(' ') })
        else if (word === 'FAIL') sink.fail(lineErrors.line_engine_failed(rest.join(' ')))
        else if (word === 'DONE') {
          const [inputTokens, outputTokens] = rest.map(Number)
          sink.emit({ type: 'choice_done', choice: 0, reason: 'stop', matchedStop: null })
          sink.emit({
            type: 'finished',
            usage: { inputTokens, outputTokens, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
          })
        }
      },
      onEnd() {},
    }
  },
}

function toLine({ prompt, sampling }: GenerationRequest, model: string): string {
  const messages =
    prompt.kind === 'chat' ? prompt.messages.map(({ role, content }) => ({ role, content })) : []
  return JSON.stringify({ model, messages, max: sampling.maxTokens })
}

export default definePlugin({
  manifest: {
    name: 'line-engine',
    version: '0.1.0',
    description: 'Workers that speak lines over TCP.',
    uses: [Generations],
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    host.transport(transport)
    host.workerControl(control)
    host.use(Generations).addEngine(engine)
  },
})
