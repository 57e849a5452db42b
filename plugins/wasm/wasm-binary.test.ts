import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { tinyModule } from '../../test/fixtures/wasm/tiny-module.ts'
import { BadModule, hasStartSection, limitMemory, readSections, readU32, writeU32 } from './wasm-binary.ts'

const own = (bytes: Uint8Array) => Uint8Array.from(bytes)
const module = (options: Parameters<typeof tinyModule>[0] = {}) =>
  own(tinyModule({ exports: ['run'], ...options }))

/** Pages that the module's memory can really grow to. */
function grownPages(bytes: Uint8Array<ArrayBuffer>): number {
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes))
  const memory = instance.exports.memory as WebAssembly.Memory
  for (;;) {
    try {
      memory.grow(1)
    } catch {
      return memory.buffer.byteLength / 65_536
    }
  }
}

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

describe('a memory', () => {
  test('of any size is limited to the smaller of its own limit and ours, and the module still runs', () => {
    const size = fc.integer({ min: 0, max: 40 })
    fc.assert(
      fc.property(size, fc.option(size), fc.integer({ min: 1, max: 20 }), (minimum, more, maxPages) => {
        const maximum = more === null ? undefined : minimum + more
        const bytes = module({ memory: { minimum, maximum } })
        if (minimum > maxPages) {
          expect(() => limitMemory(bytes, maxPages)).toThrow(/the limit is/)
          return
        }
        const limited = limitMemory(bytes, maxPages)
        expect(WebAssembly.validate(limited)).toBe(true)
        expect(grownPages(limited)).toBe(Math.min(maximum ?? maxPages, maxPages))
        // Nothing to change a second time.
        expect(limitMemory(limited, maxPages)).toBe(limited)
      }),
      { numRuns: 60 },
    )
  })

  test('that is shared or has 64-bit addresses is refused', () => {
    for (const flags of [2, 3, 4, 5])
      expect(() => limitMemory(module({ memory: { minimum: 1, maximum: 2, flags } }), 10)).toThrow(/shared/)
  })

  test('that is not there changes nothing', () => {
    const bytes = module()
    expect(limitMemory(bytes, 1)).toBe(bytes)
  })
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
        limitMemory(bytes, 16)
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
