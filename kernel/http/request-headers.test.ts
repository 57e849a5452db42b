/** Changes of request headers by plugins: what handlers see, and what the worker receives. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type CopiedHeaders, changeHeader } from './request-headers.ts'

const NAMES = ['x-a', 'x-b', 'authorization', 'content-length'] as const
const nameAndValue = fc.tuple(fc.constantFrom(...NAMES), fc.stringMatching(/^[0-9]{1,2}$/))
const change = fc.tuple(fc.constantFrom('set', 'add', 'remove' as const), nameAndValue)

const valuesOf = (headers: readonly string[], name: string): readonly string[] =>
  headers.filter((_, place) => place % 2 === 1 && headers[place - 1] === name)

test('a set name has that value only, others are unchanged, and headers written elsewhere are not forwarded', () => {
  fc.assert(
    fc.property(fc.array(nameAndValue), fc.array(change), (given, changes) => {
      const pairs = given.filter(([name]) => name !== 'content-length')
      const headers = {
        kept: pairs.flat(),
        forwarded: pairs.filter(([name]) => name !== 'authorization').flat(),
      } as unknown as CopiedHeaders
      const expected = new Map(NAMES.map((name) => [name as string, valuesOf(headers.kept, name)]))
      for (const [kind, [name, value]] of changes) {
        changeHeader(headers, kind, name, value)
        if (name === 'content-length') continue
        const before = kind === 'add' ? (expected.get(name) ?? []) : []
        expected.set(name, kind === 'remove' ? before : [...before, value])
      }
      for (const name of NAMES) {
        expect(valuesOf(headers.kept, name)).toEqual(expected.get(name))
        const forwarded = name === 'authorization' ? [] : expected.get(name)
        expect(valuesOf(headers.forwarded, name)).toEqual(forwarded)
      }
    }),
  )
})
