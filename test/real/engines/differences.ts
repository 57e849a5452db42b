/** Requests of the matrix whose responses differ between an engine and the gateway, and why. */
const LIMITED =
  'An answer that ends at the token limit is `incomplete`; the engine calls it `completed`. A stream ends with `[DONE]`.'
const PREFILL = 'A whole answer of the engine begins with the assistant message that it continues.'
const NO_MESSAGES = 'The engine has no Messages: the gateway translates, and estimates the count.'
const STOPPED = 'The gateway ends the answer at the stop string, so that its usage is estimated.'
const NO_DONE = 'The gateway ends streams with `[DONE]`.'
const EACH_CHOICE = 'The engine reports the usage of one choice or prompt.'
const NO_EMBEDDINGS = 'A trial at the registration showed that the engine lacks the route.'
const NO_JSON = 'The error of the engine is text.'

type Differences = Readonly<Record<string, string>>

const named = (format: string, requests: readonly string[], reason: string): Differences =>
  Object.fromEntries(requests.map((request) => [`${format}: ${request}`, reason]))

const MESSAGES = ['whole', 'stream', 'stop sequence', 'prefill', 'count']
const RESPONSES = ['whole', 'stream', 'instructions']

const llamacpp: Differences = {
  'chat: image': 'The engine answers 500; it is a mistake of the client, so 400.',
  'chat: assistant last': PREFILL,
  'messages: prefill': PREFILL,
  'chat: n': EACH_CHOICE,
  'chat: n, stream': EACH_CHOICE,
  'completions: list of prompts': EACH_CHOICE,
  embeddings: NO_EMBEDDINGS,
  ...named('responses', RESPONSES, LIMITED),
}

const mlx: Differences = {
  'chat: image': 'The engine answers 404; it is a mistake of the client, so 400.',
  'chat: stop': STOPPED,
  'completions: stop': STOPPED,
  embeddings: NO_EMBEDDINGS,
  ...named('messages', MESSAGES, NO_MESSAGES),
  ...named('responses', RESPONSES, 'The engine has no Responses: the gateway translates.'),
}

const STREAMS = [
  'stream',
  'stream with usage',
  'n, stream',
  'logprobs, stream',
  'assistant last, stream',
] as const

const transformers: Differences = {
  ...named('chat', STREAMS, NO_DONE),
  'chat: stop': 'The engine keeps the stop string.',
  'chat: stop, stream': 'The engine keeps the stop string.',
  embeddings: NO_EMBEDDINGS,
  'chat: max_tokens 0': NO_JSON,
  'chat: empty messages': NO_JSON,
  'completions: stream': NO_DONE,
  'completions: stop': 'The engine keeps the stop string.',
  ...named('messages', MESSAGES, NO_MESSAGES),
  ...named('responses', RESPONSES, `${LIMITED} The engine streams unless \`stream\` is false.`),
}

export const DIFFERENCES = { llamacpp, mlx, transformers }
