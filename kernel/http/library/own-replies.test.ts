/** Memory is stood in for by a file, except where a process asks itself. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { apiErrorFormat } from '../../errors/error-formats.ts'
import { httpErrors } from '../http-errors.ts'
import { amendLibrary } from './amend-library.ts'

const PAGES = [
  '404 File Not Found',
  '<html><body><h1>File Not Found</h1><hr><i>uWebSockets/20 Server</i></body></html>',
  'HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\n\r\n<h1>HTTP Version Not Supported</h1><p>This server does not support HTTP/1.0.</p><hr><i>uWebSockets/20 Server</i>',
  'HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n<h1>Request Header Fields Too Large</h1><hr><i>uWebSockets/20 Server</i>',
  'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<h1>Bad Request</h1><hr><i>uWebSockets/20 Server</i>',
].join('\0')
const MAPS = `00000000-00001000 r-xp 00000000 fe:00 7 /app/node_modules/@uwsjs/linux-x64-22/uws.node
00001000-00002000 r--p 00001000 fe:00 7 /app/node_modules/@uwsjs/linux-x64-22/uws.node
00002000-00003000 rw-p 00002000 fe:00 7 /app/node_modules/@uwsjs/linux-x64-22/uws.node
00003000-00004000 rw-p 00000000 00:00 0
`
const WAITS = { headMs: 60_000, idleMs: 75_000 }
const replacePages = (self: string) => amendLibrary(WAITS, self).replies

const PAGES_AT = 100
const TABLE_AT = 0x1808
const TABLE_BYTES = 48
const folder = mkdtempSync(join(tmpdir(), 'weir-library-pages-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Rows of length and address, as the library's table has them. */
function libraryMemory(pages = PAGES, rowsAt = TABLE_AT): Buffer {
  const memory = Buffer.alloc(0x4000, 0x5a)
  memory.write(pages, PAGES_AT, 'latin1')
  for (const [row, page] of pages.split('\0').slice(2).entries()) {
    memory.writeBigUInt64LE(BigInt(page.length), rowsAt + 16 * row)
    memory.writeBigUInt64LE(BigInt(PAGES_AT + pages.indexOf(page)), rowsAt + 16 * row + 8)
  }
  return memory
}

function aProcess(memory: Buffer, maps = MAPS): { self: string; after: () => Buffer } {
  const self = mkdtempSync(join(folder, 'process-'))
  writeFileSync(join(self, 'maps'), maps)
  writeFileSync(join(self, 'mem'), memory)
  return { self, after: () => readFileSync(join(self, 'mem')) }
}

/** What the table leads to. */
function repliesIn(memory: Buffer): string[] {
  return [0, 1, 2].map((row) => {
    const [length, address] = [0, 8].map((at) => Number(memory.readBigUInt64LE(TABLE_AT + 16 * row + at)))
    return memory.toString('latin1', address, address + length)
  })
}

test('the table leads to whole replies in the error format of the API, in the room of the pages', () => {
  const { self, after } = aProcess(libraryMemory())
  expect(replacePages(self)).toBe(true)
  const memory = after()
  const replies = repliesIn(memory).map((reply) => reply.split('\r\n\r\n'))
  expect(replies.map(([head]) => head)).toEqual(
    [505, 431, 400].map(
      (status) => `HTTP/1.1 ${status} \r\nConnection: close\r\nContent-Type: application/json`,
    ),
  )
  const { error: tooLarge } = apiErrorFormat.body(httpErrors.headers_too_large(''), {} as never) as {
    error: object
  }
  expect(replies.map(([, body]) => JSON.parse(body))).toEqual([
    {
      error: { message: expect.any(String), type: 'not_implemented', code: 'http_version_not_supported' },
    },
    { error: { ...tooLarge, message: expect.any(String) } },
    apiErrorFormat.body(httpErrors.bad_framing('bad request'), {} as never),
  ])

  const stock = libraryMemory()
  const others = (bytes: Buffer) => [
    bytes.subarray(0, PAGES_AT),
    bytes.subarray(PAGES_AT + PAGES.length, TABLE_AT),
    bytes.subarray(TABLE_AT + TABLE_BYTES),
  ]
  expect(others(memory)).toEqual(others(stock))
})

