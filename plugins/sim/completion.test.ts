import { describe, expect, test } from 'vitest'
import { generateCompletion } from './completion.ts'
import { generateNative } from './generate.ts'
import type { Generation, Setting } from './generation.ts'
import { splitTokens, tokenId } from './tokens.ts'
import type { CompletionRequest, GenerateRequest } from './wire.ts'

const setting: Setting = {
  seed: 1,
  model: 'sim-1',
  id: 'id-1',
  createdSec: 1_700_000_000,
  startedAtMs: 0,
  tokens: 8,
  maxModelLen: 1000,
  mostTokens: Number.POSITIVE_INFINITY,
  cache: { tokens: null },
  script: null,
}

const bodyOf = (generation: Generation) => JSON.parse(String(generation.body()))

function dataOf(generation: Generation) {
  const source = generation.events()
  const data: string[] = []
  for (let next = source.next(); next.done !== true; next = source.next()) data.push(String(next.value.data))
  expect(data.pop()).toBe('data: [DONE]\n\n')
  return data.map((one) => JSON.parse(one.slice(6)))
}

describe('text completions', () => {
  const whole = (request: CompletionRequest) => bodyOf(generateCompletion(request, setting))
  const pieces = (request: CompletionRequest) => dataOf(generateCompletion(request, setting))

  test('a whole one has the shape that clients expect', () => {
    const reply = whole({ prompt: 'The fox' })
    expect(reply).toMatchObject({
      id: 'id-1',
      object: 'text_completion',
      model: 'sim-1',
      choices: [{ index: 0, logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens: 2, completion_tokens: 8, total_tokens: 10 },
    })
  })

  test('choice index is prompt index times n plus i', () => {
    const reply = whole({ prompt: ['one', 'two'], n: 2 })
    const single = whole({ prompt: 'two' })
    expect(reply.choices.map((choice: { index: number }) => choice.index)).toEqual([0, 1, 2, 3])
    expect(reply.choices[2].text).toBe(single.choices[0].text)
  })

  test('streamed, the echo comes first and the suffix before the finish piece', () => {
    const request = {
      prompt: 'The fox',
      echo: true,
      suffix: ' End.',
      stream_options: { include_usage: true },
    }
    const parts = pieces(request)
    const usage = parts.pop()
    expect(usage).toMatchObject({ choices: [], usage: { total_tokens: 10 } })
    expect(parts[0].choices[0].text).toBe('The fox')
    expect(parts.map((part) => part.choices[0].text).join('')).toBe(whole(request).choices[0].text)
    expect(parts.at(-1).choices[0]).toMatchObject({ text: '', finish_reason: 'stop' })
    expect(parts.at(-2).choices[0].text).toBe(' End.')
  })

  test('token ids are prompts too, each one a token', () => {
    expect(whole({ prompt: [1, 2, 3] }).usage.prompt_tokens).toBe(3)
    expect(whole({ prompt: [[1], [2, 3]] }).choices).toHaveLength(2)
  })

  test('of more prompts than a call takes arguments, each is answered', () => {
    const request = { prompt: Array.from({ length: 150_000 }, () => 'a'), max_tokens: 1 }
    expect(whole(request).choices).toHaveLength(150_000)
  })
})

describe('native generation', () => {
  const whole = (request: GenerateRequest) => bodyOf(generateNative(request, setting))
  const events = (request: GenerateRequest) => dataOf(generateNative(request, setting))

  test('a single answer is an object with its ids and facts', () => {
    const reply = whole({ text: 'The fox', rid: 'my-id' })
    expect(reply).toMatchObject({
      meta_info: { id: 'my-id', prompt_tokens: 2, completion_tokens: 8, finish_reason: { type: 'stop' } },
    })
    expect(reply.output_ids).toEqual(splitTokens(reply.text).map(tokenId))
  })

  test('several answers are an array whose ids end in their index', () => {
    const reply = whole({ text: 'The fox', sampling_params: { n: 2 } })
    expect(reply.map((one: { meta_info: { id: string } }) => one.meta_info.id)).toEqual(['id-1-0', 'id-1-1'])
  })

  test('streamed text grows, ids are only the new ones, and the last event says why it ended', () => {
    const list = events({ text: 'The fox', sampling_params: { max_new_tokens: 3 } })
    const reply = whole({ text: 'The fox', sampling_params: { max_new_tokens: 3 } })
    expect(list).toHaveLength(3)
    expect(list.every((event, index) => index === 0 || event.text.startsWith(list[index - 1].text))).toBe(
      true,
    )
    expect(list.at(-1).text).toBe(reply.text)
    expect(list.flatMap((event) => event.output_ids)).toEqual(reply.output_ids)
    expect(list.map((event) => event.meta_info.finish_reason)).toEqual([
      null,
      null,
      { type: 'length', length: 3 },
    ])
    expect(list.at(-1).meta_info.e2e_latency).toBeTypeOf('number')
  })

  test('a stop string that was found is named', () => {
    const stop = whole({ text: 'The fox' }).text.split(' ')[2]
    expect(whole({ text: 'The fox', sampling_params: { stop } }).meta_info.finish_reason).toEqual({
      type: 'stop',
      matched: stop,
    })
  })

  test('text and input_ids exclude each other', () => {
    expect(() => whole({})).toThrow('text or input_ids')
    expect(() => whole({ text: 'a', input_ids: [1] })).toThrow('text or input_ids')
    expect(whole({ input_ids: [5, 6, 7] }).meta_info.prompt_tokens).toBe(3)
  })
})
