/** The JSON helpers of the AssemblyScript library, inside a compiled module, against those of JavaScript. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { toInput } from '../plugins/wasm/testing/case-input.ts'
import { type CheckedOutput, checkOutput } from '../plugins/wasm/testing/checked-output.ts'
import { ModuleRunner } from '../plugins/wasm/testing/runner.ts'
import { BUILD_LIMIT_MS, BUSY_LIMIT_MS, builtModule } from './fixtures/built-modules.ts'

vi.setConfig({ testTimeout: BUSY_LIMIT_MS })

let runner: ModuleRunner
beforeAll(async () => {
  runner = await ModuleRunner.open({ bytes: await builtModule('wasm-sdk/fixtures/json') })
}, BUILD_LIMIT_MS)
afterAll(() => runner.close())

async function ask(path: string, body: string | Uint8Array, query = ''): Promise<CheckedOutput> {
  const { head } = toInput({ on: 'OnRequest', request: { path, query }, expect: {} }, {}, 0)
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const { output, problem } = await runner.call('OnRequest', head, bytes)
  expect(problem).toBeNull()
  return checkOutput(output, 'OnRequest')
}

const textOf = (answer: CheckedOutput) => answer.body?.toString('utf8') ?? ''
const headerOf = (answer: CheckedOutput, name: string) =>
  answer.headers_set.find(([given]) => given === name)?.[1]

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('reading and writing', () => {
  test('a document that is decoded and written again says the same', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ stringUnit: 'binary' }), fc.nat(3), async (value, indent) => {
        // JavaScript writes minus zero as zero.
        const text = JSON.stringify(value, null, indent)
        expect(JSON.parse(textOf(await ask('/copy', text)))).toEqual(JSON.parse(text))
      }),
      { numRuns: 200 },
    )
  })

  test('text with escapes of every kind is decoded, and lone surrogates stay what they were', async () => {
    const text = String.raw`["\"\\\/\b\f\n\r\t\u0000\u00e4\ud83d\ude00\ud83d", "\udE00x", "ü\u007f😀"]`
    expect(JSON.parse(textOf(await ask('/copy', text)))).toEqual(JSON.parse(text))
  })

  test('a text of many escapes takes time and memory in proportion to its length', async () => {
    const text = JSON.stringify('line\n'.repeat(200_000))
    // Not `toBe`: a difference of a million letters says nothing.
    expect(textOf(await ask('/copy', text)) === text).toBe(true)
  })

  test('what is no JSON is refused, whatever was broken', async () => {
    const broken = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', ',', '"', '\\', '{', ']', '0', '-', 'e', '.', '\n', 'x', '\u0001'),
      )
      .map(([text, at, piece]) => {
        const place = at % (text.length + 1)
        return text.slice(0, place) + piece + text.slice(place + 1)
      })
    await fc.assert(
      fc.asyncProperty(broken, async (text) => {
        expect(headerOf(await ask('/is', text), 'is-json'), text).toBe(String(isJson(text)))
      }),
      { numRuns: 500 },
    )
  })

  test.each([
    '',
    ' ',
    '01',
    '-',
    '1.',
    '.5',
    '1e',
    '+1',
    'nul',
    'truex',
    '"\\x"',
    '"\\u12g4"',
    '[1,]',
    '{"a":1,}',
    '{a:1}',
    "{'a':1}",
    '[1 2]',
    '{"a" 1}',
    '"a',
    '1 1',
    '\u00a01',
    '"\t"',
  ])('%j is no JSON', async (text) => {
    expect(headerOf(await ask('/is', text), 'is-json')).toBe('false')
  })

  test('documents deeper than 256 levels are refused', async () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(headerOf(await ask('/is', nested(257)), 'is-json')).toBe('true')
    expect(headerOf(await ask('/is', nested(258)), 'is-json')).toBe('false')
    expect(headerOf(await ask('/is', nested(100_000)), 'is-json')).toBe('false')
  })
})

describe('members', () => {
  test('a member is found by its name however that is written, and the last of two counts', async () => {
    const text = '{"a":1, "gr\\u00fc\\u00dfe":{"x":[1,{"b":2}]},"a":"z","":0,"ab":3}'
    expect(textOf(await ask('/get', text, 'a'))).toBe('"z"')
    expect(textOf(await ask('/get', text, 'grüße'))).toBe('{"x":[1,{"b":2}]}')
    expect(textOf(await ask('/get', text, ''))).toBe('0')
    expect(textOf(await ask('/get', text, 'b'))).toBe('null')
    expect(textOf(await ask('/get', '["a"]', 'a'))).toBe('null')
  })

  test('every member of any object is found', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue(), { minKeys: 1 }),
        async (value) => {
          const name = Object.keys(value)[0]
          const expected = JSON.parse(JSON.stringify(value))[name]
          expect(JSON.parse(textOf(await ask('/get', JSON.stringify(value), name)))).toEqual(expected)
        },
      ),
      { numRuns: 100 },
    )
  })
})

describe('edits', () => {
  test('change a value and leave every other byte', async () => {
    const text = ' [ "a" ,1.00 , "ü\\n", {"k" : "x"},\n12345678901234567890 ] '
    expect(textOf(await ask('/upper', text))).toBe(
      ' [ "a!" ,1.00 , "ü\\n!", {"k" : "x"},\n12345678901234567890 ] ',
    )
  })
})

describe('numbers', () => {
  test.each([
    ['9007199254740993', '9007199254740993 9007199254740992.0'],
    ['-9223372036854775808', '-9223372036854775808 -9223372036854776000.0'],
    ['1.5e3', '1500 1500.0'],
    ['-0.25', '0 -0.25'],
    ['"1"', '0 NaN'],
  ])('%s is read as %s', async (text, expected) => {
    expect(textOf(await ask('/numbers', text))).toBe(expected)
  })
})

describe('other encodings', () => {
  test('bytes become URL-safe base64 and come back', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 70 }), async (bytes) => {
        expect(headerOf(await ask('/base64', bytes), 'hex')).toBe(Buffer.from(bytes).toString('hex'))
      }),
      { numRuns: 100 },
    )
  })

  test.each([
    ['_-8', 'ffef'],
    ['YQ', '61'],
    ['YR', 'none'],
    ['YQ==', 'none'],
    ['Y', 'none'],
    ['a+/b', 'none'],
    ['äöü1', 'none'],
  ])('%s decodes to %s', async (text, hex) => {
    expect(headerOf(await ask('/from-base64', text), 'hex')).toBe(hex)
  })

  test('names of headers are lowered without touching other alphabets', async () => {
    expect(textOf(await ask('/lower', 'X-Ünïcode-ÄZ'))).toBe('x-Ünïcode-Äz')
  })
})
