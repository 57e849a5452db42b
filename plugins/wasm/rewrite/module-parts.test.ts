import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tinyModule } from '../../../test/fixtures/wasm/tiny-module.ts'
import { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'
import { readParts, readSections } from './module-parts.ts'
import { BadModule } from './module-rejected.ts'

const own = (bytes: Uint8Array) => Uint8Array.from(bytes)
const module = (options: Parameters<typeof tinyModule>[0] = {}) =>
  own(tinyModule({ exports: ['run'], ...options }))

test('integers are read as written, between any other bytes', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), fc.nat(20), (value, before) => {
      const writer = new ByteWriter()
      writer.write(new Array(before).fill(0xff))
      writer.u32(value)
      writer.byte(0xff)
      const reader = new ByteReader(writer.view(), before)
      expect([reader.u32(), reader.at]).toEqual([value, writer.length - 1])
    }),
  )
  const read = (...bytes: number[]) => new ByteReader(Uint8Array.from(bytes)).u32()
  expect(() => read(0x80, 0x80)).toThrow(BadModule)
  expect(() => read(0xff, 0xff, 0xff, 0xff, 0x7f)).toThrow(BadModule)
  expect(() => read(0x80, 0x80, 0x80, 0x80, 0x80, 0)).toThrow(BadModule)
})

test('sections are adjacent up to the end of the file', () => {
  const bytes = module({ memory: { minimum: 1 }, imports: ['a.b'] })
  let at = 8
  for (const { id, from, to } of readSections(bytes)) {
    expect(bytes[at]).toBe(id)
    expect(from).toBeGreaterThan(at)
    at = to
  }
  expect(at).toBe(bytes.length)
})

test('any bytes are read or rejected with a message', () => {
  const valid = module({ memory: { minimum: 1 } })
  const damaged = fc
    .array(fc.tuple(fc.nat(valid.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 6 })
    .chain((edits) => fc.record({ edits: fc.constant(edits), length: fc.nat(valid.length) }))
  fc.assert(
    fc.property(damaged, ({ edits, length }) => {
      const bytes = valid.slice(0, length)
      for (const [at, value] of edits) if (at < length) bytes[at] = value
      try {
        readSections(bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(BadModule)
      }
    }),
    { numRuns: 500 },
  )
})

test.each([
  ['nothing', [], 'not a WebAssembly binary'],
  ['text', [...Buffer.from('hello world')], 'not a WebAssembly binary'],
  ['a component', [0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0], 'a core module is expected'],
  ['another version', [0, 0x61, 0x73, 0x6d, 2, 0, 0, 0], 'of version 1'],
  ['a section that is too long', [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 0, 5, 1], 'the file ends too early'],
])('%s is rejected', (_, bytes, message) => {
  expect(() => readSections(Uint8Array.from(bytes as number[]))).toThrow(message)
})

/** A module whose imports are one entry of these bytes, and a function. */
function importing(...entry: number[]): Uint8Array<ArrayBuffer> {
  const imports = [2, 1, 0x6d, 1, 0x67, ...entry, 1, 0x6d, 1, 0x66, 0, 0]
  const types = [1, 0x60, 0, 0]
  const sections = [1, types.length, ...types, 2, imports.length, ...imports]
  return Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...sections])
}

test('imports are read whole: a type may have several bytes, and a tag any index', () => {
  expect(() => readParts(importing(3, 0x65, 0x00, 0))).toThrow('values of the type 0x65')
  const kinds = (bytes: Uint8Array<ArrayBuffer>) =>
    readParts(bytes).imports.map(({ name, kind }) => [name, kind])
  for (const type of [[0x7f], [0x63, 0x00], [0x64, 0xfd, 0x0c]])
    expect(kinds(importing(3, ...type, 0))).toEqual([
      ['g', 3],
      ['f', 0],
    ])
  expect(kinds(importing(4, 0, 0x80, 0x01))).toEqual([
    ['g', 4],
    ['f', 0],
  ])
})
