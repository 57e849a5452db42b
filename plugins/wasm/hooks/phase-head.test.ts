import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { GuestInput } from '../../../wasm-sdk/abi.ts'
import { headOf, requestJson } from './phase-head.ts'

/** Plain strings and those that JSON escapes: quotes, control characters, lone surrogates. */
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.constantFrom('', '"', '\\', '\u0000', '\ud800', '\udc00', 'é', '\u007f'),
)
const needs = { credentials: false, request_body: false, response_headers: false, response_body: false }

test('the head equals JSON.stringify of the facts, for any characters', () => {
  const facts = fc.record({
    id: text,
    method: text,
    path: text,
    query: text,
    route: text,
    tenant: fc.option(text),
    client_ip: text,
  })
  fc.assert(
    fc.property(facts, fc.array(fc.tuple(text, text), { maxLength: 4 }), (request, pairs) => {
      const input = { abi: 2, phase: 'request', now_ms: 7, request } as unknown as GuestInput
      const head = headOf({
        input,
        request: requestJson(input),
        needs: { ...needs, headers: true } as never,
        fetched: null,
        requestHeaders: pairs.flat(),
        responseHeaders: null,
        status: 0,
      })
      expect(JSON.parse(head)).toEqual({ ...input, request: { ...request, headers: pairs } })
    }),
  )
})

test('only requested headers are written, and an empty list is short', () => {
  const input = { abi: 2, phase: 'request', now_ms: 7, request: { id: 'i', tenant: null } } as never
  const headers = (wanted: true | string[]) =>
    JSON.parse(
      headOf({
        input,
        request: '{"id":"i"',
        needs: { ...needs, headers: wanted } as never,
        fetched: null,
        requestHeaders: ['accept', 'a"b', 'authorization', 'Bearer key', 'x-team', 'one'],
        responseHeaders: null,
        status: 0,
      }),
    ).request.headers
  expect(headers([])).toEqual([])
  expect(headers(['x-team'])).toEqual([['x-team', 'one']])
  expect(headers(true)).toEqual([
    ['accept', 'a"b'],
    ['x-team', 'one'],
  ])
})

test('a request that differs from the previous one in any fact has a different head', () => {
  const first = {
    id: 'a',
    method: 'POST',
    path: '/v1/chat/completions',
    query: '',
    route: '/v1/chat/completions',
    tenant: 'auth:one',
    client_ip: '192.0.2.1',
  }
  const read = (request: object) => JSON.parse(`${requestJson({ request } as GuestInput)}}`)
  expect(read(first)).toEqual(first)
  expect(read({ ...first, id: 'b"' })).toEqual({ ...first, id: 'b"' })
  for (const name of Object.keys(first)) {
    const other = { ...first, [name]: 'x' }
    expect(read(other)).toEqual(other)
    expect(read(first)).toEqual(first)
  }
  expect(read({ ...first, tenant: null })).toEqual({ ...first, tenant: null })
})
