/** Topics over the real BroadcastChannel; each `Topics` acts as a thread, since a channel delivers within a thread too. */
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, test } from 'vitest'
import { defineTopic, type Topic } from '../contracts/token.ts'
import { createLogger } from '../observe/log.ts'
import { Topics, topicBytes } from './topics.ts'

const log = createLogger({ level: 'silent', thread: 0 })
const Words = defineTopic<unknown>('words')

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

function thread(memory: SharedArrayBuffer, threadIndex: number): Topic<unknown> {
  const topics = new Topics({ memory, threadIndex, log })
  closers.push(() => topics.close())
  return topics.topic(Words)
}

function open(count: number): { memory: SharedArrayBuffer; threads: Topic<unknown>[] } {
  const memory = new SharedArrayBuffer(topicBytes(count))
  return { memory, threads: Array.from({ length: count }, (_, index) => thread(memory, index)) }
}

function listen(topic: Topic<unknown>, key: string) {
  const seen: unknown[] = []
  return { seen, close: topic.subscribe(key, (event) => void seen.push(event)) }
}

describe('an event reaches every thread with a listener for its key', () => {
  test('from any thread, in order, and no other key', async () => {
    const { threads } = open(3)
    for (const from of threads) {
      const listeners = threads.map((topic) => listen(topic, 'a'))
      const other = listen(threads[1], 'b')
      for (const word of ['one', 'two', 'three']) expect(from.publish('a', word)).toBe(true)
      for (const { seen } of listeners) await expect.poll(() => seen).toEqual(['one', 'two', 'three'])
      expect(other.seen).toEqual([])
      for (const { close } of [...listeners, other]) close()
    }
  })

  test('on the same thread before publish returns', () => {
    const { threads } = open(1)
    const { seen, close } = listen(threads[0], 'a')
    threads[0].publish('a', 1)
    expect(seen).toEqual([1])
    close()
    expect([threads[0].publish('a', 2), seen]).toEqual([false, [1]])
  })

  test('with two listeners of one thread, one of which unsubscribes twice', async () => {
    const { threads } = open(2)
    const [first, second] = [listen(threads[1], 'a'), listen(threads[1], 'a')]
    first.close()
    first.close()
    threads[0].publish('a', 1)
    await expect.poll(() => second.seen).toEqual([1])
    expect(first.seen).toEqual([])
  })
})

test('an event without a listener is not cloned, and publish returns false', () => {
  const { threads } = open(2)
  expect(threads[0].publish('a', () => {})).toBe(false)
  listen(threads[1], 'a').close()
  expect(threads[0].publish('a', () => {})).toBe(false)
})

test('an event that cannot be cloned fails the publisher, and later events arrive', async () => {
  const { threads } = open(2)
  const { seen } = listen(threads[1], 'a')
  expect(() => threads[0].publish('a', () => {})).toThrow('could not be cloned')
  threads[0].publish('a', 1)
  await expect.poll(() => seen).toEqual([1])
})

test('a listener that throws does not affect other listeners', async () => {
  const { threads } = open(2)
  threads[1].subscribe('a', () => {
    throw new Error('thrown')
  })
  const { seen } = listen(threads[1], 'a')
  threads[0].publish('a', 1)
  await expect.poll(() => seen).toEqual([1])
  threads[1].publish('a', 2)
  expect(seen).toEqual([1, 2])
})

test("two gateways of one process do not receive each other's events", async () => {
  const [one, other] = [open(2), open(2)]
  const foreign = listen(other.threads[1], 'a')
  const own = listen(one.threads[1], 'a')
  one.threads[0].publish('a', 1)
  await expect.poll(() => own.seen).toEqual([1])
  expect(foreign.seen).toEqual([])
})

test('the subscriptions of a dead thread end when its replacement starts, which receives its own events', async () => {
  const { memory, threads } = open(2)
  const worker = new Worker(new URL('../../test/fixtures/threads/topic-listener.ts', import.meta.url), {
    workerData: { memory, threadIndex: 1 },
  })
  closers.push(() => worker.terminate())
  const heard: unknown[] = []
  worker.on('message', (message) => heard.push(message))
  await expect.poll(() => heard).toEqual(['listening'])
  expect(threads[0].publish('a', 'to the thread')).toBe(true)
  await expect.poll(() => heard).toEqual(['listening', 'to the thread'])
  await worker.terminate()

  const successor = thread(memory, 1)
  expect(threads[0].publish('a', 'without a subscriber')).toBe(false)
  const { seen } = listen(successor, 'a')
  threads[0].publish('a', 'to the successor')
  await expect.poll(() => seen).toEqual(['to the successor'])
})
