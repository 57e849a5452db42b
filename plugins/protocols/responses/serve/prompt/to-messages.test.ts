/** Conversion of items to messages: order, grouping, pairs of calls and outputs, for any items. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { HistoryItem } from '#kernel'
import { readInputItems } from '../read/read-items.ts'
import { readCreateRequest } from '../read/read-request.ts'
import { TextSeal } from './sealed-text.ts'
import { toMessages } from './to-messages.ts'
import { toNativeItems } from './to-native-items.ts'

const seal = new TextSeal()
seal.useKeys([Buffer.from('k'.repeat(32))])
const unsealer = { open: (sealed: string) => seal.open('t', sealed) }

const itemsOf = (input: string | readonly unknown[]) =>
  readInputItems(readCreateRequest({ model: 'm', input }).body.input) as HistoryItem[]

function messagesOf(input: string | readonly unknown[], instructions: string | null = null) {
  return toMessages(instructions, itemsOf(input), unsealer).messages
}

const call = (id: string, args = '{}') => ({ type: 'function_call', call_id: id, name: 'f', arguments: args })
const output = (id: string, text: unknown = 'r') => ({
  type: 'function_call_output',
  call_id: id,
  output: text,
})

test('instructions come first, and developer messages become system messages', () => {
  expect(
    messagesOf(
      [
        { role: 'system', content: 'be brief' },
        { role: 'developer', content: 'be kind' },
        { role: 'user', content: 'hi' },
      ],
      'be good',
    ),
  ).toEqual([
    { role: 'system', content: 'be good' },
    { role: 'system', content: 'be brief' },
    { role: 'system', content: 'be kind' },
    { role: 'user', content: 'hi' },
  ])
})

test('an image keeps its URL', () => {
  const url = 'data:image/png;base64,iVBORw0KGgo='
  const content = [
    { type: 'input_text', text: 'what is this?' },
    { type: 'input_image', image_url: url },
  ]
  expect(messagesOf([{ role: 'user', content }])).toEqual([
    {
      role: 'user',
      content: [
        { type: 'text', text: 'what is this?' },
        { type: 'image_url', image_url: { url, detail: 'auto' } },
      ],
    },
  ])
})

test('calls of a turn are one message, and outputs follow in the order of the calls', () => {
  const messages = messagesOf([call('a', '{ "x" : 1 }'), call('b', 'no json'), output('b'), output('a')])
  expect(messages).toEqual([
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'a', type: 'function', function: { name: 'f', arguments: '{ "x" : 1 }' } },
        { id: 'b', type: 'function', function: { name: 'f', arguments: 'no json' } },
      ],
    },
    { role: 'tool', tool_call_id: 'a', content: 'r' },
    { role: 'tool', tool_call_id: 'b', content: 'r' },
  ])
})

test('text between a call and its output is merged into the turn; the next call starts another turn', () => {
  const said = { role: 'assistant', content: 'working' }
  expect(messagesOf([call('a'), said, output('a'), call('b'), output('b')]).map(({ role }) => role)).toEqual([
    'assistant',
    'tool',
    'assistant',
    'tool',
  ])
})

test('a call without output and an output without call are rejected', () => {
  expect(() => messagesOf([output('a')])).toThrow(/No tool call found .* call_id a\./)
  expect(() => messagesOf([call('a'), { role: 'user', content: 'x' }])).toThrow(/No tool output found .* a\./)
  expect(() => messagesOf([call('a'), output('a'), output('a')])).toThrow(/No tool call found/)
})

test('assistant messages with a phase are accepted', () => {
  const items = ['commentary', 'final_answer'].map((phase) => ({ role: 'assistant', content: phase, phase }))
  expect(itemsOf(items)).toMatchObject([{ phase: 'commentary' }, { phase: 'final_answer' }])
  expect(messagesOf([...items, { role: 'user', content: 'x' }])).toHaveLength(2)
})

test('images in an output follow the tool messages', () => {
  const parts = [
    { type: 'input_text', text: 'a screen' },
    { type: 'input_image', image_url: 'https://x/y.png' },
  ]
  expect(messagesOf([call('a'), output('a', parts)]).slice(1)).toEqual([
    { role: 'tool', tool_call_id: 'a', content: 'a screen' },
    {
      role: 'user',
      content: [
        {
          type: 'image_url',
          image_url: { url: 'https://x/y.png', detail: 'auto' },
          unseen: '[image: https://x/y.png]',
        },
      ],
    },
  ])
})

test('ids that repeat in another turn are made unique', () => {
  const messages = messagesOf([
    call('call_0'),
    output('call_0', 'one'),
    call('call_0'),
    output('call_0', 'two'),
  ])
  const tools = messages.filter(({ role }) => role === 'tool')
  expect(tools.map(({ tool_call_id: id, content }) => [id, content])).toEqual([
    ['call_0', 'one'],
    ['call_0_2', 'two'],
  ])
})

test('reasoning of earlier turns is sent back only with the calls that followed it, also sealed', () => {
  const encrypted_content = seal.seal('t', { text: 'secret thoughts' })
  const items = [{ type: 'reasoning', summary: [], encrypted_content }, call('a'), output('a')]
  expect(messagesOf(items)[0].reasoning_content).toBe('secret thoughts')
  expect(messagesOf([...items, { role: 'user', content: 'x' }])[0].reasoning_content).toBe('secret thoughts')
  const withoutCall = [items[0], { role: 'assistant', content: 'done' }, { role: 'user', content: 'x' }]
  expect(JSON.stringify(messagesOf(withoutCall))).not.toContain('thoughts')
  expect(seal.open('another tenant', encrypted_content)).toBeNull()
})

test('reasoning that cannot be decrypted is dropped and counted; the rest of its turn stays', () => {
  const sealed = seal.seal('t', { text: 'secret thoughts' })
  const damaged = `${sealed.slice(0, -3)}AAA`
  for (const encrypted_content of [
    '',
    'gAAAAABofromelsewhere',
    'AQ',
    damaged,
    seal.seal('u', { text: 'x' }),
  ]) {
    const items = [{ type: 'reasoning', summary: [], encrypted_content }, call('a'), output('a')]
    const { messages, droppedReasoning } = toMessages(null, itemsOf(items), unsealer)
    expect([droppedReasoning, messages]).toEqual([1, messagesOf(items.slice(1))])
    expect(toNativeItems(itemsOf(items), unsealer)).toHaveLength(2)
    const summary = [{ type: 'compaction', encrypted_content }]
    if (encrypted_content !== '')
      expect(() => messagesOf(summary)).toThrow(
        expect.objectContaining({ code: 'invalid_encrypted_content' }),
      )
  }
})

test('for any items, each call is followed by one result, or the input is rejected', () => {
  const id = fc.constantFrom('a', 'b', 'c')
  const item = fc.oneof(
    id.map((one) => call(one)),
    id.map((one) => output(one)),
    fc.constant({ role: 'user', content: 'u' }),
    fc.constant({ role: 'assistant', content: 't' }),
    fc.constant({ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'h' }] }),
  )
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 12 }), (items) => {
      let messages: ReturnType<typeof messagesOf>
      try {
        messages = messagesOf(items)
      } catch (error) {
        expect((error as { status?: number }).status).toBe(400)
        return
      }
      const seen = new Set<string>()
      for (let at = 0; at < messages.length; at += 1) {
        const calls = messages[at].tool_calls ?? []
        for (const one of calls) {
          expect(seen.has(one.id)).toBe(false)
          seen.add(one.id)
          at += 1
          expect(messages[at]).toMatchObject({ role: 'tool', tool_call_id: one.id })
        }
        if (calls.length === 0) expect(messages[at].role).not.toBe('tool')
      }
      const texts = items.filter((one) => 'role' in one && one.role === 'user').length
      expect(messages.filter(({ role }) => role === 'user')).toHaveLength(texts)
    }),
    { numRuns: 500 },
  )
})
