import fc from 'fast-check'
import { expect, test } from 'vitest'
import { blockHashes } from './block-hashes.ts'
import { chatPrompt, promptsOf } from './prompt.ts'

const words = (count: number, word = 'word') => Array.from({ length: count }, () => word).join(' ')
const ofText = (text: string) => blockHashes(promptsOf(text), 16)

test('only full blocks have names', () => {
  expect(ofText(words(15))).toHaveLength(0)
  expect(ofText(words(16))).toHaveLength(1)
  expect(ofText(words(47))).toHaveLength(2)
})

test('equal beginnings give equal names, and a difference changes every name after it', () => {
  const first = ofText(`${words(32)} one ${words(40)}`)
  const second = ofText(`${words(32)} two ${words(40)}`)
  expect(first.slice(0, 2)).toEqual(second.slice(0, 2))
  for (let index = 2; index < first.length; index += 1) expect(first[index]).not.toBe(second[index])
})

test('blocks of the same text at other places have other names', () => {
  expect(new Set(ofText(words(160))).size).toBe(10)
})

test('who says it counts, and so do token ids', () => {
  const said = (role: string) => blockHashes([chatPrompt([{ role, content: words(16) }])], 16)
  expect(said('user')).not.toEqual(said('system'))
  const ids = Array.from({ length: 33 }, (_, index) => index)
  expect(blockHashes(promptsOf(ids), 16)).toHaveLength(2)
  expect(blockHashes(promptsOf([...ids.slice(0, 16), 99, ...ids.slice(17)]), 16)[0]).toBe(
    blockHashes(promptsOf(ids), 16)[0],
  )
})

test('names are whole numbers that a double holds', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 64, maxLength: 200 }), (text) => {
      for (const name of ofText(text)) expect(Number.isSafeInteger(name)).toBe(true)
    }),
  )
})
