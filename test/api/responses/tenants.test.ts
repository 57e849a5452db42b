/** Isolation of tenants: every route, and every field that can hold an id. */
import { expect, test } from 'vitest'
import { NATIVE, nativeAnswer, text } from '../../support/responses-script.ts'
import { openResponses, type ResponseJson, type ResponsesFleet } from './responses-fleet.ts'
import { connect } from './socket-client.ts'

const SECRET = 'marzipan'
const custom = {
  id: 'ctc_up',
  type: 'custom_tool_call',
  status: 'completed',
  call_id: 'call_9',
  name: 'c',
  input: SECRET,
}

const as = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })

async function openTenants(): Promise<ResponsesFleet> {
  const fleet = await openResponses(undefined, {
    workers: [{ spec: { apis: ['responses'] } }],
    plugins: {
      auth: { tenantKeys: ['a:key-a', 'b:key-b'] },
      conversations: {},
      tokenizers: { load: [{ name: 'test-model', source: 'weir:sample' }] },
    },
  })
  const sealed = { id: 'rs_up', type: 'reasoning', summary: [], encrypted_content: SECRET }
  fleet.workers[0].script(NATIVE, nativeAnswer({ output: [sealed, text(SECRET), custom] }))
  return fleet
}

/** Creates the data of the first tenant, and returns its ids by the place where they can be used. */
async function fill({ gateway, workers }: ResponsesFleet) {
  const send = async (path: string, body: object): Promise<ResponseJson> => {
    const reply = await fetch(gateway.url + path, {
      method: 'POST',
      headers: as('key-a'),
      body: JSON.stringify(body),
    })
    expect(reply.status).toBe(200)
    return reply.json()
  }
  const create = { model: 'test-model', input: SECRET }
  const include = ['reasoning.encrypted_content']
  const done = await send('/v1/responses', { ...create, include })
  const item = { type: 'message', role: 'user', content: SECRET }
  const conversation = await send('/v1/conversations', { metadata: { word: SECRET }, items: [item] })
  const used = await send('/v1/responses', { ...create, conversation: conversation.id })
  const compacted = await send('/v1/responses/compact', create)
  workers[0].script(NATIVE, () => new Promise(() => {}))
  const running = await send('/v1/responses', { ...create, background: true })
  // The last one is in flight at the worker from here on.
  await workers[0].received(NATIVE, 4)
  const listed = await fetch(`${gateway.url}/v1/conversations/${conversation.id}/items`, {
    headers: as('key-a'),
  })
  return {
    responses: [done.id, used.id, running.id] as string[],
    conversation: conversation.id as string,
    items: [...done.output, ...((await listed.json()) as ResponseJson).data].map(
      ({ id }: ResponseJson) => id as string,
    ),
    sealed: [done.output[0], compacted.output.at(-1)] as ResponseJson[],
  }
}

