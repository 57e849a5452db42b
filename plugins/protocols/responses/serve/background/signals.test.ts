/** Signals between two gateways over real topics and a channel in memory. */
import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { createLogger } from '../../../../../kernel/observe/log.ts'
import { Topics, topicBytes } from '../../../../../kernel/threads/topics.ts'
import { CancelTopic, JOBS_KEY, JobsTopic, LiveTopic, liveKey, MeshSignals, SignalTopic } from './signals.ts'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
  vi.useRealTimers()
})

/** The topics of control, and what it sends. */
function gateway() {
  const memory = new SharedArrayBuffer(topicBytes(1))
  const topics = new Topics({ memory, threadIndex: 0, log: createLogger({ level: 'silent', thread: 0 }) })
  closers.push(() => topics.close())
  const sent: Buffer[] = []
  let take: (message: Buffer, from: string) => void = () => {}
  const [live, stops] = [topics.topic(LiveTopic), topics.topic(CancelTopic)]
  const [signals, jobs] = [topics.topic(SignalTopic), topics.topic(JobsTopic)]
  const channel = {
    send: (message: Buffer) => void sent.push(message),
    onMessage: (listener: typeof take) => {
      take = listener
    },
  }
  new MeshSignals(channel, { live, stops, signals, jobs })
  return { live, stops, signals, jobs, sent, receive: (message: Buffer) => take(message, 'other') }
}

function pair() {
  const [one, two] = [gateway(), gateway()]
  /** Delivers until nothing is on its way. */
  const exchange = () => {
    for (let rounds = 0; one.sent.length + two.sent.length > 0; rounds++) {
      if (rounds > 10) throw new Error('the gateways send without end')
      for (const message of one.sent.splice(0)) two.receive(message)
      for (const message of two.sent.splice(0)) one.receive(message)
    }
  }
  return { one, two, exchange }
}

const key = liveKey('tenant', 'resp_1')

test('the growth of a log is reported only to gateways with followers, until the log ends', () => {
  const { one, two, exchange } = pair()
  one.live.publish(key, { isOver: false })
  expect(one.sent).toEqual([])
  const seen: boolean[] = []
  two.live.subscribe(key, ({ isOver }) => void seen.push(isOver))
  two.signals.publish('follow', key)
  exchange()
  one.live.publish(key, { isOver: false })
  one.live.publish(key, { isOver: true })
  one.live.publish(key, { isOver: true })
  exchange()
  expect(seen).toEqual([false, true])
})

test('two gateways that follow the same response do not send their signals in circles', () => {
  const { one, two, exchange } = pair()
  one.signals.publish('follow', key)
  two.signals.publish('follow', key)
  exchange()
  one.live.publish(key, { isOver: false })
  exchange()
})

test('a follower that is gone is forgotten', () => {
  vi.useFakeTimers()
  const { one, two, exchange } = pair()
  two.signals.publish('follow', key)
  exchange()
  vi.advanceTimersByTime(14_000)
  two.signals.publish('follow', key)
  exchange()
  vi.advanceTimersByTime(14_000)
  one.live.publish(key, { isOver: false })
  expect(one.sent).toHaveLength(1)
  vi.advanceTimersByTime(2_000)
  one.live.publish(key, { isOver: false })
  expect(one.sent).toHaveLength(1)
})

test('the end of a response and a waiting job reach the other gateway once', () => {
  const { one, two, exchange } = pair()
  const seen: unknown[] = []
  two.stops.subscribe(key, (request) => void seen.push(request))
  two.jobs.subscribe(JOBS_KEY, () => void seen.push('job'))
  one.signals.publish('ended', key)
  one.jobs.publish(JOBS_KEY, null)
  exchange()
  expect(seen).toEqual([{ isHint: true }, 'job'])
})

test('no message makes a receiver throw or send', () => {
  const { receive, sent } = gateway()
  const message = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.string({ maxLength: 30 }).map((text) => Buffer.from(text)),
    fc
      .tuple(fc.nat(9), fc.string({ minLength: 22, maxLength: 22 }))
      .map(([kind, key]) => Buffer.from(kind + key)),
  )
  fc.assert(
    fc.property(message, (bytes) => {
      receive(Buffer.from(bytes))
      expect(sent).toEqual([])
    }),
  )
})
