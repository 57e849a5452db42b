/** Tool calls with incomplete arguments: no client format reports them as finished. */
import { describe, expect, test } from 'vitest'
import { eventsOf, type GrpcFleet, shareGrpcFleets } from './grpc-fleet.ts'

const model = 'test-model'
const parameters = { type: 'object', properties: { file: { type: 'string' }, body: { type: 'string' } } }
const fn = { name: 'save', description: 'Saves', parameters }
const CHAT = {
  model,
  messages: [{ role: 'user', content: 'go' }],
  tools: [{ type: 'function', function: fn }],
}
const RESPONSES = { model, input: 'go', store: false, tools: [{ type: 'function', ...fn }] }
const MESSAGES = {
  model,
  max_tokens: 100,
  messages: [{ role: 'user', content: 'go' }],
  tools: [{ name: 'save', input_schema: parameters }],
}

const outputs = [
  ['qwen', '<tool_call>\n{"name":"save","arguments":{"file":"a","body":"x', '{"file":"a","body":"x'],
  [
    'qwen',
    '<tool_call>\n{"name":"save","arguments":{"file":"a","body":zwei}}\n</tool_call>',
    '{"file":"a","body":',
  ],
  [
    'qwen_xml',
    '<tool_call><function=save><parameter=file>a</parameter><parameter=body>x',
    '{"file":"a","body":"x',
  ],
] as const

const openShared = shareGrpcFleets()
const open = (toolParser: string) =>
  openShared({ plugins: { parsers: { toolParser }, messages: {}, responses: {} } })

async function engineAnswers({ engine, ids }: GrpcFleet, text: string, finishReason: string): Promise<void> {
  engine.answer(
    (await ids(text)).map((id) => [id]),
    { finishReason },
  )
}
const dataOf = async (reply: Response) =>
  eventsOf(await reply.text())
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data) as Record<string, never>)

describe.each(outputs)('%s: %s', (toolParser, text, written) => {
  test.each(['stop', 'length'])('the engine ends with %s', async (finishReason) => {
    const fleet = await open(toolParser)
    await engineAnswers(fleet, text, finishReason)

    const chat = (await (await fleet.post('/v1/chat/completions', CHAT)).json()) as Record<string, never>
    expect(chat.choices).toMatchObject([
      {
        finish_reason: 'length',
        message: { tool_calls: [{ function: { name: 'save', arguments: written } }] },
      },
    ])
    const chunks = await dataOf(await fleet.post('/v1/chat/completions', { ...CHAT, stream: true }))
    const choices = chunks.flatMap(({ choices }) => choices as Record<string, never>[])
    expect(choices.map((choice) => choice.finish_reason).filter(Boolean)).toEqual(['length'])
    const calls = choices.flatMap(({ delta }) => (delta as { tool_calls?: object[] }).tool_calls ?? [])
    expect(
      calls.map((call) => (call as { function: { arguments?: string } }).function.arguments ?? '').join(''),
    ).toBe(written)

    const message = await (await fleet.post('/v1/messages', MESSAGES)).json()
    expect(message).toMatchObject({ stop_reason: 'max_tokens' })
    expect((message as { content: object[] }).content).toContainEqual(
      expect.objectContaining({ type: 'tool_use', name: 'save', input: {} }),
    )
    const events = await dataOf(await fleet.post('/v1/messages', { ...MESSAGES, stream: true }))
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'message_delta',
        delta: expect.objectContaining({ stop_reason: 'max_tokens' }),
      }),
    )
    const parts = events.map(
      ({ delta }) => (delta as { partial_json?: string } | undefined)?.partial_json ?? '',
    )
    expect(parts.join('')).toBe(written)

    const expected = {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: expect.arrayContaining([
        expect.objectContaining({ type: 'function_call', status: 'incomplete', arguments: written }),
      ]),
    }
    expect(await (await fleet.post('/v1/responses', RESPONSES)).json()).toMatchObject(expected)
    const last = (await dataOf(await fleet.post('/v1/responses', { ...RESPONSES, stream: true }))).at(-1)
    expect(last).toMatchObject({ type: 'response.incomplete', response: expected })
  })
})
