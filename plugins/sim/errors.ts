/** Errors of the simulated engine. */
import { defineErrors } from '#kernel'

export const simErrors = defineErrors('sim', {
  invalid_api_key: {
    kind: 'unauthorized',
    source: 'client',
    text: () => 'the Authorization header must be `Bearer <apiKey of this engine>`',
  },
  context_length_exceeded: {
    kind: 'bad_request',
    source: 'client',
    text: (promptTokens: number, maxModelLen: number) =>
      `the prompt has ${promptTokens} tokens, but must have fewer than the context length of ${maxModelLen}`,
  },
  context_full: {
    kind: 'internal',
    source: 'client',
    text: () => 'Context size has been exceeded.',
  },
  response_not_kept: {
    kind: 'bad_request',
    source: 'client',
    text: (id: string) => `Previous response with id '${id}' not found: this engine stores no responses`,
  },
  unknown_fault: {
    kind: 'bad_request',
    source: 'client',
    text: (word: string) => `unknown fault '${word}'`,
  },
  missing_prompt: {
    kind: 'bad_request',
    source: 'client',
    text: () => 'exactly one of text and input_ids is required',
  },
  engine_queue_full: {
    kind: 'unavailable',
    source: 'client',
    text: (maxWaiting: number) => `the queue is full (${maxWaiting} requests waiting)`,
  },
  request_exceeds_cache: {
    kind: 'bad_request',
    source: 'client',
    text: (tokens: number, cacheTokens: number) =>
      `prompt and answers need ${tokens} tokens, but the cache holds ${cacheTokens}`,
  },
  empty_answer: {
    kind: 'bad_request',
    source: 'client',
    text: () => 'a scripted answer needs one of text, reasoning, refusal, tool_calls and body',
  },
})
