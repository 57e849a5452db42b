import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { GuestInput } from '../../../wasm-sdk/abi.ts'
import { headOf, requestJson } from './phase-head.ts'

/** Plain ones, and what JSON has to escape: quotes, controls, halves of surrogate pairs. */
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.constantFrom('', '"', '\\', '\u0000', '\ud800', '\udc00', 'é', '\u007f'),
)
const needs = { credentials: false, request_body: false, response_headers: false, response_body: false }

test('the head is what JSON makes of the facts, whatever characters they have', () => {
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

test('only the headers that are wanted are written, and a list of none is short', () => {
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

test('requests that differ in any one fact from the one before are told apart', () => {
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
