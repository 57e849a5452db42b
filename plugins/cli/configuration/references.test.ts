import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readSecretFile } from './references.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-secret-'))
afterAll(() => rmSync(folder, { recursive: true }))

function write(content: string | Buffer): string {
  const path = join(folder, 'secret')
  writeFileSync(path, content)
  return path
}

test.each([
  ['key', 'key'],
  ['key\n', 'key'],
  ['key\r\n', 'key'],
  ['key\n\n', 'key\n'],
  [' key ', ' key '],
  ['a\nb', 'a\nb'],
  ['schlüssel', 'schlüssel'],
])('%j is read as %j', (content, expected) => {
  expect(readSecretFile(write(content))).toBe(expected)
})

test('a symbolic link is followed, as mounted secrets have them', () => {
  const link = join(folder, 'link')
  symlinkSync(write('key\n'), link)
  expect(readSecretFile(link)).toBe('key')
})

test.each([
  ['an empty file', () => write('\n'), /it is empty/],
  ['a large file', () => write('x'.repeat(65_537)), /65537 bytes, at most 65536/],
  ['bytes that are no text', () => write(Buffer.from([0x73, 0xff])), /not UTF-8/],
  ['a missing file', () => join(folder, 'missing'), /ENOENT/],
  [
    'a folder',
    () => {
      const path = join(folder, 'folder')
      mkdirSync(path)
      return path
    },
    /not a regular file/,
  ],
  [
    'a pipe without a writer',
    () => {
      const path = join(folder, 'pipe')
      execFileSync('mkfifo', [path])
      chmodSync(path, 0o600)
      return path
    },
    /not a regular file/,
  ],
])('%s is rejected', (_name, make, pattern) => {
  expect(() => readSecretFile(make())).toThrow(pattern)
})
