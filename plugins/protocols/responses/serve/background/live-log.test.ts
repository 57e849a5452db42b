import { expect, test } from 'vitest'
import { LiveLog } from './live-log.ts'

test('a flush waits until all frames are stored, also those added during a write', async () => {
  const kept: string[] = []
  const writes: (() => void)[] = []
  const append = async (_tenant: string, _id: string, _first: number, frames: readonly string[]) => {
    await new Promise<void>((resolve) => writes.push(resolve))
    kept.push(...frames)
  }
  const nothing = () => {}
  const parts = {
    history: { events: { append } },
    live: { publish: nothing },
    host: { log: { warn: nothing } },
  }
  const log = new LiveLog(parts as never, 't', 'r')
  log.take('one', 0)
  let isFlushed = false
  const flushed = log.flush().then(() => {
    isFlushed = true
  })
  await expect.poll(() => writes.length).toBe(1)
  log.take('two', 1)
  writes[0]()
  await expect.poll(() => writes.length).toBe(2)
  expect([kept, isFlushed]).toEqual([['one'], false])
  writes[1]()
  await flushed
  expect(kept).toEqual(['one', 'two'])
})
