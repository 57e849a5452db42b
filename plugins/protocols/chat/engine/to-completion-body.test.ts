import { expect, test } from 'vitest'
import type { EngineAttempt } from '#kernel'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { toCompletionBody } from './to-chat-body.ts'

const attempt = (request: object) =>
  ({
    model: 'm',
    stream: false,
    worker: workerEntry({ slot: 0 }),
    request: {
      prompt: { kind: 'tokens', tokenIds: Uint32Array.of(5, 6) },
      sampling: { maxTokens: 3 },
      constraint: null,
      choices: 1,
      topLogprobs: 2,
      ...request,
    },
  }) as unknown as EngineAttempt

test('token ids become the prompt, and log probabilities a number', () => {
  expect(JSON.parse(toCompletionBody(attempt({})).toString())).toEqual({
    model: 'm',
    prompt: [5, 6],
    max_tokens: 3,
    logprobs: 2,
  })
})

test('log probabilities of requested ids are rejected, as completions do not support them', () => {
  expect(() => toCompletionBody(attempt({ logprobsOf: [7] }))).toThrow(
    expect.objectContaining({ code: 'unsupported_by_worker', param: 'token_ids_logprob' }),
  )
})
