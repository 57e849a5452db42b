import { expect, test, vi } from 'vitest'
import type { Logger, WorkerEntry } from '#kernel'
import { DEFAULTS_LABEL, SamplingDefaults } from './grpc-engine.ts'

const worker = (text: string) =>
  ({ url: 'grpc://engine:1', labels: { [DEFAULTS_LABEL]: text } }) as unknown as WorkerEntry

test('defaults that are not JSON are ignored and logged once', () => {
  const warn = vi.fn()
  const defaults = new SamplingDefaults({ warn } as unknown as Logger)
  const broken = worker('{"temperature": 0.7')
  for (let nth = 0; nth < 3; nth++) expect(defaults.fill({ topP: 0.5 }, broken)).toEqual({ topP: 0.5 })
  expect(warn.mock.calls).toEqual([[{ worker: 'grpc://engine:1' }, expect.stringContaining('invalid JSON')]])
})

test('five defaults of an engine apply to settings that the client omits', () => {
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
