/** Names and ids are fitted to the limits of a service, and clients see their own. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ChatMessage, GenerationRequest } from '#kernel'
import { fitNames } from './worker-attempt.ts'

const LONG = `mcp.server/${'x'.repeat(80)}`

function request(more: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    model: 'm',
    prompt: { kind: 'chat', messages: [] },
    tools: [],
    toolChoice: null,
    constraint: null,
    sampling: {},
    reasoning: null,
    choices: 1,
    topLogprobs: null,
    ...more,
  }
}

const tool = (name: string) => ({ type: 'function', function: { name } }) as const

test('declarations, choices, calls and results of one function get the same name, and short names are unchanged', () => {
  const messages: ChatMessage[] = [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'functions.f:0', type: 'function', function: { name: LONG, arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'functions.f:0', content: 'x' },
  ]
  const given = request({
    tools: [tool(LONG), tool('f')],
    toolChoice: { mode: 'allowed', names: [LONG, 'f'], isRequired: true },
    prompt: { kind: 'chat', messages },
  })
  const { request: fitted, names } = fitNames(given)
  const [name, short] = fitted.tools.map((one) => one.function.name)
  expect([name.length, short]).toEqual([64, 'f'])
  expect(names).toEqual(new Map([[name, LONG]]))
  expect(fitted.toolChoice).toMatchObject({ names: [name, 'f'] })
  const [turn, result] = (fitted.prompt as { messages: readonly ChatMessage[] }).messages
  expect(turn.tool_calls?.[0].function.name).toBe(name)
  expect(result.tool_call_id).toBe(turn.tool_calls?.[0].id)
  expect(
    fitNames(request({ toolChoice: { mode: 'function', name: LONG } })).request.toolChoice,
  ).toMatchObject({
    name,
  })
})

test("calls in the client's format are renamed in the same way", () => {
  const items = [
    { type: 'function_call', call_id: 'a:1', name: LONG, arguments: '{}' },
    { type: 'function_call', call_id: 'b', namespace: 'n', name: LONG, arguments: '{}' },
    { type: 'function_call_output', call_id: 'a:1', output: '' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'a:1', name: LONG, input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a:1', content: '' }] },
    { role: 'user', content: 'hi' },
  ]
  const native = {
    engine: 'responses',
    messageCount: 0,
    prompt: () => items,
    members: () => ({}),
    tools: [],
    toolChoice: null,
  }
  const { request: fitted } = fitNames(request({ native, tools: [tool(LONG)] }))
  const { name } = fitted.tools[0].function
  const id = /^a_1_[0-9a-f]{8}$/
  expect(fitted.native?.prompt()).toEqual([
    { ...items[0], call_id: expect.stringMatching(id), name },
    items[1],
    { ...items[2], call_id: expect.stringMatching(id) },
    { role: 'assistant', content: [{ type: 'tool_use', id: expect.stringMatching(id), name, input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: expect.stringMatching(id), content: '' }] },
    items[5],
  ])
})

test('any names become valid, and a fitted name is not changed again', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ minLength: 1, maxLength: 200, unit: 'binary' })), (given) => {
      const { request: fitted, names } = fitNames(request({ tools: given.map(tool) }))
      const sent = fitted.tools.map((one) => one.function.name)
      for (const name of sent) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      expect(sent.map((name) => names.get(name) ?? name)).toEqual(given)
      expect(fitNames(fitted).names.size).toBe(0)
    }),
  )
})