test('no route and no field reveals data of another tenant', async () => {
  const fleet = await openTenants()
  const { gateway, workers } = fleet
  const theirs = await fill(fleet)
  const asked = workers[0].requestsTo(NATIVE).length
  const received: string[] = []
  const seen = new Set<string>()

  const call = async (
    method: string,
    route: string,
    path: string,
    body?: object,
  ): Promise<[number, string]> => {
    seen.add(`${method} ${route}`)
    const init = { method, headers: as('key-b'), body: body === undefined ? undefined : JSON.stringify(body) }
    const reply = await fetch(gateway.url + path, init)
    const said = await reply.text()
    received.push(said)
    return [reply.status, said]
  }
  /** The response to a foreign id must equal the one to an unknown id. */
  const alike = async (
    method: string,
    route: string,
    id: string,
    none: string,
    make: (id: string) => [string, object?],
  ) => {
    const [foreign, unknown] = [
      await call(method, route, ...make(id)),
      await call(method, route, ...make(none)),
    ]
    expect([method, route, foreign[0], foreign[1].replaceAll(id, 'ID')]).toEqual([
      method,
      route,
      unknown[0],
      unknown[1].replaceAll(none, 'ID'),
    ])
    expect(foreign[0]).toBeGreaterThanOrEqual(400)
  }

  // Ids in paths.
  const one = '/v1/responses/{response_id}'
  for (const id of theirs.responses)
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '?stream=true'],
      ['GET', '?stream=true&starting_after=0'],
      ['GET', '?include[]=reasoning.encrypted_content'],
      ['GET', '/input_items'],
      ['POST', '/cancel'],
      ['DELETE', ''],
    ])
      await alike(method, one + rest.replace(/\?.*/, ''), id, 'resp_none', (which) => [
        `/v1/responses/${which}${rest}`,
      ])
  const chat = '/v1/conversations/{conversation_id}'
  const message = { type: 'message', role: 'user', content: 'x' }
  for (const [method, rest, body] of [
    ['GET', '', undefined],
    ['POST', '', { metadata: { a: 'b' } }],
    ['GET', '/items', undefined],
    ['POST', '/items', { items: [message] }],
    ['DELETE', '', undefined],
  ] as const)
    await alike(method, chat + rest, theirs.conversation, 'conv_none', (id) => [
      `/v1/conversations/${id}${rest}`,
      body,
    ])
  const [, madeText] = await call('POST', '/v1/conversations', '/v1/conversations', {})
  const own = JSON.parse(madeText).id
  for (const id of theirs.items) {
    for (const method of ['GET', 'DELETE'])
      for (const where of [theirs.conversation, own])
        await alike(method, `${chat}/items/{item_id}`, id, 'msg_none', (which) => [
          `/v1/conversations/${where}/items/${which}`,
        ])
    await alike('GET', `${chat}/items`, id, 'msg_none', (which) => [
      `/v1/conversations/${own}/items?after=${which}`,
    ])
    await alike('POST', `${chat}/items`, id, 'msg_none', (which) => [
      `/v1/conversations/${own}/items`,
      { items: [{ type: 'item_reference', id: which }] },
    ])
  }

  // Ids in bodies, for every route with a response request.
  const places: [string, object][] = [
    ['/v1/responses', {}],
    ['/v1/responses', { stream: true }],
    ['/v1/responses', { background: true }],
    ['/v1/responses', { store: false }],
    ['/v1/responses/compact', {}],
    ['/v1/responses/input_tokens', {}],
  ]
  const base = { model: 'test-model', input: 'hi' }
  for (const [path, more] of places) {
    const withBody = (make: (id: string) => object) => (id: string) =>
      [path, { ...base, ...more, ...make(id) }] as [string, object]
    for (const id of theirs.responses)
      await alike(
        'POST',
        path,
        id,
        'resp_none',
        withBody((which) => ({ previous_response_id: which })),
      )
    await alike(
      'POST',
      path,
      theirs.conversation,
      'conv_none',
      withBody((which) => ({ conversation: which })),
    )
    for (const id of theirs.items) {
      await alike(
        'POST',
        path,
        id,
        'msg_none',
        withBody((which) => ({ input: [{ type: 'item_reference', id: which }] })),
      )
      const answer = (which: string) => ({
        type: 'mcp_approval_response',
        approval_request_id: which,
        approve: true,
      })
      await alike(
        'POST',
        path,
        id,
        'mcpr_none',
        withBody((which) => ({ input: [answer(which)] })),
      )
    }
    for (const item of theirs.sealed.slice(1)) {
      const [status, said] = await call('POST', path, path, { ...base, ...more, input: [item] })
      expect([status, JSON.parse(said).error.code]).toEqual([400, 'invalid_encrypted_content'])
    }
  }
  // Reasoning of another tenant is dropped, like any that cannot be decrypted.
  const count = async (input: unknown[]) => {
    const reply = await fetch(`${gateway.url}/v1/responses/input_tokens`, {
      method: 'POST',
      headers: as('key-b'),
      body: JSON.stringify({ model: 'test-model', input }),
    })
    return [reply.headers.get('x-weir-warning'), await reply.json()]
  }
  const hi = { role: 'user', content: 'hi' }
  const damaged = { ...theirs.sealed[0], encrypted_content: 'damaged' }
  // The tokenizer loads in the background.
  await expect.poll(async () => (await count([hi]))[1]).toMatchObject({ object: 'response.input_tokens' })
  const dropped = await count([hi, theirs.sealed[0]])
  expect(dropped).toEqual(await count([hi, damaged]))
  expect(dropped).toEqual(['encrypted_reasoning_dropped; items=1', (await count([hi]))[1]])
  const { turn } = await connect(gateway.url, 'test-model', 'key-b')
  for (const id of theirs.responses) {
    const events = await turn({ input: 'hi', previous_response_id: id })
    expect(events.map(({ error }) => error?.code)).toEqual(['previous_response_not_found'])
  }

  // Nothing was revealed to the tenant or to a worker, and all data still exists.
  expect(received.join('\n')).not.toContain(SECRET)
  expect(workers[0].requestsTo(NATIVE)).toHaveLength(asked)
  for (const id of theirs.responses) {
    const reply = await fetch(`${gateway.url}/v1/responses/${id}`, { headers: as('key-a') })
    expect([reply.status, ((await reply.json()) as ResponseJson).status === 'cancelled']).toEqual([
      200,
      false,
    ])
  }
  const kept = await fetch(`${gateway.url}/v1/conversations/${theirs.conversation}`, { headers: as('key-a') })
  expect(await kept.json()).toMatchObject({ metadata: { word: SECRET } })

  // Every documented route was called.
  const document = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as ResponseJson
  const all = Object.entries(document.paths as Record<string, object>)
    .filter(([path]) => /^\/v1\/(responses|conversations)/.test(path))
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
  const shape = (route: string) => route.replaceAll(/\{[^}]*\}/g, '{}')
  expect([...new Set([...seen].map(shape))].sort()).toEqual(all.map(shape).sort())
})
