/** Compiles a published table to candidates: tiers, wildcards, aliases. */
import { describe, expect, test } from 'vitest'
import { workerEntry } from '../../test/support/worker-entry.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { CompiledTable } from './compiled-table.ts'

/** The slots of a model's tiers, best tier first; null if no worker serves it. */
function slotsOf(workers: readonly WorkerEntry[], model: string): number[][] | null {
  const route = new CompiledTable({ workers }).planOf(model).whole
  return route === null ? null : route.tiers.map((tier) => [...tier.slots])
}

describe('candidates of a model', () => {
  test('are tiers by priority, higher first, each in order of registration', () => {
    const workers = [
      workerEntry({ slot: 4, models: ['m'], priority: 10 }),
      workerEntry({ slot: 3, models: ['m'] }),
      workerEntry({ slot: 2, models: ['m'], priority: 90 }),
      workerEntry({ slot: 1, models: ['m'] }),
    ]
    expect(slotsOf(workers, 'm')).toEqual([[2], [3, 1], [4]])
  })

  test('wildcard workers come after those that list the model, whatever their priority', () => {
    const workers = [
      workerEntry({ slot: 0, priority: 100 }),
      workerEntry({ slot: 1, models: ['m'], priority: 1 }),
      workerEntry({ slot: 2, models: ['other'] }),
    ]
    expect(slotsOf(workers, 'm')).toEqual([[1], [0]])
    expect(slotsOf(workers, 'unlisted')).toEqual([[0]])
  })

  test('a worker that reports no models is a wildcard only while no worker lists one', () => {
    const unlisted = workerEntry({ slot: 0, isUnlisted: true })
    expect(slotsOf([unlisted, workerEntry({ slot: 1 })], 'm')).toEqual([[0, 1]])
    const listing = workerEntry({ slot: 1, models: ['m'] })
    expect(slotsOf([unlisted, listing], 'm')).toEqual([[1]])
    expect(slotsOf([unlisted, listing], 'unlisted')).toBeNull()
    expect(slotsOf([unlisted, listing, workerEntry({ slot: 2 })], 'unlisted')).toEqual([[2]])
  })

  test('an unlisted model without wildcard workers has no candidates', () => {
    expect(slotsOf([workerEntry({ slot: 0, models: ['m'] })], 'x')).toBeNull()
    expect(slotsOf([], 'x')).toBeNull()
  })

  test('`unknown` and an empty model have every worker as candidate', () => {
    const workers = [
      workerEntry({ slot: 0, models: ['a'] }),
      workerEntry({ slot: 1 }),
      workerEntry({ slot: 2, models: ['b'], priority: 60 }),
    ]
    expect(slotsOf(workers, 'unknown')).toEqual([[2], [0, 1]])
    expect(slotsOf(workers, '')).toEqual([[2], [0, 1]])
  })

  test('prefill and decode workers are no candidates for complete requests', () => {
    const workers = [
      workerEntry({ slot: 0, models: ['m'], workerType: 'prefill' }),
      workerEntry({ slot: 1, models: ['m'], workerType: 'decode' }),
    ]
    expect(slotsOf(workers, 'm')).toBeNull()
    expect(new CompiledTable({ workers }).byId.get('worker-1')).toBe(workers[1])
  })

  test('a worker that lists a model twice counts once', () => {
    expect(slotsOf([workerEntry({ slot: 0, models: ['m', 'n', 'm'] })], 'm')).toEqual([[0]])
  })
})

describe('aliases', () => {
  const workers = [
    workerEntry({ slot: 0, models: [{ id: 'llama-3', aliases: ['llama', 'qwen', 'unknown'] }] }),
    workerEntry({ slot: 1, models: ['qwen'] }),
    workerEntry({ slot: 2, models: [{ id: 'mistral', aliases: ['llama'] }] }),
    workerEntry({ slot: 3, models: ['llama-3'] }),
  ]
  const table = new CompiledTable({ workers })

  test('resolve to all workers of the canonical model', () => {
    expect(table.canonicalModel('llama')).toBe('llama-3')
    expect(slotsOf(workers, 'llama')).toEqual([[0, 3]])
  })

  test('are case-sensitive, and other names resolve to themselves', () => {
    expect(table.canonicalModel('Llama')).toBe('Llama')
    expect(table.canonicalModel('')).toBe('')
  })

  test('never hide a canonical model or `unknown`', () => {
    expect(table.canonicalModel('qwen')).toBe('qwen')
    expect(slotsOf(workers, 'qwen')).toEqual([[1]])
    expect(table.canonicalModel('unknown')).toBe('unknown')
  })
})
