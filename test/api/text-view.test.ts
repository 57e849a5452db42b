/** Edits of texts by `onText` hooks: every format, every place where the text appears. */
import { describe, expect, test } from 'vitest'
import { MASK, redactorPlugin, SECRET } from '../support/redactor.ts'
import { openSse } from '../support/sse-client.ts'
import { chatAnswer, openResponses } from './responses/responses-fleet.ts'

describe.each([false, true])('asynchronous: %s', (isAsynchronous) => {
  const open = () =>
    openResponses(
      chatAnswer({
        reasoning_content: `think ${SECRET} on`,
        content: `say ${SECRET} twice ${SECRET}`,
        tool_calls: [{ id: 'call_1', name: 'look', arguments: `{"key":"${SECRET}"}` }],
      }),
      { own: [redactorPlugin(isAsynchronous)] },
    )
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object' } }]

  test('a stored response has the edited text in the stream, in its end and in the store', async () => {
    const { gateway, fetchJson } = await open()
    const stream = openSse(`${gateway.url}/v1/responses`, {
      body: { model: 'test-model', stream: true, input: 'hi', tools },
    })
    await stream.done
    const text = stream.text()
    expect(stream.status).toBe(200)
    expect(text).not.toContain('SECRET')
    const { response } = JSON.parse(
      stream.events.findLast(({ data }) => data.includes('response.completed'))?.data ?? '{}',
    )
    const stored = await fetchJson('GET', `/v1/responses/${response.id}`)
    expect(JSON.stringify(stored)).not.toContain('SECRET')
    expect(stored.output).toEqual(response.output)
    const output = JSON.stringify(stored.output)
    expect(output).toContain(`think ${MASK} on`)
    expect(output).toContain(`say ${MASK} twice ${MASK}`)
    expect(stored.output.at(-1).arguments).toBe(`{"key":"${MASK}"}`)
  })

  test.each([true, false])('a chat that would be relayed is edited; streamed: %s', async (stream) => {
    const { post } = await open()
    const reply = await post('/v1/chat/completions', {
      model: 'test-model',
      stream,
      messages: [{ role: 'user', content: 'hi' }],
    })
    const text = await reply.text()
    expect(reply.status).toBe(200)
    expect(text).not.toContain('SECRET-')
    expect(text).toContain('masked')
  })
})
