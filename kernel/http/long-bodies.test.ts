/** Long bodies are scanned in steps, alternating with other work of the thread and with one another. */
import { expect, test } from 'vitest'
import type { ScannedBody } from './json-body.ts'
import { LongBodies } from './long-bodies.ts'

const STEP_BYTES = 65_536
const bodyOf = (bytes: number) => Buffer.from(`{"model":"m","a":[${'1,'.repeat(bytes / 2)}1]}`)
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('other work of the thread runs after each step', async () => {
  const bodies = new LongBodies(128)
  let scanned: ScannedBody | null = null
  bodies.scan(
    bodyOf(16 * STEP_BYTES),
    () => true,
    (done) => {
      scanned = done
    },
  )
  expect(scanned).toBeNull()
  let turns = 0
  for (; scanned === null; turns++) await nextTurn()
  expect(scanned).toMatchObject({ state: 'whole', scan: { model: 'm' } })
  expect(turns).toBeGreaterThanOrEqual(16)
})

test('a shorter body does not wait for the end of a longer one', async () => {
  const bodies = new LongBodies(128)
  const done: string[] = []
  const scan = (name: string, body: Buffer) =>
    bodies.scan(
      body,
      () => true,
      () => void done.push(name),
    )
  scan('long', bodyOf(16 * STEP_BYTES))
  scan('short', bodyOf(STEP_BYTES))
  while (done.length < 2) await nextTurn()
  expect(done).toEqual(['short', 'long'])
})

test('a scan that is no longer needed stops, and the next one runs', async () => {
  const bodies = new LongBodies(128)
  const done: string[] = []
  let isWanted = true
  bodies.scan(
    bodyOf(16 * STEP_BYTES),
    () => isWanted,
    () => void done.push('left'),
  )
  await nextTurn()
  isWanted = false
  bodies.scan(
    bodyOf(16 * STEP_BYTES),
    () => true,
    ({ state }) => void done.push(state),
  )
  while (done.length === 0) await nextTurn()
  expect(done).toEqual(['whole'])
})
