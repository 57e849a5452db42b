import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arrayShape, topLevelMembers, withMembers } from './json-members.ts'

const set = (text: string, members: Record<string, string>) =>
  withMembers(Buffer.from(text), new Map(Object.entries(members)))?.toString()

describe('members set in bytes', () => {
  test('come first; the rest is unchanged byte for byte', () => {
    expect(set(' {\n "a" : 1e2 ,"b":[ 1 ]}\n', { rank: '3' })).toBe('{"rank":3,\n "a" : 1e2 ,"b":[ 1 ]}\n')
    expect(set('{}', { rank: '3' })).toBe('{"rank":3}')
    expect(set('{ }', { a: '1', b: 'null' })).toBe('{"a":1,"b":null}')
  })

  test('replace members of their name, in any number and spelling', () => {
    expect(set('{"x":1, "r":{"x":[2]},"y":"r", "\\u0072" : 4,"r":5 }', { r: '7' })).toBe(
      '{"r":7,"x":1,"y":"r"}',
    )
    expect(set('{"r":1}', { r: '2' })).toBe('{"r":2}')
  })

  test('do not affect nested members and strings', () => {
    expect(set('{"s":"{\\"r\\":1}","d":{"r":1}}', { r: '2' })).toBe('{"r":2,"s":"{\\"r\\":1}","d":{"r":1}}')
  })

  test.each([
    '',
    '[]',
    '[{"a":1}]',
    '1',
    '"x"',
    '{',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":"',
    '{a:1}',
  ])('%o is not an object and is ignored', (text) => expect(set(text, { r: '1' })).toBeUndefined())

  test('equal setting them on the parsed object, for any object', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.oneof(fc.constantFrom('r', 's', 'a"b', 'ü'), fc.string()), fc.jsonValue()),
        fc.constantFrom(0, 1, '\t'),
        (object, space) => {
          const text = JSON.stringify(object, null, space)
          // A name such as __proto__ is an ordinary one in JSON.
          const { r: _r, s: _s, ...rest } = JSON.parse(text)
          const changed = set(text, { r: '[1]', s: '{"t":null}' })
          expect(JSON.parse(changed as string)).toEqual({ ...rest, r: [1], s: { t: null } })
        },
      ),
    )
  })
})

test('members are found where a parser finds them', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(0, 2), (object, space) => {
      const text = Buffer.from(JSON.stringify(object, null, space))
      const found = topLevelMembers(text)?.map(({ name, valueStart, valueEnd }) => [
        name,
        JSON.parse(text.toString('utf8', valueStart, valueEnd)),
      ])
      expect(found).toEqual(Object.entries(JSON.parse(text.toString())))
    }),
  )
})

describe('the shape of an array', () => {
  test('is its length, for every array', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(0, 1), (array, space) => {
        expect(arrayShape(Buffer.from(JSON.stringify(array, null, space)), 0)?.length).toBe(array.length)
      }),
    )
  })

  test('returns the first byte of its first element', () => {
    expect(arrayShape(Buffer.from('[ [1], 2]'), 0)).toEqual({ length: 2, firstByte: 0x5b })
    expect(arrayShape(Buffer.from('"[1]"'), 0)).toBeNull()
    expect(arrayShape(Buffer.from('[1'), 0)).toBeNull()
  })
})
