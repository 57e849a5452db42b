import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tinyModule } from '../../../test/fixtures/wasm/tiny-module.ts'
import { BadModule } from './bad-module.ts'
import { hasStartSection, readSections, readU32, writeU32 } from './wasm-binary.ts'

const own = (bytes: Uint8Array) => Uint8Array.from(bytes)
const module = (options: Parameters<typeof tinyModule>[0] = {}) =>
  own(tinyModule({ exports: ['run'], ...options }))

test('numbers are read as they are written, whatever is around them', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), fc.nat(20), (value, before) => {
      const bytes = Uint8Array.from([...new Array(before).fill(0xff), ...writeU32(value), 0xff])
      expect(readU32(bytes, before)).toEqual({ value, next: bytes.length - 1 })
    }),
  )
  expect(() => readU32(Uint8Array.from([0x80, 0x80]), 0)).toThrow(BadModule)
  expect(() => readU32(Uint8Array.from([0xff, 0xff, 0xff, 0xff, 0x7f]), 0)).toThrow(BadModule)
  expect(() => readU32(Uint8Array.from([0x80, 0x80, 0x80, 0x80, 0x80, 0]), 0)).toThrow(BadModule)
})

test('sections follow each other without a gap to the end of the file', () => {
  const bytes = module({ memory: { minimum: 1 }, imports: ['a.b'] })
  let at = 8
  for (const { start, from, to } of readSections(bytes)) {
    expect(start).toBe(at)
    expect(from).toBeGreaterThan(start)
    at = to
  }
  expect(at).toBe(bytes.length)
})

test('a start function is noticed', () => {
  expect([hasStartSection(module()), hasStartSection(module({ start: true }))]).toEqual([false, true])
})

test('no bytes whatever make it fail otherwise than by saying what is wrong', () => {
  const valid = module({ memory: { minimum: 1 } })
  const damaged = fc
    .array(fc.tuple(fc.nat(valid.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 6 })
    .chain((edits) => fc.record({ edits: fc.constant(edits), length: fc.nat(valid.length) }))
  fc.assert(
    fc.property(damaged, ({ edits, length }) => {
      const bytes = valid.slice(0, length)
      for (const [at, value] of edits) if (at < length) bytes[at] = value
      try {
        hasStartSection(bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(BadModule)
      }
    }),
    { numRuns: 500 },
  )
})

test.each([
  ['nothing', [], 'no WebAssembly binary'],
  ['text', [...Buffer.from('hello world')], 'no WebAssembly binary'],
  ['a component', [0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0], 'a core module is expected'],
  ['another version', [0, 0x61, 0x73, 0x6d, 2, 0, 0, 0], 'not 1'],
  ['a section that is too long', [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 0, 5, 1], 'longer than the file'],
])('%s is refused', (_, bytes, message) => {
  expect(() => readSections(Uint8Array.from(bytes as number[]))).toThrow(message)
})
