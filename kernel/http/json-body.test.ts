/** The peek agrees with JSON.parse on any JSON text, and returns the byte range of the model. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../test/support/thorough.ts'
import { LongBodies, peekRouting, type ScannedBody } from './json-body.ts'

const peek = (text: string) => peekRouting(Buffer.from(text), 128)

describe('peekRouting', () => {
  test('finds model and stream in any key order, nesting and whitespace', () => {
    expect(peek('{"model":"m","stream":true}')).toEqual({
      model: 'm',
      stream: true,
      modelStart: 9,
      modelEnd: 12,
      streamOptionsStart: -1,
    })
    expect(
      peek(' {\n"messages" : [{"model":"no","stream":true}] ,\t"stream":false,"model" : "yes" }\n'),
    ).toMatchObject({ model: 'yes', stream: false })
    expect(peek('{}')).toEqual({
      model: null,
      stream: false,
      modelStart: -1,
      modelEnd: -1,
      streamOptionsStart: -1,
    })
    expect(peek('{"model":null,"stream":null}')).toMatchObject({ model: null, stream: false })
  })

  test('takes the last of duplicate keys, as a full parse does', () => {
    expect(peek('{"model":"a","model":"b","stream":true,"stream":false}')).toMatchObject({
      model: 'b',
      stream: false,
    })
    expect(peek('{"model":"a","model":null}')).toMatchObject({ model: null, modelStart: -1 })
    expect(peek('{"model":"a","\\u006dodel":"b"}')).toMatchObject({ model: 'b' })
  })

  test('decodes escaped and non-ASCII model names, with their byte range', () => {
    for (const text of [
      '{"x":"\\"model\\":","model":"a\\u0062\\n"}',
      '{"é":"ü","model":"mödel"}',
      '{"model":"\\ud83d\\ude00"}',
    ]) {
      const found = peek(text)
      expect(found.model).toBe(JSON.parse(text).model)
      expect(JSON.parse(Buffer.from(text).subarray(found.modelStart, found.modelEnd).toString())).toBe(
        found.model,
      )
    }
  })

  test('skips strings of any length and escapes', () => {
    const long = 'x'.repeat(20_000_000)
    expect(peek(`{"\\u0061":"${long}","model":"m"}`).model).toBe('m')
    expect(peek(`{"a":"\\n${long}","model":"m"}`).model).toBe('m')
  })

  test('rejects malformed JSON with its position', () => {
    for (const text of [
      '',
      '{',
      '{"model":"m"',
      '{"model":"m",}',
      '{"a":[1,}]}',
      '{"a" 1}',
      '{"a":01}',
      '{"a":tru}',
      '{"a":1}x',
      "{'a':1}",
      '{"a":[}',
      '{"a":1 "b":2}',
    ]) {
      expect(() => peek(text), text).toThrowError(/not valid JSON/)
    }
    expect(() => peek('{"model": oops}')).toThrowError(/position 10/)
    expect(() => peek('{"a":[[[')).toThrowError(/position 8/)
  })

  test('rejects a body that is no object, and a model or stream of another type', () => {
    expect(() => peek(' [1]')).toThrowError(/must be one JSON object \(got an array\)/)
    expect(() => peek('"a"')).toThrowError(/\(got a string\)/)
    expect(() => peek('null')).toThrowError(/\(got a number, true, false or null\)/)
    expect(() => peek('{"model":1}')).toThrowError(/'model' must be a string/)
    expect(() => peek('{"model":{"a":1}}')).toThrowError(/'model'/)
    expect(() => peek('{"stream":"yes"}')).toThrowError(/'stream' must be/)
  })

  test('agrees with JSON.parse on any object, in any spacing', () => {
    const key = fc.oneof(
      fc.constantFrom('model', 'stream', 'messages', 'mod\\el'),
      fc.string({ unit: 'binary' }),
    )
    const value = fc.oneof(
      { weight: 3, arbitrary: fc.jsonValue() },
      { weight: 1, arbitrary: fc.string({ minLength: 20, maxLength: 90, unit: 'binary' }) },
    )
    fc.assert(
      fc.property(
        fc.array(fc.tuple(key, value)),
        fc.option(fc.string({ unit: 'binary' })),
        fc.option(fc.boolean()),
        fc.constantFrom(undefined, 1, '\t'),
        fc.nat(),
        (entries, model, stream, indent, place) => {
          const rest = entries.filter(
            ([name]) => name !== 'model' && name !== 'stream' && name !== '__proto__',
          )
          const all: [string, unknown][] = [...rest]
          if (model !== null) all.splice(place % (all.length + 1), 0, ['model', model])
          if (stream !== null) all.splice(place % (all.length + 1), 0, ['stream', stream])
          const text = JSON.stringify(Object.fromEntries(all), null, indent)
          const found = peek(text)
          expect(found.model).toBe(model)
          expect(found.stream).toBe(stream === true)
          if (model !== null) {
            const range = Buffer.from(text).subarray(found.modelStart, found.modelEnd).toString()
            expect(JSON.parse(range)).toBe(model)
          }
        },
      ),
      { numRuns: runs(500) },
    )
  })

  test('never accepts what JSON.parse rejects outside of strings', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.nat(),
        fc.constantFrom(',', ':', '}', ']', '{', '[', '0', 't', ''),
        (value, place, noise) => {
          const whole = JSON.stringify({ model: 'm', value })
          const at = place % whole.length
          const broken = whole.slice(0, at) + noise + whole.slice(at + 1)
          let parsed: unknown
          try {
            parsed = JSON.parse(broken)
          } catch (error) {
            if (!/Bad (escaped|control|Unicode)/.test((error as Error).message))
              expect(() => peek(broken)).toThrow()
            return
          }
          const { model, stream } = parsed as { model?: unknown; stream?: unknown }
          if (
            (typeof model === 'string' || model == null) &&
            (typeof stream === 'boolean' || stream == null)
          ) {
            expect(peek(broken).model).toBe(model ?? null)
          }
        },
      ),
      { numRuns: runs(1000) },
    )
  })
})

const STEP_BYTES = 65_536
const bodyOf = (bytes: number) => Buffer.from(`{"model":"m","a":[${'1,'.repeat(bytes / 2)}1]}`)
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('other work of the thread runs after each step', async () => {
  const bodies = new LongBodies(128)
  let scanned: ScannedBody | null = null
  bodies.scan(
    bodyOf(16 * STEP_BYTES),
    () => true,
    (done) => {
      scanned = done
    },
  )
  expect(scanned).toBeNull()
  let turns = 0
  for (; scanned === null; turns++) await nextTurn()
  expect(scanned).toMatchObject({ state: 'whole', scan: { model: 'm' } })
  expect(turns).toBeGreaterThanOrEqual(16)
})

test('a shorter body does not wait for the end of a longer one', async () => {
  const bodies = new LongBodies(128)
  const done: string[] = []
  const scan = (name: string, body: Buffer) =>
    bodies.scan(
      body,
      () => true,
      () => void done.push(name),
    )
  scan('long', bodyOf(16 * STEP_BYTES))
  scan('short', bodyOf(STEP_BYTES))
  while (done.length < 2) await nextTurn()
  expect(done).toEqual(['short', 'long'])
})

test('a scan that is no longer needed stops, and the next one runs', async () => {
  const bodies = new LongBodies(128)
  const done: string[] = []
  let isWanted = true
  bodies.scan(
    bodyOf(16 * STEP_BYTES),
    () => isWanted,
    () => void done.push('left'),
  )
  await nextTurn()
  isWanted = false
  bodies.scan(
    bodyOf(16 * STEP_BYTES),
    () => true,
    ({ state }) => void done.push(state),
  )
  while (done.length === 0) await nextTurn()
  expect(done).toEqual(['whole'])
})
