/** Running requests of tenants in bounded memory. */
import { expect, test } from 'vitest'
import { RunningTable } from './running-table.ts'

const open = (tenants: number) =>
  new RunningTable(new SharedArrayBuffer(RunningTable.bytes(tenants, 1)), tenants, 0)

test('counts each tenant up to its limit, and again after a release', () => {
  const table = open(16)
  const rows = [table.enter('auth:a', 2), table.enter('auth:a', 2)]
  expect(rows.every((row) => row >= 0)).toBe(true)
  expect(table.enter('auth:a', 2)).toBe(-1)
  expect(table.enter('auth:b', 2)).toBeGreaterThanOrEqual(0)
  expect([table.running('auth:a'), table.running('auth:b'), table.running('auth:c')]).toEqual([2, 1, 0])
  table.release(rows[0])
  expect(table.enter('auth:a', 2)).toBeGreaterThanOrEqual(0)
})

test('rows of idle tenants are reused; while all are in use, another tenant is refused', () => {
  const table = open(16)
  for (let n = 0; n < 1_000; n++) table.release(table.enter(`idle ${n}`, 1))
  const rows = Array.from({ length: 16 }, (_, n) => table.enter(`busy ${n}`, 5))
  expect(new Set(rows).size).toBe(16)
  expect(table.enter('late', 5)).toBe(-1)
  expect(table.running('busy 3')).toBe(1)
  table.release(rows[3])
  expect(table.enter('late', 5)).toBe(rows[3])
})
