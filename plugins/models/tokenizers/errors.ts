/** Errors of the tokenizers plugin. */
import { defineErrors, shortValue } from '#kernel'

export const tokenizerErrors = defineErrors('tokenizers', {
  tokenizer_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) => `no tokenizer has the id or name ${shortValue(id)}`,
  },
  tokenizer_unknown: {
    kind: 'bad_request',
    source: 'client',
    text: (model: string, known: string) =>
      `no tokenizer is loaded for the model ${shortValue(model)}; loaded: ${known}`,
  },
  tokenizer_path_not_allowed: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, path: string) =>
      `${field} '${path}' cannot be loaded: requests may name files only inside the folders of plugins.tokenizers.roots, which is empty`,
  },
  tokenizer_exists: {
    kind: 'conflict',
    source: 'client',
    text: (name: string) => `a tokenizer named '${name}' is already loaded; DELETE it first`,
  },
  tokenizer_limit_reached: {
    kind: 'unavailable',
    source: 'gateway',
    text: (limit: number) => `the limit of ${limit} tokenizers is reached (plugins.tokenizers.maxTokenizers)`,
  },
  tokenizer_busy: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the tokenizer queue is full (plugins.tokenizers.queueLimit); retry later',
  },
  chat_template_failed: {
    kind: 'bad_request',
    source: 'client',
    text: (problem: string) => `the chat template rejected the request: ${problem}`,
  },
  chat_template_limit_exceeded: {
    kind: 'bad_request',
    source: 'client',
    text: (tokenizer: string, problem: string) =>
      `rendering the chat with the tokenizer '${tokenizer}' was stopped: ${problem}`,
  },
  token_id_out_of_range: {
    kind: 'bad_request',
    source: 'client',
    text: (got: unknown) =>
      `tokens must be integers from 0 to 4294967295, in one list or in a list of lists (got ${shortValue(got)})`,
  },
  tokenization_failed: {
    kind: 'internal',
    source: 'gateway',
    text: (problem: string) => `the text could not be encoded: ${problem}`,
  },
  detokenization_failed: {
    kind: 'internal',
    source: 'gateway',
    text: (problem: string) => `the tokens could not be decoded: ${problem}`,
  },
})
