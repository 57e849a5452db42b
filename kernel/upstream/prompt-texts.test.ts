/** Which strings of a request are texts, and what becomes of the others when some change. */
import { expect, test } from 'vitest'
import type { PromptText } from '../contracts/generation/prompt-text.ts'
import type { HookSignatures } from '../contracts/hook.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import { editBody, editTexts } from './prompt-texts.ts'

type Hook = HookSignatures['onPromptText']

function context(onPromptText: Hook, body = ''): RelayContext & { readonly sent: string } {
  let rawBody: Buffer = Buffer.from(body)
  return {
    hooks: { onPromptText },
    bodyJson: () => JSON.parse(body),
    setBody: (bytes: Buffer) => {
      rawBody = bytes
    },
    get rawBody() {
      return rawBody
    },
    get sent() {
      return String(rawBody)
    },
  } as never
}

function seenIn(value: unknown): readonly PromptText[] {
  let seen: readonly PromptText[] = []
  editTexts(
    context((_, texts) => {
      seen = texts
    }),
    value,
  )
  return seen
}

const upper: Hook = (_, texts) => texts.map(({ text }) => text.toUpperCase())

test('texts have the role of their message or item, and a place; each text of a role is shown once', () => {
  const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
  const request = {
    model: 'm',
    system: 'be brief',
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'hi', tool_calls: [call] },
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
    ],
    input: [
      { type: 'function_call_output', call_id: 'c', output: 'found' },
      { type: 'new_thing', inner: { deep: ['odd'] } },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'so' }] },
    ],
    tools: [{ name: 'f', description: 'finds' }],
  }
  expect(seenIn(request)).toEqual([
    { role: 'system', place: 'system', text: 'be brief' },
    { role: 'user', place: 'messages.0.content', text: 'hi' },
    { role: 'assistant', place: 'messages.1.content', text: 'hi' },
    { role: 'assistant', place: 'messages.1.tool_calls.0.function.arguments', text: '{"a":1}' },
    { role: 'tool', place: 'input.0.output', text: 'found' },
    { role: null, place: 'input.1.inner.deep.0', text: 'odd' },
    { role: 'assistant', place: 'input.2.summary.0.text', text: 'so' },
    { role: null, place: 'tools.0.description', text: 'finds' },
  ])
})

test.each([
  ['an identifier', { id: 'a1', tool_use_id: 'b', type: 'x', model: 'm' }, []],
  ['an identifier with white space', { id: 'see me' }, ['see me']],
  ['an address', { url: 'https://x.example/a', image_url: { url: 'https://x.example/b' } }, []],
  ['an address in a text', { text: 'https://x.example/a' }, ['https://x.example/a']],
  ['a file', { data: 'aGk=', file_data: 'data:text/plain;base64,aGk=', any: 'data:x;base64,aGk=' }, []],
  ['the text of a document', { source: { type: 'text', data: 'one' } }, ['one']],
  ['long opaque data', { any: 'a'.repeat(2_000) }, []],
  ['a function name', { name: 'f', function: { name: 'g' } }, []],
  ['a participant', { role: 'user', name: 'Bob' }, ['Bob']],
  ['arguments as an object', { input: { id: 'a', url: 'u', list: ['b'] } }, ['a', 'u', 'b']],
  ['a schema', { properties: { id: { type: ['string'], enum: ['e'] } }, required: ['id'] }, ['e']],
  ['reasoning', { reasoning_content: 'so', encrypted_content: 'xyz' }, ['so']],
  ['an empty text', { text: '', list: [''] }, []],
  ['token ids', { input_ids: [1, 2], bytes: new Uint8Array(2) }, []],
])('%s', (_, value, texts) => {
  expect(seenIn(value).map(({ text }) => text)).toEqual(texts)
})

test('a value without a changed text is the same object, and objects beside a changed text are kept', () => {
  const value = { a: { text: 'x' }, b: { text: 'UP' }, n: 1 }
  expect(
    editTexts(
      context((_, texts) => texts.map(({ text }) => text)),
      value,
    ),
  ).toBe(value)
  const edited = editTexts(context(upper), value) as typeof value
  expect(edited).toEqual({ ...value, a: { text: 'X' } })
  expect(edited.b).toBe(value.b)
})

test('a hook that does not return a string for each text fails the request', () => {
  const short: Hook = () => ['one']
  expect(() => editTexts(context(short), { a: 'x', b: 'y' })).toThrow('must return 2 strings (got 1)')
  const wrong: Hook = () => [1 as never]
  expect(() => editTexts(context(wrong), { a: 'x' })).toThrow('must return 1 strings')
})

test('a body keeps its bytes without a change, and its numbers and own members with one', () => {
  const body = '{ "n":1.0,"big":123456789012345678901,"__proto__":{"text":"a"}, "text":"b" }'
  const kept = context(() => undefined, body)
  expect(editBody(kept)).toBeNull()
  expect(kept.sent).toBe(body)
  const changed = context(upper, body)
  editBody(changed)
  expect(changed.sent).toBe('{"n":1.0,"big":123456789012345678901,"__proto__":{"text":"A"},"text":"B"}')
})

test('of doubled members only the one that was shown is sent', () => {
  const ctx = context(() => undefined, '{"text":"hidden","text":"a\\"b"}')
  editBody(ctx)
  expect(ctx.sent).toBe('{"text":"a\\"b"}')
})

test('an asynchronous hook may refuse a request', async () => {
  const refusing = context(() => Promise.reject(new Error('no')), '{"text":"a"}')
  await expect(editBody(refusing)).rejects.toThrow('no')
  const editing = context(async (_, texts) => texts.map(() => 'x'), '{"text":"a"}')
  await editBody(editing)
  expect(editing.sent).toBe('{"text":"x"}')
})
