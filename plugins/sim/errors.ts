/** What the simulated engine refuses. */
import { defineErrors } from '#kernel'

export const simErrors = defineErrors('sim', {
  invalid_api_key: {
    kind: 'unauthorized',
    source: 'client',
    text: () => 'the Authorization header must be Bearer with the key of this engine',
  },
  sim_model_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (model: string) => `the model '${model}' does not exist`,
  },
  context_length_exceeded: {
    kind: 'bad_request',
    source: 'client',
    text: (promptTokens: number, maxModelLen: number) =>
      `the prompt has ${promptTokens} tokens, but the context holds ${maxModelLen}`,
  },
  response_not_kept: {
    kind: 'bad_request',
    source: 'client',
    text: (id: string) => `Previous response with id '${id}' not found: nothing is stored here`,
  },
  unknown_fault: {
    kind: 'bad_request',
    source: 'client',
    text: (word: string) => `'${word}' is no fault this engine knows`,
  },
  missing_prompt: {
    kind: 'bad_request',
    source: 'client',
    text: () => 'give either text or input_ids',
  },
  engine_queue_full: {
    kind: 'unavailable',
    source: 'client',
    text: (maxWaiting: number) => `${maxWaiting} requests wait already`,
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
    text: () => 'a scripted answer needs one of text, tool_calls and body',
  },
})
