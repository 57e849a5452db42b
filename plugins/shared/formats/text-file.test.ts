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
