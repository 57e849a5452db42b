import { expect, test, vi } from 'vitest'
import { createLogger } from '../observe/log.ts'
import { ConnectionLimit, connectionsPerThread } from './connection-limit.ts'

const LIMITS = (open: string) => `Limit                     Soft Limit           Hard Limit           Units
Max processes             100                  100                  processes
Max open files            ${open.padEnd(20)} 1048576              files
`

test.each<[string, number | undefined, number, string, number]>([
  ['a descriptor beside each connection, and a reserve', undefined, 1, LIMITS('1024'), 448],
  ['shared by threads', undefined, 4, LIMITS('1024'), 112],
  ['few descriptors', undefined, 1, LIMITS('100'), 16],
  ['unlimited descriptors', undefined, 2, LIMITS('unlimited'), Number.POSITIVE_INFINITY],
  ['another system', undefined, 2, '', Number.POSITIVE_INFINITY],
  ['as configured', 1_000, 3, LIMITS('64'), 333],
  ['less than one a thread', 1, 4, '', 1],
  ['control alone', 50, 0, '', 50],
])('%s', (_name, configured, threads, limits, expected) => {
  expect(connectionsPerThread(configured, threads, limits)).toBe(expected)
})

test('accepting pauses at the limit, and resumes when a sixteenth is free', async () => {
  let canListen = false
  const server = { pauseAccepting: vi.fn(), resumeAccepting: vi.fn(async () => canListen) }
  const states: boolean[] = []
  const limit = new ConnectionLimit(server, {
    max: 32,
    log: createLogger({ level: 'silent', thread: 0 }),
    onChange: (isPaused) => states.push(isPaused),
  })
  for (let i = 0; i < 31; i++) limit.opened()
  expect(server.pauseAccepting).not.toHaveBeenCalled()
  limit.opened()
  limit.opened()
  expect(server.pauseAccepting).toHaveBeenCalledTimes(1)
  limit.closed()
  limit.closed()
  expect(server.resumeAccepting).not.toHaveBeenCalled()
  // Listening that failed is retried at the next close.
  limit.closed()
  await Promise.resolve()
  await Promise.resolve()
  expect(states).toEqual([true])
  canListen = true
  limit.closed()
  await expect.poll(() => states).toEqual([true, false])
  expect(server.resumeAccepting).toHaveBeenCalledTimes(2)
})
