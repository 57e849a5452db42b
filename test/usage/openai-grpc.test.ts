/** The official OpenAI client against the built gateway in front of gRPC engines, streamed and not. */
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BuiltGateway, startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import {
  type EngineName,
  type GenerateCall,
  type ScriptedEngine,
  type Step,
  startScriptedEngine,
} from '../support/scripted-engine.ts'

type Chat = OpenAI.ChatCompletion
type Body = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>
type Thinking = OpenAI.ChatCompletionMessage & { readonly reasoning_content?: string | null }

const RUNTIMES: readonly EngineName[] = ['sglang', 'vllm', 'tokenspeed']
const messages = [{ role: 'user' as const, content: 'What is the weather in Bern and in Basel?' }]
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'get_weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
]
const callOf = (city: string) =>
  `<tool_call>\n${JSON.stringify({ name: 'get_weather', arguments: { city } })}\n</tool_call>`

const engines = new Map<EngineName, ScriptedEngine>()
let gateway: BuiltGateway
let client: OpenAI

beforeAll(async () => {
  for (const runtime of RUNTIMES)
    engines.set(runtime, await startScriptedEngine({ runtime, model: `${runtime}-model` }))
  gateway = await startBuiltGateway({
    plugins: {
      auth: { apiKey: 'sk-flow', auditLog: false },
      generations: {},
      grpc: {},
      parsers: {},
      tokenizers: { load: RUNTIMES.map((name) => ({ name: `${name}-model`, source: 'weir:sample' })) },
    },
    workers: [...engines.values()].map(({ url }) => ({
      url,
      labels: { tool_call_parser: 'qwen', reasoning_parser: 'qwen3' },
    })),
  })
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'sk-flow', maxRetries: 0 })
  for (const runtime of RUNTIMES) await until(async () => (await idsOf(runtime, 'x')).length > 0)
})

afterAll(async () => {
  await stopCommands()
  for (const engine of engines.values()) await engine.close()
})

async function idsOf(runtime: EngineName, text: string): Promise<number[]> {
  const body = { model: `${runtime}-model`, prompt: text, add_special_tokens: false }
  const response = await gateway.send('POST', '/v1/tokenize', body, { authorization: 'Bearer sk-flow' })
  return response.ok ? ((await response.json()) as { tokens: number[] }).tokens : []
}

/** The same completion, non-streamed, and assembled by the client from a stream. */
async function both(runtime: EngineName, body: Partial<Body>): Promise<readonly [Chat, Chat]> {
  const params = { model: `${runtime}-model`, messages, ...body }
  const whole = await client.chat.completions.create(params)
  const stream = client.chat.completions.stream({ ...params, stream_options: { include_usage: true } })
  return [whole, await stream.finalChatCompletion()]
}

const lastCall = (engine: ScriptedEngine) => engine.calls.at(-1) as GenerateCall

