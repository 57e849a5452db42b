/** Generated and mutated requests to every route of the gateway's OpenAPI document. */
import { Ajv, type ValidateFunction } from 'ajv'
import { startByteWorker } from './byte-worker.ts'
import { type FuzzCase, type Outcome, type Suite, startFuzzed, type Target } from './harness.ts'
import { HttpLane, isInternal, type ResponseJson } from './http-lane.ts'
import { type Draw, generate, type Json, mutate, mutateJson, pickOf } from './mutate.ts'

interface Operation {
  readonly method: string
  readonly path: string
  readonly schema: unknown
  /** Validates the body of an error; null if the document describes no JSON. */
  readonly checkOf: (status: number) => ValidateFunction | null
}

interface Documented {
  readonly content?: Record<string, { readonly schema: object }>
}

const LANES = 16
const IDS = [
  'm',
  'resp_0',
  'conv_0',
  'msg_0',
  '00000000-0000-4000-8000-000000000000',
  '%00',
  '%2e%2e',
  '%ff',
  'a%2Fb',
  '__proto__',
  'x'.repeat(600),
]
const QUERIES = [
  '',
  '',
  '',
  '?limit=0',
  '?limit=-1&after=a',
  '?after=%ff&order=asc',
  '?stream=true&starting_after=9',
  '?detail=full',
  '?%',
  '?include[]=a&include[]=b',
]
const TYPES = [
  'application/json',
  'application/json',
  'application/json',
  'text/plain',
  'application/json; charset=utf-16',
  '',
  'multipart/form-data; boundary=a',
]
const OTHERS = ['{"model":"m","input":"a"}', '{"modules":[]}', '[1,2]', '"a"'].map((text) =>
  Buffer.from(text),
)

/** Until they are undone, new limits would reject the requests of the other lanes. */
const CHANGES_LIMITS = /^(?!GET)\w+ \/limits\n/

export const bodies: Suite = { lanes: LANES, count: 4_000, start }

async function start(): Promise<Target> {
  const worker = await startByteWorker()
  const gateway = await startFuzzed({
    plugins: {
      tokenizers: { load: [{ name: 'm', source: 'weir:sample' }], maxTokenizers: 8 },
      ...Object.fromEntries(ALSO.map((name) => [name, {}])),
    },
    workers: [{ url: worker.url, models: [{ id: 'm' }], runtime_type: 'sglang' }],
  })
  const document = (await (await gateway.get('/openapi.json')).json()) as Json
  const operations = operationsOf(document)
  const { limits } = (await (await gateway.get('/limits')).json()) as { limits: object }
  const lanes = Array.from({ length: LANES }, () => new HttpLane(gateway.port))
  const send = (lane: number, start: string, body?: string) =>
    lanes[lane].send(
      `${start} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n`,
      Buffer.from(body ?? ''),
    )

  /** Removes what a request has registered, so that later requests find the same gateway. @returns a fault */
  const undo = async (lane: number, { method, path }: Operation, { status, body }: ResponseJson) => {
    if (status >= 300) return
    if (path === '/limits' && method !== 'GET') {
      const undone = await send(lane, 'PUT /limits', JSON.stringify(limits))
      return undone.status === 200 ? undefined : `limits were not restored: ${undone.status} ${undone.body}`
    }
    if (method !== 'POST' || (path !== '/workers' && path !== '/v1/tokenizers')) return
    const { worker_id, id } = JSON.parse(body) as { worker_id?: string; id?: string }
    await send(lane, `DELETE ${path}/${worker_id ?? id}`)
  }

  const byRoute = new Map(operations.map((one) => [`${one.method} ${one.path}`, one]))
  const run = async ({ label, parts: [body] }: FuzzCase, lane: number): Promise<Outcome> => {
    const [route, head] = label.split('\n\n')
    const reply = await lanes[lane].send(`${head}\r\n`, body)
    const operation = byRoute.get(route) as Operation
    const fault = faultOf(operation, reply)
    if (reply.ending !== 'whole') return { ending: reply.ending, fault }
    const undoFault = await undo(lane, operation, reply)
    return { ending: String(reply.status), fault: fault ?? undoFault }
  }
  const running = new Set<Promise<Outcome>>()
  let alone: Promise<unknown> | null = null

  return {
    gateway,
    make: (draw) => makeCase(pickOf(operations, draw), document, draw),
    run: async (input, lane) => {
      while (alone !== null) await alone
      const isAlone = CHANGES_LIMITS.test(input.label)
      const outcome = (isAlone ? Promise.all(running) : Promise.resolve()).then(() => run(input, lane))
      if (isAlone) alone = outcome
      running.add(outcome)
      await outcome
      running.delete(outcome)
      if (isAlone) alone = null
      return outcome
    },
    close: () => {
      for (const lane of lanes) lane.close()
      worker.close()
    },
  }
}

