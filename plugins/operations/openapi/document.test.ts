import { expect, test } from 'vitest'
import { adminErrorFormat, apiErrorFormat, type RouteDefinition, Type } from '#kernel'
import { buildDocument } from './document.ts'

/** An error format of a plugin. */
const messagesErrorFormat = { ...apiErrorFormat, name: 'MessagesError' }

const base = { handler() {}, access: 'api', errors: apiErrorFormat } as const
const routes: RouteDefinition[] = [
  {
    ...base,
    method: 'POST',
    path: '/v1/chat/completions',
    docs: {
      summary: 'Chat',
      tag: 'Inference',
      body: Type.Object({ model: Type.String(), top_k: Type.Optional(Type.Integer()) }),
      responses: {
        200: { description: 'ok', schema: Type.Object({ id: Type.String() }) },
        404: { description: 'unknown model' },
      },
    },
  },
  {
    ...base,
    method: 'POST',
    path: '/v1/messages',
    errors: messagesErrorFormat,
    takesApiKeyHeader: true,
    docs: {
      summary: 'M',
      tag: 'Inference',
      responses: { 200: { description: 'ok', contentType: 'text/event-stream' } },
    },
  },
  {
    ...base,
    method: 'GET',
    path: '/workers/:worker_id',
    access: 'admin',
    errors: adminErrorFormat,
    docs: {
      summary: 'One',
      tag: 'Workers',
      query: {
        model: Type.Optional(Type.String()),
        strict: Type.Boolean(),
        limit: Type.Integer({ default: 5 }),
      },
      responses: { 200: { description: 'ok' } },
    },
  },
  {
    ...base,
    method: 'DELETE',
    path: '/workers/:worker_id',
    access: 'admin',
    errors: adminErrorFormat,
    docs: { summary: 'Remove', tag: 'Workers', responses: { 204: { description: 'gone' } } },
  },
  {
    ...base,
    method: 'GET',
    path: '/health',
    access: 'public',
    docs: {
      summary: 'H',
      tag: 'Health',
      responses: { 200: { description: 'ok', contentType: 'text/plain' } },
    },
  },
]
const options = { title: 'T', version: '1', serverUrls: ['/'], usesAuth: true }
const document = JSON.parse(JSON.stringify(buildDocument(routes, options)))

test('paths, methods and path parameters are those of the routes', () => {
  expect(Object.keys(document.paths)).toEqual([
    '/v1/chat/completions',
    '/v1/messages',
    '/workers/{worker_id}',
    '/health',
  ])
  expect(Object.keys(document.paths['/workers/{worker_id}'])).toEqual(['get', 'delete'])
  expect(document.paths['/workers/{worker_id}'].get.parameters).toEqual([
    { name: 'worker_id', in: 'path', required: true, schema: { type: 'string' } },
    { name: 'model', in: 'query', required: false, schema: { type: 'string' } },
    { name: 'strict', in: 'query', required: true, schema: { type: 'boolean' } },
    { name: 'limit', in: 'query', required: false, schema: { type: 'integer', default: 5 } },
  ])
})

test('every operation has a unique id', () => {
  const ids = Object.values<Record<string, { operationId: string }>>(document.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  )
  expect(ids).toEqual([
    'postV1ChatCompletions',
    'postV1Messages',
    'getWorkersWorkerId',
    'deleteWorkersWorkerId',
    'getHealth',
  ])
})

test('request bodies are the schemas that validate requests', () => {
  expect(document.paths['/v1/chat/completions'].post.requestBody).toEqual({
    required: true,
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['model'],
          properties: { model: { type: 'string' }, top_k: { type: 'integer' } },
        },
      },
    },
  })
})

test('security follows the access of each route', () => {
  expect(document.paths['/v1/chat/completions'].post.security).toEqual([{ servingKey: [] }])
  expect(document.paths['/v1/messages'].post.security).toEqual([{ servingKey: [] }, { messagesKey: [] }])
  expect(document.paths['/workers/{worker_id}'].get.security).toEqual([{ controlPlaneKey: [] }])
  expect(document.paths['/health'].get.security).toEqual([])
  const open = buildDocument(routes, { ...options, usesAuth: false })
  for (const path of Object.values(open.paths)) {
    for (const operation of Object.values(path)) expect(operation.security).toEqual([])
  }
})

test('errors have the body of the route’s format', () => {
  const { responses } = document.paths['/v1/chat/completions'].post
  const ref = (name: string) => ({ 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } })
  expect(responses[404].content).toEqual(ref('ApiError'))
  expect(responses[401].content).toEqual(ref('ApiError'))
  expect(responses[403]).toBeUndefined()
  const admin = document.paths['/workers/{worker_id}'].get.responses
  expect(admin[403].content).toEqual(ref('AdminError'))
  expect(document.paths['/v1/messages'].post.responses.default.content).toEqual(ref('MessagesError'))
  expect(document.paths['/health'].get.responses[401]).toBeUndefined()
})

test('replies that are not JSON name their content type', () => {
  expect(document.paths['/health'].get.responses[200].content).toEqual({ 'text/plain': {} })
  expect(document.paths['/workers/{worker_id}'].delete.responses[204]).toEqual({ description: 'gone' })
})

test('every reference resolves and every tag is listed', () => {
  const text = JSON.stringify(document)
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    expect(document.components.schemas).toHaveProperty(name)
  }
  expect(document.tags).toEqual([{ name: 'Health' }, { name: 'Inference' }, { name: 'Workers' }])
})

test('optional bodies and parameters are not required, streams are declared, and ids have a format', () => {
  const route: RouteDefinition = {
    ...base,
    method: 'POST',
    path: '/things/:thing_id',
    docs: {
      summary: 'T',
      tag: 'T',
      params: { thing_id: Type.String({ format: 'uuid' }) },
      query: { model: Type.Optional(Type.String()) },
      body: Type.Optional(Type.Object({})),
      responses: { 200: { description: 'ok', schema: Type.Object({}), streams: true } },
    },
  }
  const { post } = JSON.parse(JSON.stringify(buildDocument([route], options))).paths['/things/{thing_id}']
  expect(post.requestBody.required).toBe(false)
  expect(post.parameters).toMatchObject([{ schema: { format: 'uuid' } }, { name: 'model', required: false }])
  expect(Object.keys(post.responses[200].content)).toEqual(['application/json', 'text/event-stream'])
})
