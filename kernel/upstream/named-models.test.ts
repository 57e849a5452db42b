import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { Logger } from '../contracts/log.ts'
import { NamedModels } from './named-models.ts'

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
  const reports: object[] = []
  const log: Logger = {
    debug() {},
    info() {},
    warn: (fields) => void reports.push(fields),
    error() {},
    child: () => log,
  }
  const slots: number[] = []
  const models = new NamedModels({ misnamed: (slot) => void slots.push(slot) }, log)
  const answer = (named: string, asked = 'served') =>
    models.compare(worker, asked, Buffer.from(JSON.stringify({ id: 'a', model: named })))
  return { reports, slots, models, answer }
}

test('names that the worker is known by are expected', () => {
  const { reports, answer } = open()
  for (const named of ['served', 'alias', '/models/served']) expect(answer(named)).toBe(true)
  expect(reports).toEqual([])
})

test('a name is equal however its characters are written', () => {
  const { slots, models } = open()
  for (const written of ['a\\/b', 'mod\\u00e8le', 'modèle'])
    models.compare(worker, JSON.parse(`"${written}"`), Buffer.from(`{"model":"${written}"}`))
  expect(slots).toEqual([])
})

test('another name is reported once, and again when it changes', () => {
  const { reports, slots, answer } = open()
  for (let nth = 0; nth < 100; nth++) answer('other')
  expect(reports).toEqual([{ worker: 'http://w:1', model: 'served', named: 'other' }])
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
  const { slots, models, answer } = open()
  answer('other')
  vi.advanceTimersByTime(10_000)
  models.onWorkersChanged([worker])
  answer('other')
  models.onWorkersChanged([])
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
  const { slots, models } = open()
  models.compare(worker, 'served', Buffer.from(bytes))
  expect(slots.length).toBe(isFound ? 1 : 0)
})
