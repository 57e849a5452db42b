/** Blocks of results of every kind, valid and not, as text and images. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readResult } from './tool-output.ts'

/** `String()` throws for it. */
const UNPRINTABLE = { toString: 1, valueOf: 1 }
const base64 = (...bytes: number[]) => Buffer.from(bytes).toString('base64')
const blob = (mimeType: unknown, data: string) => ({
  type: 'resource',
  resource: { uri: 'a://b', mimeType, blob: data },
})
const TEXT = base64(...Buffer.from('{"nonce":"héron"}'))

test.each<[string, unknown, string, string | null]>([
  ['text', 'text/plain', TEXT, '{"nonce":"héron"}'],
  ['text with a character set', 'text/csv; charset=UTF-8', TEXT, '{"nonce":"héron"}'],
  ['text in another character set', 'text/plain;charset="iso-8859-1"', base64(0xe9, 0x61), 'éa'],
  ['text in UTF-16', 'text/plain; charset=utf-16le', base64(0x61, 0, 0xe9, 0), 'aé'],
  ['JSON', 'application/json', TEXT, '{"nonce":"héron"}'],
  ['a type that ends with +json', 'application/vnd.api+json', TEXT, '{"nonce":"héron"}'],
  ['a script', 'application/x-sh', TEXT, '{"nonce":"héron"}'],
  ['SVG', 'image/svg+xml', TEXT, '{"nonce":"héron"}'],
  ['a type in capitals', 'TEXT/PLAIN', TEXT, '{"nonce":"héron"}'],
  ['no type', undefined, TEXT, '{"nonce":"héron"}'],
  ['wrapped base64', 'text/plain', TEXT.replace(/.{4}/g, '$&\n'), '{"nonce":"héron"}'],
  ['text that is no UTF-8', 'text/plain', base64(0xe9, 0x61), null],
  ['an unknown character set', 'text/plain; charset=klingon', TEXT, null],
  ['bytes', 'application/octet-stream', base64(0x61, 0, 0x62), null],
  ['a PDF with its binary mark', 'application/pdf', base64(0x25, 0x50, 0x44, 0x46, 0x0a, 0xe2, 0xe3), null],
  ['audio', 'audio/mpeg', TEXT, null],
  ['video', 'video/mp4', TEXT, null],
  ['invalid base64', 'text/plain', 'not base64!', null],
  ['an unprintable type', UNPRINTABLE, TEXT, null],
])('a resource in base64: %s', (_what, mimeType, data, expected) => {
  const { text, images } = readResult({ content: [blob(mimeType, data)] }, 1_000)
  expect(images).toEqual([])
  if (expected === null) expect(text).toMatch(/^\[resource a:\/\/b: [^\n]+\]$/)
  else expect(text).toBe(`[resource a://b]\n${expected}`)
})

test.each<[string, object]>([
  ['as a block', { type: 'image', mimeType: 'image/png', data: 'QUJD' }],
  ['as a resource', blob('image/png', 'QUJD')],
  ['with capitals and a parameter', { type: 'image', mimeType: 'IMAGE/PNG; q=1', data: 'QUJD' }],
  ['with wrapped base64', { type: 'image', mimeType: 'image/png', data: 'QU\r\nJD\n' }],
])('an image %s', (_what, block) => {
  const { text, images } = readResult({ content: [block] }, 1_000)
  expect(images).toEqual([{ mimeType: 'image/png', data: 'QUJD' }])
  expect(text).toMatch(/^\[.*3 bytes\]$/)
})

test.each<[string, object, string]>([
  ['an image without a type', { type: 'image', data: 'QUJD' }, '[image: unknown, 3 bytes]'],
  [
    'an image in a data URL',
    { type: 'image', mimeType: 'image/png', data: 'data:image/png;base64,QUJD' },
    '[image: image/png, invalid base64]',
  ],
  [
    'an empty image',
    { type: 'image', mimeType: 'image/png', data: '' },
    '[image: image/png, invalid base64]',
  ],
  [
    'a kind of media of a later revision',
    { type: 'video', mimeType: 'video/mp4', data: 'QUJD' },
    '[video: video/mp4, 3 bytes]',
  ],
  ['an unknown block', { type: 'table', rows: [1] }, '{"type":"table","rows":[1]}'],
  ['a resource without content', { type: 'resource', resource: { uri: 'a://b' } }, '{"uri":"a://b"}'],
  [
    'an unprintable address',
    { type: 'resource', resource: { uri: UNPRINTABLE, text: 'x' } },
    '[resource unknown]\nx',
  ],
  [
    'a link with a description',
    { type: 'resource_link', uri: 'a://b', name: 'b', description: 'All of it.' },
    '[link to resource a://b, b]\nAll of it.',
  ],
])('%s becomes text', (_what, block, expected) => {
  expect(readResult({ content: [block] }, 1_000)).toMatchObject({ text: expected, images: [] })
})

test('structured content is added to blocks without text only', () => {
  const structuredContent = { a: 1 }
  const image = { type: 'image', mimeType: 'image/png', data: 'QUJD' }
  const textOf = (...content: object[]) => readResult({ content, structuredContent }, 1_000).text
  expect(textOf(image)).toBe('[image: image/png, 3 bytes]\n{"a":1}')
  expect(textOf(image, { type: 'text', text: 'one' })).toBe('[image: image/png, 3 bytes]\none')
})

test('any JSON value is read or rejected by name, within the limit', () => {
  const block = fc.oneof(
    fc.jsonValue(),
    fc.record(
      {
        type: fc.constantFrom('text', 'image', 'audio', 'resource', 'resource_link', 'x'),
        text: fc.jsonValue(),
        data: fc.oneof(fc.base64String(), fc.jsonValue()),
        mimeType: fc.oneof(
          fc.constantFrom('image/png', 'text/plain', 'text/plain;charset=x', ''),
          fc.jsonValue(),
        ),
        uri: fc.jsonValue(),
        resource: fc.oneof(
          fc.record({ uri: fc.string(), blob: fc.base64String(), mimeType: fc.string() }),
          fc.jsonValue(),
        ),
      },
      { requiredKeys: ['type'] },
    ),
  )
  const result = fc.record(
    {
      content: fc.oneof(fc.array(block), fc.jsonValue()),
      structuredContent: fc.jsonValue(),
      isError: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.oneof(result, fc.jsonValue()), fc.integer({ min: 1, max: 200 }), (value, maxBytes) => {
      try {
        const { text, images } = readResult(value, maxBytes)
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes + '\n[output cut off here]'.length)
        expect(images.reduce((sum, { data }) => sum + data.length, 0)).toBeLessThanOrEqual(maxBytes)
      } catch (error) {
        expect((error as Error).name).toBe('ToolServerError')
      }
    }),
  )
})
