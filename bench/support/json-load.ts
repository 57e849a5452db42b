/** Load client at saturation: autocannon, with the CPU time of the client. */
import { parseArgs } from 'node:util'
import autocannon from 'autocannon'
import { build } from 'hdr-histogram-js'
import { announceReady } from './process.ts'
import { chatBody, REQUEST_HEADERS, responsesBody } from './request-bytes.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    connections: { type: 'string', default: '32' },
    seconds: { type: 'string', default: '4' },
    bytes: { type: 'string', default: '250' },
    // 0: chat, 1: stored responses, 2: responses that are not stored, 3: stored responses with a tool.
    responses: { type: 'string', default: '0' },
    // 1: streamed chats; a request is a whole stream.
    stream: { type: 'string', default: '0' },
  },
})

const TOOL = { type: 'mcp', server_label: 'tools', require_approval: 'never' }
const isChat = values.responses === '0'
const histogram = build({ lowestDiscernibleValue: 1, highestTrackableValue: 60_000_000 })
const startedAtMs = performance.now()
const cpuAtStart = process.cpuUsage()
const finished = Promise.withResolvers<autocannon.Result>()
const instance = autocannon(
  {
    url: `http://127.0.0.1:${values.port}${isChat ? '/v1/chat/completions' : '/v1/responses'}`,
    method: 'POST',
    headers: REQUEST_HEADERS,
    body: isChat
      ? chatBody({ stream: values.stream === '1', bodyBytes: Number(values.bytes) })
      : responsesBody({
          stream: false,
          store: values.responses !== '2',
          bodyBytes: Number(values.bytes),
          ...(values.responses === '3' && { tools: [TOOL] }),
        }),
    connections: Number(values.connections),
    duration: Number(values.seconds),
  },
  (error, result) => (error ? finished.reject(error) : finished.resolve(result)),
)
// The histogram of autocannon has a resolution of 1 ms.
instance.on('response', (_client, _status, _bytes, responseTimeMs) =>
  histogram.recordValue(Math.max(1, Math.round(responseTimeMs * 1_000))),
)
const result = await finished.promise
const elapsedMs = performance.now() - startedAtMs
const cpu = process.cpuUsage(cpuAtStart)
announceReady({
  requests: result['2xx'],
  failures: result.non2xx + result.errors,
  perSecond: (result['2xx'] / elapsedMs) * 1_000,
  p50Micros: histogram.getValueAtPercentile(50),
  p99Micros: histogram.getValueAtPercentile(99),
  clientCore: (cpu.user + cpu.system) / 1_000 / elapsedMs,
})