describe.each(RUNTIMES)('%s', (runtime) => {
  const engine = () => engines.get(runtime) as ScriptedEngine
  const generates = async (text: string) => {
    const ids = await idsOf(runtime, text)
    engine().answer(ids.map((id) => [id]))
    return ids
  }

  test('one tool call, and the text before it', async () => {
    await generates(`I look it up.\n${callOf('Bern')}`)
    for (const { choices } of await both(runtime, { tools })) {
      expect(choices[0].finish_reason).toBe('tool_calls')
      expect(choices[0].message.content?.trim()).toBe('I look it up.')
      expect(choices[0].message.tool_calls).toMatchObject([
        { type: 'function', function: { name: 'get_weather', arguments: '{"city":"Bern"}' } },
      ])
    }
  })

  test('parallel tool calls with distinct ids', async () => {
    await generates(`${callOf('Bern')}\n${callOf('Basel')}`)
    for (const { choices } of await both(runtime, { tools, parallel_tool_calls: true })) {
      const calls = choices[0].message.tool_calls ?? []
      expect(calls.map((call) => call.type === 'function' && call.function.arguments)).toEqual([
        '{"city":"Bern"}',
        '{"city":"Basel"}',
      ])
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
    }
  })

  test('reasoning is separate from the content, and counted', async () => {
    await generates('<think>\nTwo towns.\n</think>\n\nRain in both.')
    const usages = new Set<string>()
    for (const { choices, usage } of await both(runtime, {})) {
      const message = choices[0].message as Thinking
      expect([message.content?.trim(), choices[0].finish_reason]).toEqual(['Rain in both.', 'stop'])
      usages.add(JSON.stringify(usage))
      expect(usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(2)
    }
    expect(usages.size).toBe(1)
    const whole = await client.chat.completions.create({ model: `${runtime}-model`, messages })
    expect((whole.choices[0].message as Thinking).reasoning_content?.trim()).toBe('Two towns.')
    let streamed = ''
    const stream = await client.chat.completions.create({ model: `${runtime}-model`, messages, stream: true })
    for await (const { choices } of stream)
      streamed += (choices[0]?.delta as { reasoning_content?: string | null })?.reasoning_content ?? ''
    expect(streamed.trim()).toBe('Two towns.')
  })

  test('log probabilities with alternatives, one token per entry', async () => {
    const ids = await idsOf(runtime, 'Rain in Bern.')
    const logprobs = (of: readonly number[]) => ({
      outputLogprobs: {
        tokenIds: of,
        tokenLogprobs: of.map(() => -0.5),
        topLogprobs: of.map((id) => ({ values: [-0.5, -1.5], tokenIds: [id, 9] })),
      },
    })
    engine().script = ({ request }) => {
      const steps = engine().steps(
        ids.map((id) => [id]),
        {},
        request,
      )
      return steps.map((step): Step => {
        if ('chunk' in step) return { chunk: { ...step.chunk, ...logprobs(step.chunk.tokenIds as number[]) } }
        if ('complete' in step)
          return { complete: { ...step.complete, ...logprobs(step.complete.outputIds as number[]) } }
        return step
      })
    }
    for (const { choices } of await both(runtime, { logprobs: true, top_logprobs: 2 })) {
      const content = choices[0].logprobs?.content ?? []
      expect(content.map(({ token }) => token).join('')).toBe('Rain in Bern.')
      expect(content).toHaveLength(ids.length)
      for (const { logprob, top_logprobs: top } of content)
        expect([logprob, top.map((one) => one.logprob)]).toEqual([-0.5, [-0.5, -1.5]])
    }
  })

  test('two choices per request', async () => {
    const texts = await Promise.all(['Rain in Bern.', 'Sun in Basel.'].map((text) => idsOf(runtime, text)))
    engine().script = ({ request }) =>
      texts.flatMap((ids, index) =>
        engine().steps(
          ids.map((id) => [id]),
          {},
          request,
          index,
        ),
      )
    for (const { choices, usage } of await both(runtime, { n: 2 })) {
      expect(choices.map(({ index, message }) => [index, message.content])).toEqual([
        [0, 'Rain in Bern.'],
        [1, 'Sun in Basel.'],
      ])
      expect(usage?.prompt_tokens).toBe(7)
      expect(usage?.completion_tokens).toBe(texts.flat().length)
    }
  })

  test('output constrained by a JSON Schema', async () => {
    await generates('{"city":"Bern","degrees":12}')
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' }, degrees: { type: 'integer' } },
      required: ['city', 'degrees'],
      additionalProperties: false,
    }
    const response_format = {
      type: 'json_schema' as const,
      json_schema: { name: 'weather', schema, strict: true },
    }
    for (const { choices } of await both(runtime, { response_format }))
      expect(JSON.parse(choices[0].message.content ?? '')).toEqual({ city: 'Bern', degrees: 12 })
    const { samplingParams } = lastCall(engine()).request as { samplingParams: { jsonSchema: string } }
    expect(JSON.parse(samplingParams.jsonSchema)).toEqual(schema)
  })
})
