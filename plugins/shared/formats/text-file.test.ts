import { expect, test } from 'vitest'
import { textOfFile } from './text-file.ts'

test('files of text are read from data URLs; others are not', () => {
  const base64 = Buffer.from('é, b').toString('base64')
  expect([
    textOfFile(`data:text/plain;base64,${base64}`, 'a.txt'),
    textOfFile(`data:text/markdown;charset=utf-8;base64,${base64}`),
    textOfFile('data:text/csv,%C3%A9%2C%20b'),
    textOfFile('data:application/json,{"a":"100%"}'),
    textOfFile(`data:application/pdf;base64,${base64}`),
    textOfFile(base64),
  ]).toEqual(['a.txt:\né, b', 'é, b', 'é, b', '{"a":"100%"}', null, null])
})

const bytes = (...all: number[]) => Buffer.from(all).toString('base64')

test.each([
  ['the charset of its type', `;charset=iso-8859-1;base64,${bytes(0xe9)}`, 'é'],
  ['a quoted charset', `; charset="Windows-1252";base64,${bytes(0x80)}`, '€'],
  ['a charset and escapes', ';charset=iso-8859-1,%E9', 'é'],
  ['several bytes per character', `;charset=shift_jis;base64,${bytes(0x83, 0x41)}`, 'ア'],
  ['a byte order mark of UTF-8', `;base64,${bytes(0xef, 0xbb, 0xbf, 0x61)}`, 'a'],
  ['a byte order mark of UTF-16', `;base64,${bytes(0xff, 0xfe, 0xe9, 0)}`, 'é'],
  ['a byte order mark that differs', `;charset=iso-8859-1;base64,${bytes(0xfe, 0xff, 0, 0xe9)}`, 'é'],
])('text by %s', (_, end, text) => expect(textOfFile(`data:text/plain${end}`)).toBe(text))

test.each([
  ['other bytes', `;base64,${bytes(0xe9)}`, "'utf-8'"],
  ['an unknown charset', `;charset=klingon;base64,${bytes(0x61)}`, "'klingon'"],
])('%s are an error that names the charset', (_, end, charset) =>
  expect(() => textOfFile(`data:text/plain${end}`)).toThrow(charset),
)
