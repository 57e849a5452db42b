/** The scan of a JSON text: the same at once and in steps, bounded in depth, and fast for any bytes. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JsonScan, type ScanState } from '../wire/json-scan.ts'
import { parseJson, peekRouting } from './json-body.ts'

function scanInSteps(body: Buffer, stepBytes: number, maxDepth = 128) {
  const scan = new JsonScan().begin(body, maxDepth)
  let state: ScanState = 'more'
  for (let turns = 0; state === 'more'; turns++) {
    state = scan.run(Math.min(body.length, scan.reached + stepBytes))
    if (turns > body.length) throw new Error('the scan does not come to an end')
  }
  const { at, model, modelStart, modelEnd, streamOptionsStart, stream, containers, commas, isObject } = scan
  return { state, at, model, modelStart, modelEnd, streamOptionsStart, stream, containers, commas, isObject }
}

const noisy = fc
  .tuple(
    fc.record({
      model: fc.string(),
      stream: fc.boolean(),
      text: fc.string({ maxLength: 200 }),
      rest: fc.jsonValue(),
    }),
    fc.nat(),
    fc.constantFrom('', '"', '\\', '{', ']', ',', '\\"', '\\\\'),
  )
  .map(([value, place, noise]) => {
    const text = JSON.stringify(value)
    const at = place % text.length
    return Buffer.from(text.slice(0, at) + noise + text.slice(at))
  })

test('any steps give the same result as one scan', () => {
  fc.assert(
    fc.property(noisy, fc.integer({ min: 1, max: 60 }), (body, step) => {
      expect(scanInSteps(body, step)).toEqual(scanInSteps(body, body.length))
    }),
    { numRuns: 2_000 },
  )
})

test('strings of many escapes are scanned correctly in any steps', () => {
  for (const piece of ['\\\\', '\\"', `${'\\\\'.repeat(200)}\\"`, 'a\\"', '\\n'.repeat(80)]) {
    const body = Buffer.from(`{"a":"${piece.repeat(50)}","model":"m"}`)
    for (const step of [1, 7, 100, 5_000])
      expect(scanInSteps(body, step)).toMatchObject({ state: 'whole', model: 'm' })
  }
})

describe('limits', () => {
  const nested = (depth: number) =>
    Buffer.from(`{"model":"m","a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`)

  test('a body at the depth limit passes, one level more is rejected with the limit', () => {
    expect(peekRouting(nested(128), 128).model).toBe('m')
    expect(() => peekRouting(nested(129), 128)).toThrow(/nested more than 128 levels deep/)
    expect(() => parseJson(nested(129), 128, null)).toThrow(/nested more than 128 levels deep/)
    expect(parseJson(nested(128), 128, null)).toMatchObject({ model: 'm' })
    expect(() => parseJson(Buffer.from('['.repeat(4_000_000)), 128, null)).toThrow(/128 levels/)
  })

  test('an error in a long body has the position only, because the body is not parsed for a message', () => {
    const broken = (bytes: number) => Buffer.from(`{"a":"${'x'.repeat(bytes)}",}`)
    expect(() => peekRouting(broken(100), 128)).toThrow(/line 1, column 109/)
    expect(() => peekRouting(broken(1_000_000), 128)).toThrow(/unexpected token at position 1000008$/)
    expect(() => parseJson(broken(1_000_000), 128, null)).toThrow(/unexpected token at position 1000008$/)
  })

  test('more objects than the limit are rejected before parsing', () => {
    const body = Buffer.from(`{"a":[${'{},'.repeat(300_000)}{}]}`)
    const before = process.cpuUsage()
    expect(() => parseJson(body, 128, null)).toThrow(/more than 131072 objects and arrays/)
    expect(() => parseJson(Buffer.from(`[${'1,'.repeat(3_000_000)}1]`), 128, null)).toThrow(/values/)
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(20_000)
  })

  test('a model name of megabytes is rejected', () => {
    expect(() => peekRouting(Buffer.from(`{"model":"${'ü'.repeat(1_000_000)}"}`), 128)).toThrow(
      /'model' must be/,
    )
    expect(peekRouting(Buffer.from(`{"model":"${'x'.repeat(9_000)}","model":"m"}`), 128).model).toBe('m')
  })
})

test.each<[string, (bytes: number) => string]>([
  ['open brackets', (bytes) => '['.repeat(bytes)],
  ['an escaped key before a long string', (bytes) => `{"\\u0061":"${'x'.repeat(bytes)}`],
  ['empty objects', (bytes) => `{"a":[${'{},'.repeat(bytes / 3)}`],
  ['a string of backslashes', (bytes) => `{"a":"${'\\'.repeat(bytes)}`],
  ['a string of escaped quotes', (bytes) => `{"a":"${'\\"'.repeat(bytes / 2)}`],
  ['commas', (bytes) => `{"a":[${'1,'.repeat(bytes / 2)}`],
  ['blanks', (bytes) => ' '.repeat(bytes)],
  ['many members', (bytes) => `{${'"a":1,'.repeat(bytes / 6)}`],
  ['open strings', (bytes) => '"'.repeat(bytes)],
  ['digits', (bytes) => `{"a":${'1'.repeat(bytes)}`],
])('8 MB of %s: no step takes long', (_what, text) => {
  const body = Buffer.from(text(8_388_608))
  const scan = new JsonScan().begin(body, 128)
  let longestMs = 0
  for (let state: ScanState = 'more'; state === 'more'; ) {
    const before = process.cpuUsage()
    state = scan.run(Math.min(body.length, scan.reached + 65_536))
    longestMs = Math.max(longestMs, process.cpuUsage(before).user / 1_000)
  }
  // A step takes a few milliseconds; quadratic work would take minutes.
  expect(longestMs).toBeLessThan(2_000)
})
