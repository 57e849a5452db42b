import { expect, test, vi } from 'vitest'
import type { Logger, WorkerEntry } from '#kernel'
import { DEFAULTS_LABEL, SamplingDefaults } from './engine/sampling-defaults.ts'

const worker = (text: string) =>
  ({ url: 'grpc://engine:1', labels: { [DEFAULTS_LABEL]: text } }) as unknown as WorkerEntry

test('defaults that are no JSON are left aside, with one line in the log', () => {
  const warn = vi.fn()
  const defaults = new SamplingDefaults({ warn } as unknown as Logger)
  const broken = worker('{"temperature": 0.7')
  for (let nth = 0; nth < 3; nth++) expect(defaults.fill({ topP: 0.5 }, broken)).toEqual({ topP: 0.5 })
  expect(warn.mock.calls).toEqual([[{ worker: 'grpc://engine:1' }, expect.stringContaining('not JSON')]])
})

test('five settings of an engine fill what the client leaves out', () => {
  const defaults = new SamplingDefaults({ warn: vi.fn() } as unknown as Logger)
  const all = { temperature: 0.7, top_p: 0.9, top_k: 20, min_p: 0.1, repetition_penalty: 1.1 }
  const given = worker(JSON.stringify({ ...all, max_tokens: 5, presence_penalty: 1 }))
  expect(defaults.fill({}, given)).toEqual({
    temperature: 0.7,
    topP: 0.9,
    topK: 20,
    minP: 0.1,
    repetitionPenalty: 1.1,
  })
  expect(defaults.fill({ temperature: 0, topK: -1 }, given)).toMatchObject({ temperature: 0, topK: -1 })
  expect(defaults.fill({ temperature: 1 }, worker(''))).toEqual({ temperature: 1 })
})
