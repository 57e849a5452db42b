import { expect, test } from 'vitest'
import { TranslatedKinds, type Translation, untranslatedPaths } from './untranslated.ts'

const part: Translation = new TranslatedKinds({ text: { type: true, text: true } }, true)
const tool = new TranslatedKinds({ function: true }, null)
const body = { messages: { role: true, content: part }, tools: tool, options: true } as Translation

test('members and kinds that are not read are named once, without indexes', () => {
  const given: Record<string, unknown> = {
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'b', mark: 1 },
          { type: 'text', text: 'c', mark: 2 },
        ],
      },
      { role: 'user', content: [{ type: 'image', mark: 3 }], toString: 1 },
    ],
    tools: [{ type: 'function', any: 1 }, { type: 'remote' }],
    options: { any: { thing: 1 } },
    absent: null,
    more: 0,
  }
  expect(untranslatedPaths(given, body)).toEqual([
    'messages.content.mark',
    'messages.toString',
    'tools.remote',
    'more',
  ])
})

test('values of other forms than expected are passed over', () => {
  expect(untranslatedPaths({ messages: 'x', tools: [1, null], options: null }, body)).toEqual([])
})

test('a kind whose type is not a text is named by its member', () => {
  const tools = [{ type: { toString: 1 } }, {}]
  expect(untranslatedPaths({ tools }, body)).toEqual(['tools.type'])
})