/** Plugins with routes, in addition to those of every built gateway. */
const ALSO = [
  'openapi',
  'parsers',
  'responses',
  'messages',
  'history',
  'conversations',
  'limits',
  'debug',
  'reload',
  'wasm',
  'mcp',
  'pairs',
]

function operationsOf(document: Json): Operation[] {
  const ajv = new Ajv({ strict: false, validateFormats: false })
  const { components } = document
  /** Validators by schema JSON; few schemas differ. */
  const checks = new Map<string, ValidateFunction>()
  const checkOf = (responses: Record<string, Documented>, status: number) => {
    const content = responses[status]?.content ?? responses.default.content
    if (content?.['application/json'] === undefined) return null
    // Errors of every route, such as an unreadable body, are described by `default` only.
    const anyOf = [content['application/json'].schema, responses.default.content?.['application/json'].schema]
    const key = JSON.stringify(anyOf)
    const check = checks.get(key) ?? ajv.compile({ anyOf, components })
    checks.set(key, check)
    return check
  }
  return Object.entries(document.paths as Record<string, Record<string, Json>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { requestBody, responses }]) => ({
      method: method.toUpperCase(),
      path,
      schema: (requestBody as { content: Record<string, Json> } | undefined)?.content['application/json']
        .schema,
      checkOf: (status: number) => checkOf(responses as Record<string, Documented>, status),
    })),
  )
}

function makeCase({ method, path, schema }: Operation, document: Json, draw: Draw): FuzzCase {
  const target = path.replace(/\{\w+\}/g, () => pickOf(IDS, draw)) + pickOf(QUERIES, draw)
  const type = pickOf(TYPES, draw)
  const headers = ['host: 127.0.0.1', ...(type === '' ? [] : [`content-type: ${type}`])]
  if (draw(60) === 0) headers.push('content-encoding: gzip')
  const head = [`${method} ${target} HTTP/1.1`, ...headers].join('\r\n')
  return { label: `${method} ${path}\n\n${head}`, parts: [makeBody(method, schema, document, draw)] }
}

function makeBody(method: string, schema: unknown, document: Json, draw: Draw): Buffer {
  if (schema === undefined && (method === 'GET' || draw(3) > 0)) return Buffer.alloc(0)
  const value = generate(schema ?? { type: 'object' }, document, draw)
  const bytes = Buffer.from(JSON.stringify(draw(2) === 0 ? value : mutateJson(value, draw)) ?? '')
  return draw(4) === 0 ? mutate(bytes, OTHERS, draw) : bytes
}

function faultOf({ checkOf }: Operation, reply: ResponseJson): string | undefined {
  const { ending, status, head, body } = reply
  if (ending === 'silent' || ending === 'malformed') return ending
  if (isInternal(reply)) return `internal_error: ${body}`
  // The server library rejects some heads itself. @see docs/guide/http-server.md
  if (status < 400 || head.includes('content-type: text/html')) return undefined
  const check = checkOf(status)
  return check === null || check(parsed(body))
    ? undefined
    : `not the documented format: ${status} ${body.slice(0, 500)}`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
