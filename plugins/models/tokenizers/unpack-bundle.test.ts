/** Archives from workers, valid and hostile. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { type ZipEntry, zipArchive } from '../../../test/support/zip-archive.ts'
import { SourceError } from './source-files.ts'
import { unpackBundle } from './unpack-bundle.ts'

const base = mkdtempSync(join(tmpdir(), 'weir-unpack-'))
const archive = join(base, 'bundle.zip')
const folder = join(base, 'out')
const LIMITS = { maxEntries: 5, maxBytes: 10_000 }
beforeEach(() => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
})
afterAll(() => rmSync(base, { recursive: true }))

function unpack(bytes: Buffer): string[] {
  writeFileSync(archive, bytes)
  unpackBundle(archive, folder, LIMITS)
  return readdirSync(folder).sort()
}

test('the files of a tokenizer are unpacked, all others are ignored', () => {
  const entries: ZipEntry[] = [
    { name: 'tokenizer.json', content: '{"a":1}'.repeat(100) },
    { name: 'chat_template.jinja', content: 'hi', isStored: true },
    { name: 'run.sh', content: 'rm' },
    { name: 'deep/tokenizer.json', content: '{}' },
    { name: '.jinja', content: '' },
  ]
  expect(unpack(zipArchive(entries))).toEqual(['chat_template.jinja', 'tokenizer.json'])
  expect(readFileSync(join(folder, 'tokenizer.json'), 'utf8')).toBe('{"a":1}'.repeat(100))
})

test('an archive written by another program is unpacked', () => {
  const script =
    "import sys,zipfile; z=zipfile.ZipFile(sys.argv[1],'w',zipfile.ZIP_DEFLATED); z.writestr('config.json','{}'); z.comment=b'from elsewhere'; z.close()"
  try {
    execFileSync('python3', ['-c', script, archive])
  } catch {
    console.warn('skipped: there is no python3 here')
    return
  }
  unpackBundle(archive, folder, LIMITS)
  expect(readdirSync(folder)).toEqual(['config.json'])
})

test.each<[string, ZipEntry[]]>([
  ['a name outside the folder', [{ name: '../tokenizer.json', content: '{}' }]],
  ['a nested name outside the folder', [{ name: 'a/../../tokenizer.json', content: '{}' }]],
  ['an absolute name', [{ name: '/tmp/tokenizer.json', content: '{}' }]],
  ['a Windows drive name', [{ name: 'C:tokenizer.json', content: '{}' }]],
  ['a name with backslashes', [{ name: '..\\tokenizer.json', content: '{}' }]],
  ['a name with a NUL', [{ name: 'tokenizer.json\0.jinja', content: '{}' }]],
  ['too many files', Array.from({ length: 6 }, (_, i) => ({ name: `${i}.jinja`, content: 'x' }))],
  ['a too large file', [{ name: 'a.jinja', content: 'x'.repeat(10_001) }]],
  [
    'too much content in total',
    ['a', 'b'].map((name) => ({ name: `${name}.jinja`, content: 'x'.repeat(6_000) })),
  ],
  [
    'a declared size below the actual one',
    [{ name: 'a.jinja', content: 'x'.repeat(20_000), claims: { bytes: 10 } }],
  ],
  ['a declared size above the actual one', [{ name: 'a.jinja', content: 'x', claims: { bytes: 10 } }]],
  ['a wrong checksum', [{ name: 'a.jinja', content: 'x', claims: { crc: 1 } }]],
  ['an unknown method', [{ name: 'a.jinja', content: 'x', claims: { method: 12 } }]],
  ['the same name twice', ['a', 'a'].map((name) => ({ name: `${name}.jinja`, content: 'x' }))],
])('%s is rejected', (_what, entries) => {
  expect(() => unpack(zipArchive(entries))).toThrow(SourceError)
  expect(existsSync(join(base, 'tokenizer.json'))).toBe(false)
})

test('a corrupted archive is rejected or unpacked, and never throws another error', () => {
  const whole = zipArchive([
    { name: 'tokenizer.json', content: '{"a":1}'.repeat(9) },
    { name: 'b.jinja', content: 'hello', isStored: true },
  ])
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 4 }),
      fc.nat(whole.length),
      (changes, length) => {
        const bytes = Buffer.from(whole.subarray(0, changes.length === 0 ? length : whole.length))
        for (const [at, byte] of changes) bytes[at] = byte
        rmSync(folder, { recursive: true, force: true })
        mkdirSync(folder)
        try {
          unpack(bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(SourceError)
        }
        for (const name of readdirSync(folder)) expect(name).toMatch(/^[^/]+$/)
      },
    ),
    { numRuns: 500 },
  )
})
