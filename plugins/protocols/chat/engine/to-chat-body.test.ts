import { expect, test } from 'vitest'
import type { EngineAttempt, GenerationRequest } from '#kernel'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { toChatBody, toCompletionBody } from './to-chat-body.ts'

const REQUEST: GenerationRequest = {
  model: 'm',
  prompt: {
    kind: 'chat',
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b', reasoning_content: 'hm' },
    ],
  },
  tools: [],
  toolChoice: null,
  constraint: null,
  sampling: {
    temperature: 1,
    topP: 0.5,
    frequencyPenalty: 0.1,
    presencePenalty: 0.2,
    seed: 1,
    logitBias: new Map([[5, 1]]),
    stop: ['x'],
    maxTokens: 9,
    topK: 4,
    minP: 0.1,
    repetitionPenalty: 1.1,
    minTokens: 1,
    stopTokenIds: [7],
    ignoreEos: true,
    skipSpecialTokens: false,
    includesStop: true,
  },
  reasoning: { isEnabled: true, effort: 'low' },
  choices: 1,
  topLogprobs: null,
  wantsTokenIds: true,
  templateArguments: { enable_thinking: true },
  continuesLastMessage: true,
  carried: new Map<string, unknown>([
    ['separate_reasoning', true],
    ['stream_reasoning', true],
    ['add_generation_prompt', false],
    ['rid', 'r-1'],
    ['verbosity', 'low'],
    ['lora_path', 'mine'],
  ]),
}

const attempt = (provider: string | null, prompt = REQUEST.prompt) =>
  ({
    request: { ...REQUEST, prompt },
    model: 'm',
    stream: false,
    quirks: {},
    worker: workerEntry({ slot: 0, provider }),
  }) as unknown as EngineAttempt

const SHARED = {
  model: 'm',
  temperature: 1,
  top_p: 0.5,
  frequency_penalty: 0.1,
  presence_penalty: 0.2,
  seed: 1,
  logit_bias: { 5: 1 },
  stop: ['x'],
  // Unknown to the gateway: the vendor decides whether to reject it.
  lora_path: 'mine',
  verbosity: 'low',
}
const ENGINE_ONLY = [
  'chat_template_kwargs',
  'top_k',
  'min_p',
  'return_token_ids',
  'separate_reasoning',
  'rid',
]

test('provider openai: engine-only members are dropped, all others are sent', () => {
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b' },
  ]
  const sent = JSON.parse(toChatBody(attempt('openai')).toString())
  expect(sent).toEqual({ ...SHARED, messages, max_completion_tokens: 9, reasoning_effort: 'low' })
})

test('any other worker gets the engine members', () => {
  for (const provider of [null, 'mine']) {
    const sent = JSON.parse(toChatBody(attempt(provider)).toString())
    expect(sent).toMatchObject({ ...SHARED, max_tokens: 9 })
    expect(Object.keys(sent)).toEqual(expect.arrayContaining(ENGINE_ONLY))
  }
})

test('provider openai: completions are filtered likewise, with max_tokens', () => {
  const prompt = { kind: 'text', text: 'a' } as const
  expect(JSON.parse(toCompletionBody(attempt('openai', prompt)).toString())).toEqual({
    ...SHARED,
    prompt: 'a',
    max_tokens: 9,
  })
  expect(JSON.parse(toCompletionBody(attempt(null, prompt)).toString())).toMatchObject({ top_k: 4 })
})

const completion = (request: object) =>
  ({
    model: 'm',
    stream: false,
    quirks: {},
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
  expect(JSON.parse(toCompletionBody(completion({})).toString())).toEqual({
    model: 'm',
    prompt: [5, 6],
    max_tokens: 3,
    logprobs: 2,
  })
})

test('log probabilities of requested ids are rejected, as completions do not support them', () => {
  expect(() => toCompletionBody(completion({ logprobsOf: [7] }))).toThrow(
    expect.objectContaining({ code: 'unsupported_by_worker', param: 'token_ids_logprob' }),
  )
})

test('reasoning of earlier turns has the names that the engine reads, and engines get efforts that they know', () => {
  const reasoning = { effort: 'max' }
  const sentTo = (worker: Parameters<typeof workerEntry>[0]) => {
    const { messages, reasoning_effort } = JSON.parse(
      toChatBody({
        request: { ...REQUEST, reasoning },
        model: 'm',
        stream: false,
        quirks: {},
        worker: workerEntry(worker),
      } as unknown as EngineAttempt).toString(),
    )
    const { role: _, content: __, ...said } = messages[1]
    return [said, reasoning_effort]
  }
  expect(sentTo({ slot: 0, runtimeType: 'vllm' })).toEqual([
    { reasoning_content: 'hm', reasoning: 'hm' },
    'high',
  ])
  expect(sentTo({ slot: 0, runtimeType: 'sglang' })).toEqual([{ reasoning_content: 'hm' }, 'high'])
  expect(sentTo({ slot: 0, runtimeType: 'transformers' })).toEqual([{ reasoning_content: 'hm' }, 'high'])
  expect(sentTo({ slot: 0, isExternal: true })).toEqual([{ reasoning_content: 'hm' }, 'max'])
  expect(sentTo({ slot: 0, isExternal: true, provider: 'openai' })).toEqual([{}, 'max'])
})

test("transformers, which rejects members that are not OpenAI's, gets none", () => {
  const worker = workerEntry({ slot: 0, runtimeType: 'transformers' })
  const sent = JSON.parse(toChatBody({ ...attempt(null), worker }).toString())
  for (const name of ENGINE_ONLY) expect(sent).not.toHaveProperty(name)
  expect(sent).toMatchObject({ ...SHARED, max_tokens: 9 })
})

test('an engine that mistakes stop strings gets none, and one that takes a text gets no token ids', () => {
  const quirks = { mistakesStops: true, takesOneText: true }
  const text = { kind: 'text', text: 'a' } as const
  expect(JSON.parse(toChatBody({ ...attempt(null), quirks }).toString())).not.toHaveProperty('stop')
  const sent = toCompletionBody({ ...attempt(null, text), quirks }).toString()
  expect(JSON.parse(sent)).not.toHaveProperty('stop')
  expect(() => toCompletionBody({ ...completion({}), quirks })).toThrow(
    expect.objectContaining({ code: 'unsupported_by_worker', param: 'prompt' }),
  )
})

test('the label effort of a worker says what becomes of efforts above high', () => {
  const sentTo = (label: string, effort: string, isExternal = false) => {
    const worker = workerEntry({ slot: 0, isExternal, labels: { effort: label } })
    const request = { ...REQUEST, reasoning: { effort } }
    const body = toChatBody({
      request,
      model: 'm',
      stream: false,
      quirks: {},
      worker,
    } as unknown as EngineAttempt)
    return JSON.parse(body.toString()).reasoning_effort
  }
  expect(sentTo('keep', 'max')).toBe('max')
  expect(sentTo('lower', 'xhigh', true)).toBe('high')
  expect(sentTo('reject', 'high')).toBe('high')
  expect(() => sentTo('reject', 'max', true)).toThrow(
    expect.objectContaining({ code: 'unsupported_by_worker', param: 'reasoning_effort' }),
  )
})
