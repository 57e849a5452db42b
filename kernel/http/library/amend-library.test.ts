/** Memory is stood in for by a file: the library's own, or one that differs. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { amendLibrary } from './amend-library.ts'
import { serverLibrary } from './server-library.ts'

const isKnown = process.platform === 'linux' && process.arch === 'x64'
const folder = mkdtempSync(join(tmpdir(), 'weir-library-code-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Where the code of all places begins and ends. */
const [CODE_AT, CODE_END] = [0xe0000, 0x120000]

describe.runIf(isKnown)('the code of the library', () => {
  const stock = isKnown ? libraryFile() : Buffer.alloc(0)
  const mem = join(folder, 'mem')
  beforeEach(() => {
    writeFileSync(
      join(folder, 'maps'),
      '00000000-00800000 r-xp 00000000 fe:00 7 /app/linux-x64-22/uws.node\n',
    )
    writeFileSync(mem, stock)
  })

  /** In the code; replies lie elsewhere. */
  const changes = (before = stock) => {
    const after = readFileSync(mem)
    const found: [at: number, from: number, to: number][] = []
    for (let at = CODE_AT; at < CODE_END; at += 1)
      if (after[at] !== before[at]) found.push([at, before[at], after[at]])
    return found
  }

  test('ticks of all clocks and two jumps are changed, and nothing else', () => {
    expect(amendLibrary({ headMs: 60_000, idleMs: 75_000 }, folder)).toMatchObject({
      waits: true,
      headerEnds: true,
    })
    const found = changes().map(([, from, to]) => `${from} ${to}`)
    const times = (text: string) => found.filter((change) => change === text).length
    // The first look may come at once, so a wait of 60 s is 16 ticks of 4 s, one of 75 s 20.
    expect([times('3 16'), times('3 20')]).toEqual([4, 36])
    // Jumps for signed numbers, and those for unsigned ones.
    expect([times(`${0x7d} ${0x73}`), times(`${0x7f} ${0x77}`)]).toEqual([1, 1])
    expect(found).toHaveLength(42)
  })

  test.each([
    [8_000, 3],
    [8_001, 4],
    [500_000, 126],
    [10 ** 9, 127],
  ])('%i ms are %i ticks', (idleMs, ticks) => {
    amendLibrary({ headMs: 60_000, idleMs }, folder)
    const after = readFileSync(mem)
    expect(after[0x104681 + 2]).toBe(ticks)
    expect(after[0x104681 + 24]).toBe(ticks)
  })

  test('what was amended once takes other waits', () => {
    amendLibrary({ headMs: 500_000, idleMs: 500_000 }, folder)
    expect(amendLibrary({ headMs: 16_000, idleMs: 8_000 }, folder)).toMatchObject({
      waits: true,
      headerEnds: true,
    })
    // The two jumps and the head.
    expect(changes()).toHaveLength(6)
  })

  test('one other byte at any place, and nothing of its kind is written', () => {
    amendLibrary({ headMs: 60_000, idleMs: 75_000 }, folder)
    const places = changes().map(([at]) => at)
    // Beside each byte that is changed, none of which is another such byte.
    for (const at of places) {
      const other = Buffer.from(stock)
      other[at - 1] ^= 1
      writeFileSync(mem, other)
      const { waits, headerEnds } = amendLibrary({ headMs: 60_000, idleMs: 75_000 }, folder)
      expect([waits, headerEnds].filter(Boolean)).toHaveLength(1)
      const isClock = stock[at] === 3
      expect(isClock).toBe(!waits)
      expect(changes(other)).toHaveLength(isClock ? 2 : 40)
    }
  })

  test('a library that ends before the code', () => {
    writeFileSync(mem, stock.subarray(0, 0x1000))
    const nothing = { replies: false, waits: false, headerEnds: false }
    expect(amendLibrary({ headMs: 60_000, idleMs: 75_000 }, folder)).toEqual(nothing)
  })

  test('what cannot be written whole is put back', async () => {
    // The head's clock without TLS lies behind the limit, that with TLS in front of it.
    const program = `
      process.on('SIGXFSZ', () => {})
      const { amendLibrary } = await import(${JSON.stringify(new URL('./amend-library.ts', import.meta.url))})
      console.log(JSON.stringify(amendLibrary({ headMs: 60000, idleMs: 75000 }, ${JSON.stringify(folder)})))`
    const node = [process.execPath, '--input-type=module', '-e', program]
    const limit = `--fsize=${0x100000}`
    const { stdout } = await promisify(execFile)('prlimit', [limit, ...node], {
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    expect(JSON.parse(stdout)).toMatchObject({ waits: false, headerEnds: true })
    expect(changes()).toHaveLength(2)
  })
})

/** Of the library that this process has loaded. */
function libraryFile(): Buffer {
  expect(serverLibrary.App).toBeDefined()
  const path = /\S+\/uws\.node$/m.exec(readFileSync('/proc/self/maps', 'latin1'))?.[0]
  return readFileSync(path as string)
}
