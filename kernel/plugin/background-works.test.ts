import { expect, test } from 'vitest'
import type { Logger } from '../contracts/log.ts'
import { ThreadMetrics } from '../observe/metrics.ts'
import { BackgroundWorks } from './background-works.ts'

function open() {
  const logged: object[] = []
  const log: Logger = {
    debug: () => {},
    info: () => {},
    warn: () => {},
    error: (fields) => void logged.push(fields),
    child: () => log,
  }
  const metrics = new ThreadMetrics()
  const valuesOf = (name: string) =>
    metrics
      .snapshot()
      .flatMap((family) => (family.name === name && family.type !== 'histogram' ? family.series : []))
      .map(({ labels, value }) => [...labels, value])
  return { works: new BackgroundWorks(metrics, log), logged, valuesOf }
}

test('whenIdle resolves when the last work has ended; failures are logged and counted', async () => {
  const { works, logged, valuesOf } = open()
  await works.whenIdle()
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  works.add('a', first.promise)
  // The same promise again is separate work.
  works.add('b', first.promise)
  works.add('b', { done: second.promise })
  expect([works.size, valuesOf('weir_background_work_active')]).toEqual([
    3,
    [
      ['a', 1],
      ['b', 2],
    ],
  ])
  let isIdle = false
  const idle = works.whenIdle().then(() => {
    isIdle = true
  })
  first.resolve()
  await first.promise
  expect(isIdle).toBe(false)
  second.reject(new Error('no'))
  await idle
  expect(logged).toMatchObject([{ plugin: 'b', err: { message: 'no' } }])
  expect(valuesOf('weir_background_work_failed_total')).toEqual([['b', 1]])
  expect(valuesOf('weir_background_work_active')).toEqual([
    ['a', 0],
    ['b', 0],
  ])
})

test('cancel reaches all cancellable work, also after one that throws', () => {
  const { works, logged } = open()
  const cancelled: string[] = []
  const done = new Promise<void>(() => {})
  works.add('a', done)
  works.add('a', {
    done,
    cancel: () => {
      throw new Error('cannot')
    },
  })
  works.add('b', { done, cancel: () => void cancelled.push('b') })
  expect([works.cancel(), cancelled, logged.length]).toEqual([3, ['b'], 1])
})
