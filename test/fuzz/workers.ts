/** Hostile responses of HTTP workers through every adapter: status, headers, framing, events, JSON. */
import { readFileSync } from 'node:fs'
import { startByteWorker, wholeResponse } from './byte-worker.ts'
import { type FuzzCase, type Outcome, type Suite, startFuzzed, type Target } from './harness.ts'
import { HttpLane, isInternal } from './http-lane.ts'
import { type Draw, type Json, mutate, mutateJson, pickOf } from './mutate.ts'

const LANES = 16

interface Seeds {
  /** `api` is the model whose worker has this format. */
  readonly requests: readonly { readonly path: string; readonly body: Json; readonly api: string }[]
  /** By format: non-streamed responses, and the events of a streamed one. */
  readonly answers: Record<string, { readonly whole: readonly Json[]; readonly events: readonly Json[] }>
  readonly reports: readonly string[]
  readonly statuses: readonly string[]
  readonly headers: readonly string[]
}

const SEEDS: Seeds = JSON.parse(
  readFileSync(new URL('./seeds/worker-responses.json', import.meta.url), 'utf8'),
)
const HEADERS = [...SEEDS.headers, `x-long: ${'a'.repeat(70_000)}`]
const REPORT_ROUTES = [
  '/engine_metrics',
  '/get_loads',
  '/v1/models',
  '/get_server_info',
  '/get_model_info',
  '/health_generate',
]

export const workers: Suite = { lanes: LANES, count: 4_000, start }

async function start(): Promise<Target> {
  /** By lane, which is the request id that the gateway forwards; load reports have none. */
  const responses = new Map<string, readonly Buffer[]>()
  let report: readonly Buffer[] | null = null
  const respond = (head: string) => {
    const lane = /x-request-id: fuzz-(\d+)/i.exec(head)?.[1]
    return lane === undefined ? report : (responses.get(lane) ?? report)
  }
  const apis = Object.keys(SEEDS.answers)
  const servers = await Promise.all(apis.map(() => startByteWorker(respond)))
  const gateway = await startFuzzed({
    plugins: { messages: {}, responses: {}, generations: {} },
    workers: servers.map(({ url }, index) => ({
      url,
      models: [{ id: apis[index] }],
      runtime_type: 'sglang',
      // Workers of embeddings accept every field, as an engine does.
      ...(apis[index] !== 'embeddings' && {
        apis: apis[index] === 'chat' ? ['chat', 'completions', 'generate'] : [apis[index]],
      }),
    })),
  })
  const lanes = Array.from({ length: LANES }, () => new HttpLane(gateway.port))
  return {
    gateway,
    make: makeCase,
    run: async ({ label, parts }, number): Promise<Outcome> => {
      const lane = lanes[number]
      const [path, body] = label.split(' ')
      if (body === undefined) report = parts
      else responses.set(String(number), parts)
      const head = `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-request-id: fuzz-${number}\r\n`
      const reply = await lane.send(head, Buffer.from(body ?? ''))
      responses.delete(String(number))
      const isBad = ['silent', 'malformed'].includes(reply.ending) || isInternal(reply)
      const fault = isBad ? `${reply.ending}: ${reply.head}${reply.body.slice(-800)}` : undefined
      return { ending: reply.ending === 'whole' ? String(reply.status) : reply.ending, fault }
    },
    close: () => {
      for (const lane of lanes) lane.close()
      for (const server of servers) server.close()
    },
  }
}

function makeCase(draw: Draw): FuzzCase {
  if (draw(12) === 0) {
    const all = SEEDS.reports.map((text) =>
      wholeResponse(text, pickOf(['application/json', 'text/plain'], draw)),
    )
    return { label: pickOf(REPORT_ROUTES, draw), parts: [mutate(pickOf(all, draw), all, draw)] }
  }
  const { path, body, api } = pickOf(SEEDS.requests, draw)
  const isStream = draw(3) > 0
  // No spaces, because the label is split at them.
  const label = `${path} ${JSON.stringify({ ...body, model: api, stream: isStream })}`
  const { whole, events } = SEEDS.answers[api]
  const text =
    isStream && draw(8) > 0
      ? events.length > 0 && makeEvents(events, draw)
      : JSON.stringify(draw(3) > 0 ? mutateJson(pickOf(whole, draw), draw) : pickOf(whole, draw))
  const parts = makeResponse(Buffer.from(text || ''), isStream, draw)
  if (draw(4) > 0) return { label, parts }
  return { label, parts: [mutate(Buffer.concat(parts), parts, draw)] }
}

function makeEvents(events: readonly Json[], draw: Draw): string {
  const list: unknown[] = events.map((event) => (draw(6) === 0 ? mutateJson(event, draw) : event))
  for (let left = draw(4); left > 0 && list.length > 0; left--) {
    const at = draw(list.length)
    if (draw(3) === 0) list.splice(at, 1)
    else if (draw(2) === 0) list.splice(at, 0, ...Array(1 + draw(30)).fill(list[at]))
    else list.push(...list.splice(at, 1))
  }
  const newline = pickOf(['\n', '\n', '\n', '\r\n', '\r'], draw)
  const lines = list.map((event) => {
    const type = (event as Json | null)?.type
    const name = typeof type === 'string' && draw(10) > 0 ? `event: ${type}${newline}` : ''
    const more =
      draw(15) === 0
        ? pickOf([':', 'id: 1\0', 'retry: 99999999', 'data', 'data:{', 'x'.repeat(9_000)], draw) + newline
        : ''
    return `${more}${name}data:${draw(8) === 0 ? '' : ' '}${JSON.stringify(event)}${newline}${newline}`
  })
  return `${draw(30) === 0 ? '\ufeff' : ''}${lines.join('')}${draw(4) > 0 ? `data: [DONE]${newline}${newline}` : ''}`
}

/** Head and body with framing that mostly fits; the body in chunks of any size. */
function makeResponse(body: Buffer, isStream: boolean, draw: Draw): Buffer[] {
  const framing = draw(isStream ? 3 : 5)
  const headers = [`content-type: ${isStream && draw(15) > 0 ? 'text/event-stream' : 'application/json'}`]
  if (framing < 2) headers.push('transfer-encoding: chunked')
  else if (framing > 2)
    headers.push(`content-length: ${draw(15) === 0 ? body.length + draw(3) - 1 : body.length}`)
  for (let left = draw(5) === 0 ? 1 + draw(3) : 0; left > 0; left--) headers.push(pickOf(HEADERS, draw))
  const status = draw(4) > 0 ? SEEDS.statuses[0] : pickOf(SEEDS.statuses, draw)
  const parts: Buffer[] = [Buffer.from(`HTTP/1.1 ${status}\r\n${headers.join('\r\n')}\r\n\r\n`, 'latin1')]
  for (let at = 0; at < body.length; ) {
    const piece = body.subarray(at, at + 1 + draw(draw(3) === 0 ? 8 : 1_024))
    at += piece.length
    const end = Buffer.from('\r\n')
    parts.push(
      framing < 2 ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, end]) : piece,
    )
  }
  if (framing < 2 && draw(15) > 0)
    parts.push(Buffer.from(draw(10) === 0 ? '0\r\nx-a: b\r\n\r\n' : '0\r\n\r\n'))
  return parts
}
