import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { Logger } from '../contracts/log.ts'
import { WorkerWarnings } from './worker-warnings.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const worker = workerEntry({
  slot: 3,
  id: 'w',
  url: 'http://w:1',
  models: [{ id: 'served', aliases: ['alias'] }],
  labels: { model_path: '/models/served' },
})

function open() {
  const lines: [level: string, fields: object, message: string][] = []
  const log: Logger = {
    debug: (fields, message) => void lines.push(['debug', fields, message]),
    info: (fields, message) => void lines.push(['info', fields, message]),
    warn: (fields, message) => void lines.push(['warn', fields, message]),
    error: (fields, message) => void lines.push(['error', fields, message]),
    child: () => log,
  }
  const slots: number[] = []
  const warnings = new WorkerWarnings({ misnamed: (slot) => void slots.push(slot) }, log)
  const answer = (named: string, asked = 'served') =>
    warnings.compareModel(worker, asked, Buffer.from(JSON.stringify({ id: 'a', model: named })))
  return { lines, slots, warnings, answer }
}

test('one line when a worker begins to reject, one when it accepts again', () => {
  const { lines, warnings } = open()
  const worker = workerEntry({ slot: 0, url: 'http://w:1', apiKey: 'secret' })
  warnings.working(worker)
  for (let nth = 0; nth < 100; nth++) warnings.found(worker, 'credentials', 401, 'm')
  vi.advanceTimersByTime(60_000)
  for (let nth = 0; nth < 100; nth++) warnings.working(worker)
  expect(lines).toEqual([
    [
      'error',
      { worker: 'http://w:1', status: 401, model: 'm', has_api_key: true },
      "worker rejects the gateway's credentials",
    ],
    ['info', { worker: 'http://w:1' }, 'worker answers as configured again'],
  ])
})

test('a worker that alternates is logged at most twice a minute, independent of other workers', () => {
  const { lines, warnings } = open()
  const [worker, other] = [workerEntry({ slot: 0 }), workerEntry({ slot: 1 })]
  for (let second = 0; second < 600; second++) {
    warnings.found(worker, 'credentials', 403, 'm')
    warnings.working(worker)
    vi.advanceTimersByTime(1_000)
  }
  expect(lines.length).toBeLessThanOrEqual(20)
  warnings.found(other, 'credentials', 403, 'm')
  expect(lines.at(-1)?.[1]).toMatchObject({ worker: other.url, status: 403, has_api_key: false })
})

test('names that the worker is known by are expected', () => {
  const { lines, answer } = open()
  for (const named of ['served', 'alias', '/models/served']) expect(answer(named)).toBe(true)
  expect(lines).toEqual([])
})

test('a name is equal however its characters are written', () => {
  const { slots, warnings } = open()
  for (const written of ['a\\/b', 'mod\\u00e8le', 'modèle'])
    warnings.compareModel(worker, JSON.parse(`"${written}"`), Buffer.from(`{"model":"${written}"}`))
  expect(slots).toEqual([])
})

test('another name is reported once, and again when it changes', () => {
  const { lines, slots, answer } = open()
  for (let nth = 0; nth < 100; nth++) answer('other')
  expect(lines.map(([, fields]) => fields)).toEqual([
    { worker: 'http://w:1', model: 'served', named: 'other' },
  ])
  vi.advanceTimersByTime(10_000)
  answer('other')
  expect(slots).toEqual([3])
  answer('third')
  vi.advanceTimersByTime(10_000)
  answer('served')
  answer('third')
  expect(slots).toEqual([3, 3, 3])
})

test('clients that choose the names cause a report every ten seconds at most', () => {
  const { slots, answer } = open()
  for (let second = 0; second < 60; second++) {
    for (let nth = 0; nth < 50; nth++) answer('loaded', `asked-${second}-${nth}`)
    vi.advanceTimersByTime(1_000)
  }
  expect(slots.length).toBe(6)
})

test('a worker that has left is forgotten', () => {
  const { slots, warnings, answer } = open()
  answer('other')
  vi.advanceTimersByTime(10_000)
  warnings.onWorkersChanged([worker])
  answer('other')
  warnings.onWorkersChanged([])
  answer('other')
  expect(slots).toEqual([3, 3])
})

test.each([
  ['beginning', `{"model" : "other","choices":"${'x'.repeat(9_000)}"}`, true],
  ['end', `{"choices":"${'x'.repeat(9_000)}","model":"other"}`, true],
  ['middle', `{"choices":"${'x'.repeat(9_000)}","model":"other","data":"${'x'.repeat(9_000)}"}`, false],
  ['event', 'event: message_start\ndata: {"type":"message_start","message":{"model":"other"}}\n\n', true],
  ['schema of a tool', '{"tools":[{"properties":{"model":{"type":"string"}}}],"model":"other"}', true],
  ['text', JSON.stringify({ text: '"model":"other"' }), false],
  ['cut off', '{"model":"oth', false],
  ['too long', `{"model":"${'x'.repeat(1_025)}"}`, false],
  ['null', '{"model":null}', false],
])('the name in the %s of an answer', (_where, bytes, isFound) => {
  const { slots, warnings } = open()
  warnings.compareModel(worker, 'served', Buffer.from(bytes))
  expect(slots.length).toBe(isFound ? 1 : 0)
})
