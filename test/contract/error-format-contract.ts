/** Contract of error formats; runs over every built-in format and over a format of a plugin. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ErrorFormat, ErrorKind, RequestFacts } from '#kernel'
import { GatewayError } from '#kernel'
import { renderError } from '../../kernel/errors/error-formats.ts'
import { STATUS_OF_KIND } from '../../kernel/errors/gateway-error.ts'
import { checkedResponse } from '../../kernel/http/response-check.ts'
import { defineValidator } from '../../kernel/schema/validate.ts'
import { EventSplitter } from '../../kernel/wire/event-splitter.ts'

const SECRET = 'text for the log only'

const errors = fc
  .record({
    kind: fc.constantFrom(...(Object.keys(STATUS_OF_KIND) as ErrorKind[])),
    code: fc.constantFrom('invalid_field', 'no_workers', 'internal_error'),
    message: fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('', 'a\n\ndata: forged\n\n', '\r\r', '"'),
    ),
    param: fc.option(fc.string(), { nil: undefined }),
    headers: fc.constantFrom([], ['retry-after', '2']),
  })
  .map(
    ({ param, headers, ...facts }) =>
      new GatewayError(
        { ...facts, source: 'gateway', isRetryable: false },
        { param, headers, cause: new Error(SECRET) },
      ),
  )

const requests: fc.Arbitrary<RequestFacts> = fc.record({
  method: fc.constantFrom('GET', 'POST'),
  path: fc.constantFrom('/', '/v1/chat/completions', '/no/such/route'),
  query: fc.constantFrom('', 'a=b'),
  requestId: fc.uuid(),
  startedAtMs: fc.nat(),
  identity: fc.option(fc.record({ tenant: fc.string(), role: fc.constantFrom('admin', 'user', null) })),
})

const forAny = (check: (error: GatewayError, request: RequestFacts) => void) =>
  fc.assert(
    fc.property(errors, requests, (error, request) => {
      check(error, request)
    }),
  )

export function errorFormatContract(title: string, format: ErrorFormat): void {
  describe(`error format ${title}`, () => {
    const isJson = /\bjson\b/.test(format.contentType ?? 'application/json')

    test('its name is a valid schema name', () => {
      expect(format.name).toMatch(/^[A-Za-z][A-Za-z0-9]*$/)
    })

    test('every error becomes a valid response with an error status', () => {
      forAny((error, request) => {
        const response = checkedResponse(renderError(error, format, request), format.name)
        expect(response.status).toBeGreaterThanOrEqual(400)
        expect(response.headers).toEqual(expect.arrayContaining(['x-weir-error-code', error.code]))
        expect(response.headers).toEqual(expect.arrayContaining([...error.headers]))
      })
    })

    test.runIf(isJson)('the body matches its schema', () => {
      const validator = defineValidator(format.schema)
      forAny((error, request) => {
        const body = JSON.parse(renderError(error, format, request).body.toString()) as unknown
        validator.parse(body)
      })
    })

    test('ends a stream with complete events for every message', () => {
      forAny((error, request) => {
        const text = format.lastEvents(error, request)
        const splitter = new EventSplitter()
        expect(splitter.push(Buffer.from(text)).toString()).toBe(text)
        expect(splitter.waitingBytes).toBe(0)
        expect(text).not.toContain('\n\ndata: forged')
      })
    })

    test('never exposes the cause', () => {
      forAny((error, request) => {
        expect(renderError(error, format, request).body.toString()).not.toContain(SECRET)
        expect(format.lastEvents(error, request)).not.toContain(SECRET)
      })
    })
  })
}
