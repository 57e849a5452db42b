/** What is read from and written into module files, with modules that the engine itself judges. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { inspectModule } from './inspect.ts'
import { limitMemory } from './memory-limit.ts'

const HEADER = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
const MEMORY_EXPORT = [7, 7, 1, 3, 0x6d, 0x65, 0x6d, 2, 0]
const leb = (value: number): number[] =>
  value < 128 ? [value] : [(value % 128) | 128, ...leb(Math.floor(value / 128))]

function withMemory(min: number, max: number | null): Uint8Array {
  const limits = max === null ? [0, ...leb(min)] : [1, ...leb(min), ...leb(max)]
  return Uint8Array.from([...HEADER, 5, limits.length + 1, 1, ...limits, ...MEMORY_EXPORT])
}

function memoryOf(bytes: Uint8Array): WebAssembly.Memory {
  return new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(bytes))).exports
    .mem as WebAssembly.Memory
}

test('W44 whatever a module asks for, its memory ends at the limit', () => {
  const memory = fc.tuple(fc.integer({ min: 0, max: 200 }), fc.option(fc.integer({ min: 0, max: 60_000 })))
  fc.assert(
    fc.property(memory, fc.integer({ min: 200, max: 300 }), ([min, extra], limit) => {
      const max = extra === null ? null : min + extra
      const limited = limitMemory(withMemory(min, max), limit)
      expect(inspectModule(limited).memories).toEqual([
        { minPages: min, maxPages: Math.min(max ?? limit, limit) },
      ])
      const grown = memoryOf(limited)
      const room = Math.min(max ?? limit, limit) - min
      expect(grown.grow(room)).toBe(min)
      expect(() => grown.grow(1)).toThrow(RangeError)
    }),
  )
})

test('a module that starts with more memory than the limit is refused', () => {
  expect(() => limitMemory(withMemory(300, null), 299)).toThrow(
    'starts with 300 pages, more than the 299 allowed',
  )
})

test('a module without a memory of its own stays as it is', () => {
  const bytes = Uint8Array.from(HEADER)
  expect(limitMemory(bytes, 10)).toBe(bytes)
})

test('bytes of any kind are read without an exception', () => {
  const anything = fc.uint8Array({ maxLength: 200 }).map((bytes) => Uint8Array.from([...HEADER, ...bytes]))
  fc.assert(
    fc.property(anything, (bytes) => {
      const report = inspectModule(bytes)
      if (WebAssembly.validate(bytes)) expect(report.problem).toBeNull()
    }),
    { numRuns: 1_000 },
  )
})

test('a broken module ends with a RangeError when its memory is to be limited, never in a loop', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      try {
        limitMemory(Uint8Array.from([...HEADER, ...bytes]), 10)
      } catch (cause) {
        expect(cause).toBeInstanceOf(RangeError)
      }
    }),
    { numRuns: 1_000 },
  )
})

test('digest and size are those of the file', () => {
  expect(inspectModule(Uint8Array.from(HEADER))).toMatchObject({
    bytes: 8,
    sha256: '93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476',
  })
})
