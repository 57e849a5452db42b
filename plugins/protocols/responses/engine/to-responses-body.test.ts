import { expect, test } from 'vitest'
import type { EngineAttempt } from '#kernel'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { toResponsesBody } from './to-responses-body.ts'

const sentTo = (provider: string | null) => {
  const request = {
    prompt: { kind: 'chat', messages: [{ role: 'user', content: 'a' }] },
    sampling: {
      stop: ['x'],
      maxTokens: 9,
      topP: 0.5,
      topK: 4,
      minP: 0.1,
      repetitionPenalty: 1.1,
      frequencyPenalty: 0.2,
    },
    tools: [],
    toolChoice: null,
    constraint: null,
    reasoning: null,
    choices: 1,
    topLogprobs: null,
  }
  const worker = workerEntry({ slot: 0, provider })
  const attempt = { request, model: 'm', stream: false, worker } as unknown as EngineAttempt
  return JSON.parse(toResponsesBody(attempt, null).toString())
}

test('provider openai: engine-only members are dropped, all others are sent', () => {
  const shared = { max_output_tokens: 9, top_p: 0.5, frequency_penalty: 0.2 }
  const ofEngines = { stop: ['x'], top_k: 4, min_p: 0.1, repetition_penalty: 1.1 }
  expect(sentTo(null)).toMatchObject({ ...shared, ...ofEngines })
  const sent = sentTo('openai')
  expect(sent).toMatchObject(shared)
  for (const name of Object.keys(ofEngines)) expect(sent).not.toHaveProperty(name)
})

test('a response that is not streamed is requested as such, since some engines stream by default', () => {
  expect(sentTo(null)).toMatchObject({ stream: false })
})
