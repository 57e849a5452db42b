/**
 * Cost of fuel metering in a module that scans 1 MB of JSON, compared with the unmodified module, on one thread; the best
 * round counts. Run `node --conditions=weir-source bench/micro/wasm-metering.ts`; `--fresh` also records memory writes.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildModule } from '../../plugins/wasm/project/build.ts'
import { rewriteModule } from '../../plugins/wasm/rewrite/rewrite-module.ts'

const { values: flags } = parseArgs({
  options: { rounds: { type: 'string', default: '400' }, fresh: { type: 'boolean', default: false } },
})
const ROUNDS = Number(flags.rounds)

const SOURCE = `
import { checkValue } from 'weir-gateway/wasm-sdk/assembly/json-scan'
const place = heap.alloc(2000000)
export function at(): i32 { return <i32>place }
export function scan(length: i32): i32 {
  const end = checkValue(place, place + length, 0)
  return end == 0 ? 0 : <i32>(end - place)
}
`

interface Guest {
  readonly name: string
  scan(): number
}

function documentOf(bytes: number): Buffer {
  const parts: unknown[] = []
  for (let size = 0, i = 0; size < bytes; i++) {
    const part = {
      role: i % 2 === 0 ? 'user' : 'assistant',
      content: `Grüße Nr. ${i}: ${'the quick brown fox jumps over the lazy dog. '.repeat((i % 7) + 1)}"\n`,
      n: [i, i / 3, -i, true, null],
    }
    parts.push(part)
    size += JSON.stringify(part).length
  }
  return Buffer.from(JSON.stringify({ messages: parts }))
}

async function open(name: string, bytes: Uint8Array<ArrayBuffer>, isRewritten: boolean): Promise<Guest> {
  const module = await WebAssembly.compile(bytes)
  const imports: Record<string, Record<string, () => void>> = { env: { abort: () => {} } }
  const { exports } = await WebAssembly.instantiate(module, imports)
  const found = (wanted: string) => exports[wanted] as (...numbers: (number | bigint)[]) => number
  const memory = Object.values(exports).find(
    (one, place): one is WebAssembly.Memory =>
      one instanceof WebAssembly.Memory && !Object.keys(exports)[place].endsWith('exchange'),
  )
  const document = documentOf(1_000_000)
  new Uint8Array((memory as WebAssembly.Memory).buffer).set(document, found('at')())
  const begin = Object.keys(exports).find((one) => one.endsWith('begin'))
  return {
    name,
    scan() {
      if (isRewritten && begin !== undefined) found(begin)(0, 2_000_000_000_000)
      return found('scan')(document.length)
    },
  }
}

const folder = await mkdtemp(join(tmpdir(), 'weir-metering-'))
await mkdir(join(folder, 'assembly'))
await writeFile(join(folder, 'assembly', 'index.ts'), SOURCE)
const built = await buildModule({ directory: folder })
if (!built.isOk) throw new Error(`${built.problem}\n${built.output}`)
const original = Uint8Array.from(await readFile(built.file))
await rm(folder, { recursive: true })
const { bytes: rewritten } = rewriteModule(original, {
  maxPages: 1_024,
  maxTablePlaces: 65_536,
  stackBytes: 1_048_576,
  exchangePages: 160,
  startFuel: 500_000_000,
  restores: flags.fresh,
  headroomPages: 32,
})
const guests = [await open('as written', original, false), await open('metered', rewritten, true)]
for (const guest of guests) for (let i = 0; i < 20; i++) if (guest.scan() === 0) throw new Error('no JSON')
const best = new Map<string, number>(guests.map(({ name }) => [name, Number.POSITIVE_INFINITY]))
for (let round = 0; round < ROUNDS; round++) {
  for (const guest of guests) {
    const beforeMs = performance.now()
    guest.scan()
    best.set(guest.name, Math.min(best.get(guest.name) ?? 0, (performance.now() - beforeMs) * 1_000))
  }
}
const [plain, metered] = guests.map(({ name }) => best.get(name) as number)
console.log(
  `as written ${Math.round(plain)} µs, metered ${Math.round(metered)} µs a scan: +${((metered / plain - 1) * 100).toFixed(1)} %`,
)
