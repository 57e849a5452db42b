import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { Logger } from '../contracts/log.ts'
import { RejectedCredentials } from './rejected-credentials.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function open() {
  const lines: [level: string, fields: object, message: string][] = []
  const log: Logger = {
    debug: (fields, message) => void lines.push(['debug', fields, message]),
    info: (fields, message) => void lines.push(['info', fields, message]),
    warn: (fields, message) => void lines.push(['warn', fields, message]),
    error: (fields, message) => void lines.push(['error', fields, message]),
    child: () => log,
  }
  return { lines, credentials: new RejectedCredentials(log) }
}

test('one line when a worker starts to reject, one when it accepts again', () => {
  const { lines, credentials } = open()
  const worker = workerEntry({ slot: 0, url: 'http://w:1', apiKey: 'secret' })
  credentials.accepted(worker)
  for (let nth = 0; nth < 100; nth++) credentials.rejected(worker, 401)
  vi.advanceTimersByTime(60_000)
  for (let nth = 0; nth < 100; nth++) credentials.accepted(worker)
  expect(lines).toEqual([
    [
      'error',
      { worker: 'http://w:1', status: 401, has_api_key: true },
      "worker rejects the gateway's credentials",
    ],
    ['info', { worker: 'http://w:1' }, "worker accepts the gateway's credentials again"],
  ])
})

test('a worker that alternates is logged at most twice a minute, independent of other workers', () => {
  const { lines, credentials } = open()
  const [worker, other] = [workerEntry({ slot: 0 }), workerEntry({ slot: 1 })]
  for (let second = 0; second < 600; second++) {
    credentials.rejected(worker, 403)
    credentials.accepted(worker)
    vi.advanceTimersByTime(1_000)
  }
  expect(lines.length).toBeLessThanOrEqual(20)
  credentials.rejected(other, 403)
  expect(lines.at(-1)?.[1]).toMatchObject({ worker: other.url, status: 403, has_api_key: false })
})
