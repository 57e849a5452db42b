import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { DatabaseHealth, DatabaseMonitor } from './database-health.ts'
import { postgresErrors } from './errors.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
})

const MEMORY = () => new SharedArrayBuffer(DatabaseHealth.BYTES)

/** A database in any state, and what was logged about it. */
function open(memory = MEMORY()) {
  const database = {
    migrations: 0,
    failure: null as Error | null,
    isWritable: true,
    migrate: async () => {
      if (database.failure !== null) throw database.failure
      database.migrations++
    },
    ping: async () => {
      if (database.failure !== null) throw database.failure
      return database.isWritable
    },
  }
  const lines: string[] = []
  const take = (_: object, text?: string) => lines.push(text ?? '')
  const health = new DatabaseHealth(memory)
  const log = { info: take, warn: take } as never
  return { database, lines, health, monitor: new DatabaseMonitor(database, health, log) }
}

const nextCheck = () => vi.advanceTimersByTimeAsync(1_000)

test('a database that is there at the start is migrated once', async () => {
  const { database, lines, health, monitor } = open()
  expect(health.problem()).toBe('the database has not been reached yet')
  expect(await monitor.start(3_000)).toBe(true)
  await nextCheck()
  expect([health.problem(), database.migrations, lines]).toEqual([null, 1, []])
  await monitor.stop()
})

test('the start waits for a limited time; the database is migrated when it is reached later', async () => {
  const { database, lines, health, monitor } = open()
  database.failure = postgresErrors.database_unreachable('ECONNREFUSED')
  const started = monitor.start(3_000)
  await vi.advanceTimersByTimeAsync(3_000)
  expect(await started).toBe(false)
  expect(health.problem()).toBe('the database is unreachable')
  database.failure = null
  await nextCheck()
  expect([health.problem(), database.migrations]).toEqual([null, 1])
  expect(lines).toEqual(['record store unavailable', 'record store available again'])
  await monitor.stop()
})

test('a database that cannot be used stops the start', async () => {
  const { database, health, monitor } = open()
  database.failure = postgresErrors.database_unsuitable('its encoding is SQL_ASCII')
  await expect(monitor.start(3_000)).rejects.toMatchObject({ code: 'database_unsuitable' })
  expect(health.problem()).toBe('the database cannot be used')
  await monitor.stop()
})

test('a failed connection of any thread is seen by all at once, and corrected by the next check', async () => {
  const memory = MEMORY()
  const { database, lines, health, monitor } = open(memory)
  await monitor.start(0)
  await nextCheck()
  new DatabaseHealth(memory).onUnreachable()
  expect(health.problem()).toBe('the database is unreachable')
  await nextCheck()
  expect([health.problem(), lines]).toEqual([null, []])
  database.isWritable = false
  await nextCheck()
  expect([health.problem(), lines]).toEqual(['the database is read-only', ['record store unavailable']])
  // Control knows better.
  new DatabaseHealth(memory).onUnreachable()
  expect(health.problem()).toBe('the database is read-only')
  await monitor.stop()
  database.isWritable = true
  await nextCheck()
  expect(health.problem()).toBe('the database is read-only')
})
