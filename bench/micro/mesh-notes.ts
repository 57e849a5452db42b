/**
 * Cost of what gateways share about prompts: a pick of cache_aware on a data thread with and without notes, and notes
 * written, read and applied on control. Run `node --conditions=weir-source bench/micro/mesh-notes.ts`.
 */
import type { PickRequest, Policy } from '#kernel'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'
import { NoteBatch, NoteBatchReader } from '../../plugins/routing/policies/notes/note-batch.ts'
import { NoteRing } from '../../plugins/routing/policies/notes/note-ring.ts'
import { chatRequest, PolicyThread } from '../../test/support/policy-fleet.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import { candidatesOf } from '../support/candidates.ts'
import { type Figure, verdict } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const ROUNDS = 25
const PICKS = 4_000
const NOTES = 1_000_000
const WORKERS = 30
const PROMPT_BYTES = 4_096
/** Prompts that each pick repeats. */
const KNOWN = 500

const view = candidatesOf(Array.from({ length: WORKERS }, (_, slot) => workerEntry({ slot, models: ['m'] })))

/** A data thread of a gateway that shares prompts. */
function openNoting(): PolicyThread {
  const memory = new SharedMemory()
  const prefixes = new NoteRing((name, bytes) => memory.block(name, bytes), 'prefixes-notes')
  return new PolicyThread({}, memory, { prefixes, sessions: null })
}

const requestOf = (number: number) =>
  chatRequest(`${number} ${'words of a prompt '.repeat(PROMPT_BYTES / 18)}`)

/** CPU time of `work` in microseconds, for each of `count`. */
function cpuMicros(count: number, work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

function pickFigures(): Figure[] {
  const plain = new PolicyThread().policy('cache_aware')
  const noting = openNoting().policy('cache_aware')
  const known = Array.from({ length: KNOWN }, (_, i) => requestOf(i))
  let next = KNOWN
  const values: Record<'plainNew' | 'notingNew' | 'plainKnown' | 'notingKnown', number[]> = {
    plainNew: [],
    notingNew: [],
    plainKnown: [],
    notingKnown: [],
  }
  const pickAll = (policy: Policy, requests: readonly PickRequest[]) =>
    cpuMicros(PICKS, () => {
      for (let i = 0; i < PICKS; i++) policy.pick(view, requests[i % requests.length])
    })
  for (let round = -2; round < ROUNDS; round++) {
    const fresh = Array.from({ length: PICKS }, () => requestOf(next++))
    const measured = {
      plainKnown: pickAll(plain, known),
      notingKnown: pickAll(noting, known),
      plainNew: pickAll(plain, fresh),
      notingNew: pickAll(noting, fresh),
    }
    if (round < 0) continue
    for (const name of Object.keys(values) as (keyof typeof values)[]) values[name].push(measured[name])
  }
  const added = (noted: readonly number[], base: readonly number[]) =>
    noted.map((value, i) => value - base[i])
  return [
    { name: 'pick, 4 KiB seen before, without notes', unit: 'µs', values: values.plainKnown },
    { name: 'pick, 4 KiB never seen, without notes', unit: 'µs', values: values.plainNew },
    {
      name: 'added by notes, 4 KiB seen before',
      unit: 'µs',
      values: added(values.notingKnown, values.plainKnown),
      target: 0.5,
    },
    {
      name: 'added by notes, 4 KiB never seen',
      unit: 'µs',
      values: added(values.notingNew, values.plainNew),
      target: 0.5,
      note: '32 notes',
    },
  ]
}

function noteFigures(): Figure[] {
  const messages: Buffer[] = []
  const batch = new NoteBatch((message) => messages.push(message))
  const reader = new NoteBatchReader()
  const lows = Int32Array.from({ length: NOTES }, (_, i) => Math.imul(i + 1, 0x9e3779b1))
  const { state } = new PolicyThread()
  const rounds = Array.from({ length: ROUNDS }, () => {
    messages.length = 0
    const written = cpuMicros(NOTES, () => {
      for (let i = 0; i < NOTES; i++) batch.add(lows[i], i, 128, i % WORKERS)
      batch.flush()
    })
    let sum = 0
    const read = cpuMicros(NOTES, () => {
      for (const message of messages) {
        reader.open(message)
        reader.read(NOTES, (low, high, value, worker) => {
          sum ^= low ^ high ^ value ^ worker
        })
      }
    })
    const applied = cpuMicros(NOTES, () => {
      for (const message of messages) {
        reader.open(message)
        reader.read(NOTES, (low, high, value, worker) =>
          state.prefixes.learn(low, high, value, (worker << 16) | 1),
        )
      }
    })
    return { written, read, applied, sum }
  })
  const figure = (name: string, key: 'written' | 'read' | 'applied', target: number): Figure => ({
    name,
    unit: 'µs',
    values: rounds.map((round) => round[key]),
    target,
    note: 'per note, of a million',
  })
  return [
    figure('written into messages', 'written', 0.2),
    figure('read from messages', 'read', 0.1),
    figure('read and applied to the table', 'applied', 1),
  ]
}

const figures = [...pickFigures(), ...noteFigures()]
const question = 'what do notes for other gateways cost?'
console.log(renderTable({ scenario: 'mesh-notes', question, figures }))
if (figures.some((figure) => verdict(figure) === 'missed')) process.exitCode = 1
