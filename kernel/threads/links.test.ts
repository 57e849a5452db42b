/** Both ends of the link, joined by a message channel on one thread. */
import { MessageChannel } from 'node:worker_threads'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { createLogger } from '../observe/log.ts'
import { ControlLink } from './control-link.ts'
import { DataLink } from './data-link.ts'
import { RestartBackOff } from './data-threads.ts'
import { ReplicaCells } from './link.ts'
import type { LinkUpMessage } from './messages.ts'

const log = createLogger({ level: 'silent', thread: 0 })
const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

function join(control: ControlLink, index = 1) {
  const { port1, port2 } = new MessageChannel()
  const replicas = control.published()
  const attachment = control.attach((message, transfer) => port1.postMessage(message, transfer))
  port1.on('message', (message: LinkUpMessage) => attachment.receive(message))
  closers.push(() => port1.close())
  return { data: new DataLink({ port: port2, index, replicas, log }), attachment }
}

test('without data threads one link is both ends', async () => {
  const link = new ControlLink({ log, isData: true })
  const seen: unknown[] = []
  link.replica('r', 'first').listeners.push((next) => seen.push(next))
  link.onCommand('c', (payload) => [payload])
  expect(await link.command('c', 1)).toEqual([1])
  await link.publish('r', 'second')
  expect(seen).toEqual(['second'])
  expect([link.isControl, link.isData, link.index]).toEqual([true, true, 0])
})

test('a second handler of a command is rejected on control and ignored elsewhere', async () => {
  const control = new ControlLink({ log })
  const { data } = join(control)
  control.onCommand('c', () => 'control')
  expect(() => control.onCommand('c', () => 'again')).toThrow('the command c has two handlers')
  data.onCommand()
  expect(await data.command('c', null)).toBe('control')
})

test('a thread attached between two publications starts with the first and receives the second', async () => {
  const control = new ControlLink({ log })
  await control.publish('r', 'one')
  const { data } = join(control)
  expect(data.replica('r', 'initial')).toMatchObject({ current: 'one', version: 1 })
  await control.publish('r', 'two')
  expect(data.replica('r', 'initial')).toMatchObject({ current: 'two', version: 2 })
})

test('a publication waits for the promises of listeners on any thread, even if one of them fails', async () => {
  const control = new ControlLink({ log })
  const { data, attachment } = join(control)
  const taken = Promise.withResolvers<void>()
  const done: string[] = []
  data.replica('r', null).listeners.push(() => Promise.reject(new Error('not mine')))
  data.replica('r', null).listeners.push(() => taken.promise)
  const first = control.publish('r', 'one').then(() => done.push('one'))
  await expect.poll(() => data.replica('r', null).current).toBe('one')
  // Listeners of one value do not run for another.
  await control.publish('other', 1)
  expect(done).toEqual([])
  taken.resolve()
  await first
  expect(done).toEqual(['one'])
  control
    .replica('own', null)
    .listeners.push(() => new Promise((resolve) => setImmediate(() => resolve(done.push('own')))))
  await control.publish('own', 1)
  expect(done).toEqual(['one', 'own'])
  data.replica('slow', null).listeners.push(() => new Promise(() => {}))
  const never = control.publish('slow', 1)
  await expect.poll(() => data.replica('slow', null).current).toBe(1)
  // A closed thread counts as having acknowledged everything.
  attachment.detach()
  await never
})

test('a publication waits for every running thread, not for closed ones', async () => {
  const control = new ControlLink({ log })
  join(control, 1)
  const silent = control.attach(() => {})
  let isDone = false
  const published = control.publish('r', 1).then(() => {
    isDone = true
  })
  await control.command('c', null).catch(() => {})
  expect(isDone).toBe(false)
  silent.detach()
  silent.detach()
  await published
})

test('concurrent publications each get their own acknowledgements', async () => {
  const control = new ControlLink({ log })
  const { data } = join(control)
  await Promise.all([control.publish('r', 1), control.publish('s', 'x'), control.publish('r', 2)])
  expect(data.replica('r', 0)).toMatchObject({ current: 2, version: 2 })
  expect(data.replica('s', '')).toMatchObject({ current: 'x', version: 1 })
})

test('a command whose payload or result cannot be cloned is rejected', async () => {
  const control = new ControlLink({ log })
  const { data } = join(control)
  control.onCommand('give', () => () => {})
  await expect(data.command('give', null)).rejects.toThrow('could not be cloned')
  await expect(data.command('give', () => {})).rejects.toThrow('could not be cloned')
})

test('only control publishes', async () => {
  const { data } = join(new ControlLink({ log }))
  await expect(data.publish('r')).rejects.toThrow('only control may publish r')
})

test('a listener that throws affects neither the swap nor other listeners', () => {
  const cells = new ReplicaCells(log)
  const seen: unknown[] = []
  const cell = cells.cell('r', 0)
  cell.listeners.push(
    () => {
      throw new Error('listener')
    },
    (next) => seen.push(next),
  )
  cells.swap('r', { value: 1, version: 1 })
  expect([cell.current, seen]).toEqual([1, [1]])
})

test('versions only increase, in any order of arrival', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 20 })), (versions) => {
      const cells = new ReplicaCells(log)
      const seen: unknown[] = []
      const cell = cells.cell('r', 0)
      cell.listeners.push((next) => seen.push(next))
      for (const version of versions) cells.swap('r', { value: version, version })
      const newest = versions.filter((version, index) => version > Math.max(0, ...versions.slice(0, index)))
      expect(seen).toEqual(newest)
      expect(cell.version).toBe(Math.max(0, ...versions))
    }),
  )
})

test('early crashes are restarted with increasing delays, after a long life at once', () => {
  const backOff = new RestartBackOff()
  const early = Array.from({ length: 8 }, () => backOff.delayMs(10))
  expect(early).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000])
  expect([backOff.delayMs(5_000), backOff.delayMs(4_999)]).toEqual([0, 100])
})
