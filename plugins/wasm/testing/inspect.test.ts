/** Inspection of module files, compared with the WebAssembly engine. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { inspectModule } from './inspect.ts'

const HEADER = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]

test('any bytes are read without an exception', () => {
  const anything = fc.uint8Array({ maxLength: 200 }).map((bytes) => Uint8Array.from([...HEADER, ...bytes]))
  fc.assert(
    fc.property(anything, (bytes) => {
      const report = inspectModule(bytes)
      if (WebAssembly.validate(bytes)) expect(report.problem).toBeNull()
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