test('the next thread finds nothing to do', () => {
  const { self, after } = aProcess(libraryMemory())
  replacePages(self)
  const first = after()
  expect(replacePages(self)).toBe(false)
  expect(after()).toEqual(first)
})

test('numbers that look like the first length are passed over', () => {
  const memory = libraryMemory(PAGES, 0x2808)
  for (const at of [0x1000, 0x1ff8, 0x2000]) memory.writeBigUInt64LE(174n, at)
  expect(replacePages(aProcess(memory).self)).toBe(true)
})

describe('memory that is not as expected stays as it is', () => {
  const pointsElsewhere = libraryMemory()
  pointsElsewhere.writeBigUInt64LE(3n, TABLE_AT + 16 + 8)
  const pointsNowhere = libraryMemory()
  for (const row of [0, 1, 2])
    pointsNowhere.writeBigUInt64LE(
      2n ** 52n + pointsNowhere.readBigUInt64LE(TABLE_AT + 16 * row + 8),
      TABLE_AT + 16 * row + 8,
    )
  const noPages = libraryMemory()
  noPages.fill(0, PAGES_AT, PAGES_AT + PAGES.length)
  test.each<[string, Buffer, string?]>([
    ['a page in other words', libraryMemory(PAGES.replace('Bad Request<', 'BAD REQUEST<'))],
    ['a page of another length', libraryMemory(PAGES.replace('Bad Request<', 'Bad<'))],
    ['no pages', noPages],
    ['a row that points elsewhere', pointsElsewhere],
    ['a table that points to no memory', pointsNowhere],
    ['a table in code', libraryMemory(PAGES, 0x808)],
    ['another library', libraryMemory(), MAPS.replaceAll('uws.node', 'other.node')],
    ['less memory than mapped', libraryMemory().subarray(0, 0x1000)],
  ])('%s', (_name, memory, maps) => {
    const { self, after } = aProcess(memory, maps)
    expect(replacePages(self)).toBe(false)
    expect(after()).toEqual(memory)
  })

  test('a system without such files', () => {
    expect(replacePages(join(folder, 'none'))).toBe(false)
  })
})

const run = promisify(execFile)
// Types are taken out by Node alone: what tests preload writes files.
const env = { ...process.env, NODE_OPTIONS: '' }

test.runIf(process.platform === 'linux')('pages are whole where their table cannot be written', async () => {
  const { self, after } = aProcess(libraryMemory())
  const program = `
    process.on('SIGXFSZ', () => {})
    const { amendLibrary } = await import(${JSON.stringify(new URL('./amend-library.ts', import.meta.url))})
    console.log(amendLibrary(${JSON.stringify(WAITS)}, ${JSON.stringify(self)}).replies)`
  const node = [process.execPath, '--input-type=module', '-e', program]
  const { stdout } = await run('prlimit', ['--fsize=4096', ...node], { env })
  expect(stdout).toBe('false\n')
  expect(after()).toEqual(libraryMemory())
})

describe('a process and its second thread', () => {
  const fixture = fileURLToPath(new URL('./fixtures/refused-on-two-threads.ts', import.meta.url))
  const repliesOf = async (flags: readonly string[]) =>
    JSON.parse((await run(process.execPath, [...flags, fixture], { env })).stdout) as [string, string]

  test.runIf(process.platform === 'linux')('answer in JSON', async () => {
    const [first, second] = await repliesOf([])
    expect(first).toMatch(/^HTTP\/1\.1 505 [\s\S]*"code":"http_version_not_supported"}}$/)
    expect(second).toBe(first)
  })

  test('answer with the pages where memory may not be written', async () => {
    const [first, second] = await repliesOf([
      '--permission',
      '--allow-fs-read=*',
      '--allow-addons',
      '--allow-worker',
    ])
    expect(first).toContain('<h1>HTTP Version Not Supported</h1>')
    expect(second).toBe(first)
  })
})
