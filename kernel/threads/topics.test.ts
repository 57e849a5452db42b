/** Topics over links that are joined by message channels on one thread: order, bounds, readiness, and the end of threads. */
import { MessageChannel } from 'node:worker_threads'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { defineTopic, type Topic } from '../contracts/topic.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { createLogger } from '../observe/log.ts'
import { ControlLink } from './control-link.ts'
import { DataLink } from './data-link.ts'
import type { LinkUpMessage } from './messages.ts'

const log = createLogger({ level: 'silent', thread: 0 })
const Words = defineTopic<unknown>('words', { maxWaiting: 8 })

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

interface Thread {
  readonly topic: Topic<unknown>
  /** As Node does when a thread ends: its ports close. */
  end(): void
}

function thread(control: ControlLink, index: number): Thread {
  const { port1, port2 } = new MessageChannel()
  const attachment = control.attach(index, (message, transfer) => port1.postMessage(message, transfer))
  port1.on('message', (message: LinkUpMessage) => attachment.receive(message))
  const data = new DataLink({ port: port2, index, replicas: control.published(), log })
  const end = () => {
    attachment.detach()
    port1.close()
  }
  closers.push(end)
  return { topic: data.topics.topic(Words), end }
}

function open(count: number): { control: ControlLink; threads: Thread[]; topics: Topic<unknown>[] } {
  const control = new ControlLink({ log })
  const threads = Array.from({ length: count }, (_, place) => thread(control, place + 1))
  return { control, threads, topics: [control.topics.topic(Words), ...threads.map(({ topic }) => topic)] }
}

function listen(topic: Topic<unknown>, key: string, answer: () => void | Promise<void> = () => {}) {
  const seen: unknown[] = []
  const lost: Error[] = []
  const subscription = topic.subscribe(key, {
    onEvent: (event) => {
      seen.push(event)
      return answer()
    },
    onLost: (error) => void lost.push(error),
  })
  return { seen, lost, ...subscription, close: () => subscription.close() }
}

describe('an event reaches every thread that listens to its key', () => {
  test('from data thread, control and itself, in order, and nobody else', async () => {
    const { topics } = open(2)
    for (const from of topics) {
      const hearers = topics.map((topic) => listen(topic, 'a'))
      const other = listen(topics[1], 'b')
      await Promise.all([...hearers, other].map(({ ready }) => ready))
      for (const word of ['one', 'two', 'three']) expect(from.publish('a', word)).toBe(true)
      for (const { seen } of hearers) await expect.poll(() => seen).toEqual(['one', 'two', 'three'])
      expect(other.seen).toEqual([])
      for (const { close } of [...hearers, other]) close()
    }
  })

  test('two listeners of one thread, of which one leaves', async () => {
    const { topics } = open(2)
    const [first, second] = [listen(topics[2], 'a'), listen(topics[2], 'a')]
    await Promise.all([first.ready, second.ready])
    topics[1].publish('a', 1)
    await expect.poll(() => second.seen).toEqual([1])
    first.close()
    first.close()
    topics[1].publish('a', 2)
    await expect.poll(() => second.seen).toEqual([1, 2])
    expect(first.seen).toEqual([1])
  })

  test('also on a thread that is born later, and one that publishes later', async () => {
    const { control, topics } = open(1)
    const early = listen(topics[1], 'a')
    await early.ready
    const late = thread(control, 2)
    await expect.poll(() => late.topic.publish('a', 'from the young')).toBe(true)
    await expect.poll(() => early.seen).toEqual(['from the young'])
    const young = listen(late.topic, 'a')
    await young.ready
    topics[1].publish('a', 'to both')
    await expect.poll(() => young.seen).toEqual(['to both'])
  })

  test('with no data threads too, before publish returns', async () => {
    const topic = new ControlLink({ log, isData: true }).topics.topic(Words)
    const { seen, ready, close } = listen(topic, 'a')
    await ready
    topic.publish('a', 1)
    expect(seen).toEqual([1])
    close()
    expect([topic.publish('a', 2), topic.hasListeners('a'), seen]).toEqual([false, false, [1]])
  })
})

