import { expect, test } from 'vitest'
import { ClientHeaders, isPlainEventStream } from './response-headers.ts'

const select = (more: readonly string[], ...headers: string[]) => new ClientHeaders(more).of(headers)

test.each(['content-type', 'retry-after', 'x-ratelimit-remaining-tokens', 'openai-processing-ms'])(
  '%s passes',
  (name) => expect(select([], name, '1')).toEqual([name, '1']),
)

test.each(['set-cookie', 'www-authenticate', 'location', 'server', 'x-internal-host', '__proto__'])(
  '%s passes only if the setting lists it',
  (name) => {
    expect(select([], name, '1', 'etag', '2')).toEqual(['etag', '2'])
    expect(select([name.toUpperCase()], name, '1')).toEqual([name, '1'])
  },
)

test.each(['connection', 'content-length', 'transfer-encoding', 'date', 'x-request-id'])(
  '%s does not pass even if the setting lists it',
  (name) => expect(select([name], name, '1')).toEqual([]),
)

test('headers listed in Connection are hop-by-hop', () => {
  const headers = ['etag', '1', 'connection', 'close, X-Hop', 'x-hop', '2', 'connection', 'vary', 'vary', '3']
  expect(select(['x-hop'], ...headers)).toEqual(['etag', '1'])
  expect(select([], 'connection', 'keep-alive', 'etag', '1')).toEqual(['etag', '1'])
})

test.each<[string, string | null, boolean]>([
  ['text/event-stream', null, true],
  ['text/event-stream; charset=utf-8', null, true],
  ['text/event-stream ;charset=utf-8', null, true],
  ['Text/Event-Stream', 'Identity', true],
  ['TEXT/EVENT-STREAM;charset=utf-8', 'identity', true],
  ['text/event-streams', null, false],
  ['text/event', null, false],
  ['text/event-stream', 'gzip', false],
  ['text/plain', null, false],
  ['', null, false],
])('%j with the coding %j is an event stream whose events can be seen: %s', (type, coding, isPlain) => {
  const headers = ['content-type', type, ...(coding === null ? [] : ['content-encoding', coding])]
  expect(isPlainEventStream(headers)).toBe(isPlain)
})
