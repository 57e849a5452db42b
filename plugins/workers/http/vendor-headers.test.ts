import { describe, expect, test } from 'vitest'
import type { AuthService } from '../../../kernel/contracts/auth.ts'
import type { RelayContext } from '../../../kernel/contracts/relay-context.ts'
import { Transports } from '../../../kernel/upstream/transports.ts'
import { OutgoingHeaders } from '../../../kernel/upstream/worker-request.ts'
import { workerEntry } from '../../../test/support/worker-entry.ts'
import { CONTROL_POOL } from './control-call.ts'
import { httpControl } from './http-control.ts'
import { HttpTransport } from './http-transport.ts'

const transports = new Transports()
transports.addControl(httpControl(new HttpTransport(CONTROL_POOL)))

const local = workerEntry({ slot: 0 })
const openAi = workerEntry({
  slot: 1,
  url: 'https://api.openai.com/v1',
  runtimeType: 'external',
  isExternal: true,
  provider: 'openai',
})
const anthropic = workerEntry({
  slot: 2,
  url: 'https://api.anthropic.com',
  runtimeType: 'external',
  isExternal: true,
  provider: 'anthropic',
})

/** A relay context with these headers, all of them declared. */
function context(headers: Record<string, string>, forwarded: readonly string[] = []): RelayContext {
  const request: Pick<RelayContext, 'header' | 'forwardedHeaders' | 'requestId'> = {
    header: (name) => headers[name],
    forwardedHeaders: forwarded.flatMap((name) => (name in headers ? [name, headers[name]] : [])),
    requestId: 'id-1',
  }
  return request as RelayContext
}

function headersOf(worker = local, given: Record<string, string> = {}, forwarded: readonly string[] = []) {
  const outgoing = new OutgoingHeaders(['authorization'], transports)
  outgoing.auth = { isGatewayKey: (key) => key.includes('gate') } as AuthService
  const list = outgoing.of(context(given, forwarded), worker)
  const pairs = Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i], list[2 * i + 1]])
  expect(new Set(pairs.map(([name]) => name)).size).toBe(pairs.length)
  const { 'content-type': _type, ...rest } = Object.fromEntries(pairs)
  return rest
}

const keyed = (worker: typeof local) => ({ ...worker, apiKey: 'own' })

describe('credentials', () => {
  test("engines and OpenAI-compatible services get a bearer token, the worker's before the client's", () => {
    for (const worker of [local, openAi]) {
      expect(headersOf(keyed(worker), { authorization: 'Bearer mine' })).toEqual({
        authorization: 'Bearer own',
      })
      expect(headersOf(worker, { authorization: 'Bearer mine' })).toEqual({ authorization: 'Bearer mine' })
      expect(headersOf(worker, { authorization: 'Bearer gate' })).toEqual({})
      expect(headersOf(worker, { 'x-api-key': 'mine' })).toEqual({})
    }
  })

  const version = { 'anthropic-version': '2023-06-01' }

  test('Anthropic gets x-api-key and a version', () => {
    expect(headersOf(keyed(anthropic))).toEqual({ ...version, 'x-api-key': 'own' })
    const named = workerEntry({ slot: 3, url: 'http://proxy:1', provider: 'anthropic' })
    expect(headersOf(keyed(named))).toEqual({ ...version, 'x-api-key': 'own' })
  })

  test("the client's key is sent to Anthropic unchanged if the worker has none and it is not the gateway's", () => {
    expect(headersOf(anthropic, { 'x-api-key': 'mine' })).toEqual({ ...version, 'x-api-key': 'mine' })
    expect(headersOf(anthropic, { authorization: 'Bearer mine' })).toEqual({
      ...version,
      authorization: 'Bearer mine',
    })
    expect(headersOf(anthropic, { 'x-api-key': 'gate', authorization: 'Bearer gate' })).toEqual(version)
  })

  test("the client's version and betas are kept once each, without a second key", () => {
    const given = { 'anthropic-version': '2024-01-01', 'anthropic-beta': 'b', 'x-api-key': 'mine' }
    const expected = { 'anthropic-version': '2024-01-01', 'anthropic-beta': 'b', 'x-api-key': 'own' }
    expect(headersOf(keyed(anthropic), given)).toEqual(expected)
    expect(headersOf(keyed(anthropic), given, Object.keys(given))).toEqual(expected)
  })

  test('neither the host nor a label selects the Anthropic headers', () => {
    const given = { url: 'https://api.anthropic.com', labels: { provider: 'anthropic' } }
    for (const provider of [null, 'openai', 'mine']) {
      const other = workerEntry({ slot: 4, ...given, isExternal: provider !== null, provider })
      expect(headersOf(keyed(other))).toEqual({ authorization: 'Bearer own' })
    }
  })
})