test('where nobody listens, publishing sends nothing and says so', async () => {
  const { topics } = open(2)
  expect(topics[1].publish('a', () => {})).toBe(false)
  const gone = listen(topics[2], 'a')
  await gone.ready
  expect(topics[1].hasListeners('a')).toBe(true)
  gone.close()
  await expect.poll(() => topics[1].hasListeners('a')).toBe(false)
})

test('once ready, no event of any thread is missed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 3 }), async (from, to) => {
      const { topics } = open(3)
      const { seen, ready } = listen(topics[to], 'a')
      await ready
      topics[from].publish('a', 'first')
      await expect.poll(() => seen).toEqual(['first'])
    }),
    { numRuns: 12 },
  )
})

describe('a listener that is too slow', () => {
  const never = () => new Promise<void>(() => {})

  test('loses its subscription and is told; the publisher and the others go on', async () => {
    const { topics } = open(2)
    const slow = listen(topics[2], 'a', never)
    const quick = listen(topics[2], 'a')
    await quick.ready
    for (let word = 0; word < 30; word += 1) {
      expect(topics[1].publish('a', word)).toBe(true)
      await expect.poll(() => quick.seen.length).toBe(word + 1)
    }
    expect([slow.seen, slow.lost.map((error) => (error as GatewayError).code)]).toEqual([
      [0],
      ['topic_listener_slow'],
    ])
    expect(slow.lost[0]).toBeInstanceOf(GatewayError)
  })

  test('as a whole thread that takes nothing in: a bounded number is on the way to it', async () => {
    const { topics } = open(2)
    const { seen, lost, ready } = listen(topics[2], 'a')
    await ready
    // One turn of the loop: nothing can be taken in meanwhile.
    for (let word = 0; word < 100; word += 1) topics[1].publish('a', word)
    await expect.poll(() => lost.length).toBe(1)
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    const again = listen(topics[2], 'a')
    await again.ready
    topics[1].publish('a', 'again')
    await expect.poll(() => again.seen).toEqual(['again'])
  })

  test('or fails, at once or later, is out too', async () => {
    const { topics } = open(0)
    const thrown = listen(topics[0], 'a', () => {
      throw new Error('thrown')
    })
    const rejected = listen(topics[0], 'a', () => Promise.reject(new Error('rejected')))
    topics[0].publish('a', 1)
    await expect.poll(() => rejected.lost.length).toBe(1)
    expect([thrown.lost[0].message, rejected.lost[0].message]).toEqual(['thrown', 'rejected'])
    expect(topics[0].hasListeners('a')).toBe(false)
  })
})

test('events that come while a listener works wait for it, in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 20 }), async (answersLater) => {
      const { topics } = open(0)
      let turn = 0
      const { seen, lost } = listen(topics[0], 'a', () =>
        answersLater[turn++] ? Promise.resolve() : undefined,
      )
      const words = answersLater.map((_, place) => place)
      for (const [place, word] of words.entries()) {
        topics[0].publish('a', word)
        if (place % 5 === 4) await new Promise(setImmediate)
      }
      await expect.poll(() => seen).toEqual(words)
      expect(lost).toEqual([])
    }),
    { numRuns: 50 },
  )
})

test('the subscriptions of a thread that ends vanish, and its successor listens anew', async () => {
  const { control, threads, topics } = open(2)
  const dead = listen(topics[2], 'a')
  await dead.ready
  topics[1].publish('a', 'seen')
  await expect.poll(() => dead.seen).toEqual(['seen'])
  threads[1].end()
  await expect.poll(() => topics[1].publish('a', 'unseen')).toBe(false)
  const successor = listen(thread(control, 2).topic, 'a')
  await successor.ready
  topics[1].publish('a', 'seen again')
  await expect.poll(() => successor.seen).toEqual(['seen again'])
})

test('readiness does not wait for a thread that ends', async () => {
  const control = new ControlLink({ log })
  const silent = control.attach(1, () => {})
  const { ready } = listen(control.topics.topic(Words), 'a')
  silent.detach()
  await ready
})

test('what cannot cross is told to the publisher, and later events arrive', async () => {
  const { topics } = open(2)
  const { seen, ready } = listen(topics[2], 'a')
  await ready
  expect(() => topics[1].publish('a', () => {})).toThrow('could not be cloned')
  topics[1].publish('a', 1)
  await expect.poll(() => seen).toEqual([1])
  expect(() => topics[1].publish('a', () => {})).toThrow('could not be cloned')
})
