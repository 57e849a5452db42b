import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, expect, test } from 'vitest'
import { openFleet } from './fleet.ts'

interface Operation {
  operationId: string
  summary: string
  tags: string[]
  parameters?: { name: string; in: string; required: boolean; schema: object }[]
  requestBody?: { required: boolean; content: Record<string, { schema: object }> }
  responses: Record<string, { description: string; content?: Record<string, { schema?: object }> }>
  security: Record<string, unknown[]>[]
}

interface Document {
  openapi: string
  info: { title: string; version: string }
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>; securitySchemes: Record<string, object> }
}

async function readDocument(options: Parameters<typeof openFleet>[0] = {}): Promise<Document> {
  const reply = await (await openFleet({ workers: [], ...options })).get('/openapi.json')
  expect(reply.status).toBe(200)
  expect(reply.headers.get('content-type')).toBe('application/json')
  return (await reply.json()) as Document
}

const operationsOf = (document: Document) =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

test('GET /openapi.json is public and describes the enabled routes', async () => {
  const document = await readDocument({ plugins: { auth: { apiKey: 'k' } } })
  expect(document.openapi).toBe('3.1.0')
  for (const path of [
    '/v1/chat/completions',
    '/rerank',
    '/v1/models',
    '/readiness',
    '/workers/{worker_id}',
  ]) {
    expect(document.paths).toHaveProperty([path])
  }
  expect(
    document.paths['/v1/chat/completions'].post.requestBody?.content['application/json'].schema,
  ).toMatchObject({
    required: expect.arrayContaining(['model', 'messages']),
  })
})

test('every operation has a unique id, summary, listed tag, its path parameters, responses, and a known security scheme', async () => {
  const document = await readDocument()
  const operations = operationsOf(document)
  const tags = new Set(document.tags.map(({ name }) => name))
  expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length)
  for (const { path, method, operation } of operations) {
    const at = `${method} ${path}`
    expect(['get', 'post', 'put', 'patch', 'delete'], at).toContain(method)
    expect(operation.operationId, at).toMatch(/^[a-z][A-Za-z0-9]+$/)
    expect(operation.summary, at).not.toBe('')
    expect(
      operation.tags.every((tag) => tags.has(tag)),
      at,
    ).toBe(true)
    expect(
      Object.keys(operation.responses).some((status) => status.startsWith('2')),
      at,
    ).toBe(true)
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path')
    expect(
      declared.map(({ name }) => name),
      at,
    ).toEqual(inPath)
    for (const need of operation.security) {
      for (const name of Object.keys(need))
        expect(document.components.securitySchemes, at).toHaveProperty(name)
    }
  }
})

/** Every plugin with routes. */
const ALL_ROUTES = {
  conversations: {},
  debug: {},
  generations: {},
  history: {},
  limits: {},
  messages: {},
  parsers: {},
  reload: {},
  responses: {},
  tokenizers: {},
  wasm: {},
}

/** Opens a fleet with a store in a temporary folder. */
async function openAll() {
  const dir = mkdtempSync(join(tmpdir(), 'weir-openapi-'))
  folders.push(dir)
  return openFleet({ plugins: { ...ALL_ROUTES, storage: { dir } } })
}
const folders: string[] = []
afterAll(() => {
  for (const dir of folders) rmSync(dir, { recursive: true, force: true })
})

test('optional parameters and bodies are not marked as required', async () => {
  const fleet = await openAll()
  const document = (await (await fleet.get('/openapi.json')).json()) as Document
  for (const { path, method, operation } of operationsOf(document)) {
    const query = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query')
    expect(
      query.filter(({ required }) => required),
      `${method} ${path}`,
    ).toEqual([])
    if (operation.requestBody === undefined || path.includes('{')) continue
    const reply = await fleet.post(path, '')
    // The worker responds 404, so the body was accepted.
    const isTaken = reply.status < 300
    expect([path, operation.requestBody.required], await reply.text()).toEqual([path, !isTaken])
  }
  const { parameters } = document.paths['/workers/{worker_id}'].get
  expect(parameters).toMatchObject([{ name: 'worker_id', required: true, schema: { format: 'uuid' } }])
})

test('operations that may stream have an event-stream response', async () => {
  const document = (await (await (await openAll()).get('/openapi.json')).json()) as Document
  const streaming = operationsOf(document).filter(
    ({ operation }) => operation.responses[200]?.content?.['text/event-stream'] !== undefined,
  )
  expect(streaming.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
    'get /v1/responses/{response_id}',
    'post /generate',
    'post /v1/chat/completions',
    'post /v1/completions',
    'post /v1/messages',
    'post /v1/responses',
  ])
})

test('every schema is valid JSON Schema 2020-12, and every reference resolves', async () => {
  const document = await readDocument()
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  for (const { path, method, operation } of operationsOf(document)) {
    const contents = [
      ...Object.values(operation.requestBody?.content ?? {}),
      ...Object.values(operation.responses).flatMap(({ content }) => Object.values(content ?? {})),
    ]
    const schemas = [
      ...contents.flatMap(({ schema }) => (schema === undefined ? [] : [schema])),
      ...(operation.parameters ?? []).map(({ schema }) => schema),
    ]
    for (const schema of schemas) {
      expect(ajv.validateSchema(schema), `${method} ${path}: ${ajv.errorsText(ajv.errors)}`).toBe(true)
    }
  }
  for (const [, name] of JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)) {
    expect(document.components.schemas).toHaveProperty(name)
  }
})

test('security follows access, and is absent if keys are not checked', async () => {
  const guarded = await readDocument()
  expect(guarded.paths['/v1/chat/completions'].post.security).toEqual([{ servingKey: [] }])
  expect(guarded.paths['/workers'].get.security).toEqual([{ controlPlaneKey: [] }])
  expect(guarded.paths['/health'].get.security).toEqual([])
  const openDocument = await readDocument({ kernel: { auth: 'off' } })
  for (const { operation } of operationsOf(openDocument)) expect(operation.security).toEqual([])
})
