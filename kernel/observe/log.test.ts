import { expect, test } from 'vitest'
import type { Identity } from '../contracts/auth.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { RequestContext } from '../contracts/request.ts'
import { writeAccessLine } from './access-log.ts'
import { createAccessLogger, createLogger, toTerminalLine } from './log.ts'

function recorder() {
  const lines: string[] = []
  return { lines, destination: { write: (line: string) => void lines.push(line) } }
}

test('a line is one JSON object with level name, ISO time, thread and fields', () => {
  const { lines, destination } = recorder()
  const log = createLogger({ level: 'info', thread: 3, destination })
  log.child({ plugin: 'chat' }).warn({ count: 2, text: 'a\nb\u001b[31m' }, 'two\nlines')
  log.debug({}, 'not written')
  expect(lines).toHaveLength(1)
  expect([lines[0].trimEnd().includes('\n'), lines[0].includes('\u001b')]).toEqual([false, false])
  const line = JSON.parse(lines[0])
  expect(line).toMatchObject({ level: 'warn', thread: 3, plugin: 'chat', count: 2, msg: 'two\nlines' })
  expect(new Date(line.time).toISOString()).toBe(line.time)
})

test('fields with credentials are redacted, at the top and one level down', () => {
  const { lines, destination } = recorder()
  const log = createLogger({ level: 'info', thread: 0, destination })
  const secrets = {
    authorization: 's3cret',
    api_key: 's3cret',
    apiKey: 's3cret',
    'x-api-key': 's3cret',
    key: 's3cret',
  }
  log.info({ ...secrets, worker: { ...secrets }, url: 'kept' }, 'oops')
  log.child(secrets).info({}, 'oops again')
  expect(lines.join()).not.toContain('s3cret')
  expect(JSON.parse(lines[0])).toMatchObject({
    url: 'kept',
    apiKey: '[redacted]',
    worker: { key: '[redacted]' },
  })
})

test('an error is written with its stack', () => {
  const { lines, destination } = recorder()
  createLogger({ level: 'error', thread: 0, destination }).error({ err: new TypeError('bad') }, 'failed')
  expect(JSON.parse(lines[0]).err).toMatchObject({ type: 'TypeError', message: 'bad' })
})

/** The members of a context that the access log reads. */
function finished(over: Partial<RelayContext>): RelayContext {
  const context = {
    requestId: 'req-1',
    method: 'POST',
    path: '/workers/7',
    route: { path: '/workers/:worker_id' },
    status: 200,
    startedAtMs: 100,
    firstByteAtMs: 0,
    bytesOut: 0,
    identity: null,
    errorCode: null,
    modules: null,
    isAborted: false,
    clientAddress: '10.0.0.9',
    workerUrl: null,
    model: null,
    attempts: 0,
    query: 'token=s3cret',
    ...over,
  }
  return context as unknown as RelayContext
}

test('a request has one line with its known facts, without the query', () => {
  const { lines, destination } = recorder()
  const identity: Identity = { tenant: 'auth:a', role: 'user' }
  const ctx = finished({
    identity,
    firstByteAtMs: 103.456,
    bytesOut: 12,
    workerUrl: 'http://w',
    model: 'm',
    usage: { input: 7, output: 3, cached: 0, reasoning: 0 },
    attempts: 2,
  })
  writeAccessLine(createAccessLogger({ level: 'info', thread: 1, destination }), ctx, 7.0004)
  const { time, ...line } = JSON.parse(lines[0])
  expect(line).toEqual({
    level: 'info',
    thread: 1,
    request_id: 'req-1',
    method: 'POST',
    path: '/workers/7',
    route: '/workers/:worker_id',
    status: 200,
    duration_ms: 7,
    ttfb_ms: 3.46,
    bytes_out: 12,
    tenant: 'auth:a',
    client: '10.0.0.9',
    model: 'm',
    worker: 'http://w',
    prompt_tokens: 7,
    completion_tokens: 3,
    attempts: 2,
    msg: 'request',
  })
  expect(time).toMatch(/Z$/)
})

test('the line marks estimated usage', () => {
  const { lines, destination } = recorder()
  const log = createAccessLogger({ level: 'info', thread: 1, destination })
  const usage = { input: 7, output: 3, cached: 0, reasoning: 0 }
  writeAccessLine(log, finished({ usage: { ...usage, isEstimated: true } }), 1)
  writeAccessLine(log, finished({ usage }), 1)
  expect(lines.map((line) => JSON.parse(line).usage_estimated)).toEqual([true, undefined])
})

test('a probe that reports not ready is no error', () => {
  const { lines, destination } = recorder()
  const log = createAccessLogger({ level: 'info', thread: 1, destination })
  const route = { path: '/readiness', isProbe: true } as RequestContext['route']
  writeAccessLine(log, finished({ status: 503, route }), 1)
  expect(JSON.parse(lines[0])).toMatchObject({ level: 'info', status: 503 })
})

test('the line names the modules that were called', () => {
  const { lines, destination } = recorder()
  const log = createAccessLogger({ level: 'info', thread: 1, destination })
  writeAccessLine(log, finished({ modules: ['gate', 'count'] }), 1)
  writeAccessLine(log, finished({}), 1)
  expect(lines.map((line) => JSON.parse(line).modules)).toEqual([['gate', 'count'], undefined])
})

test('the level follows from the status, and a stream that broke after its 200 is an error', () => {
  const { lines, destination } = recorder()
  const log = createAccessLogger({ level: 'info', thread: 1, destination })
  for (const status of [200, 304, 404, 500, 503]) writeAccessLine(log, finished({ status }), 1)
  writeAccessLine(log, finished({ status: 0, isAborted: true }), 1)
  writeAccessLine(log, finished({ status: 502, errorCode: 'connect_failed' }), 1)
  writeAccessLine(log, finished({ status: 200, errorCode: 'read_response_body_failed' }), 1)
  const written = lines.map((line) => JSON.parse(line))
  expect(written.map(({ level }) => level)).toEqual([
    'info',
    'info',
    'warn',
    'error',
    'error',
    'warn',
    'error',
    'error',
  ])
  expect(written[5]).toMatchObject({ aborted: true })
  expect(written[6]).toMatchObject({ error: 'connect_failed' })
  expect(written[6]).not.toHaveProperty('worker')
})

test('on a terminal a line is readable and control characters are escaped', () => {
  const json = {
    level: 'warn',
    time: '2026-01-02T03:04:05.678Z',
    thread: 1,
    a: 'b c',
    d: '\u001b[2J\u009b',
    n: 1,
  }
  const line = toTerminalLine(JSON.stringify({ ...json, msg: 'hi\u001b[2J' }))
  expect(line).toContain('03:04:05.678')
  expect(line).toContain('[1] "hi\\u001b[2J" a="b c" d="\\u001b[2J?" n=1')
  expect(line.endsWith('\n')).toBe(true)
  expect(toTerminalLine('not JSON\n')).toBe('not JSON\n')
})

test('on a terminal an error has its stack, line by line', () => {
  const line = toTerminalLine(
    JSON.stringify({
      level: 'error',
      time: '',
      thread: 0,
      msg: 'm',
      err: { stack: 'Error: x\n  at y\u0007' },
    }),
  )
  expect(line).toContain('\n    Error: x\n')
  expect(line).not.toContain('\u0007')
})
