/**
 * Rate of synced records with 256 in flight, compared with synced appends to plain files of the same size, and start-up
 * time with many records. Run `node --conditions=weir-source bench/micro/store.ts`.
 */
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Change } from '#kernel'
import { LevelStore } from '../../plugins/state/storage/level-store.ts'

const { values: flags } = parseArgs({
  options: {
    /** Folder to write into; the disk under it is measured. */
    dir: { type: 'string', default: tmpdir() },
    seconds: { type: 'string', default: '3' },
    records: { type: 'string', default: '1000000' },
  },
})
const SECONDS = Number(flags.seconds)
const IN_FLIGHT = 256
const RECORD = { text: 'x'.repeat(2_000) }

/** Rate of `act` with that many concurrent calls, and CPU microseconds of this process per call. */
async function rate(inFlight: number, act: (index: number) => Promise<unknown>): Promise<[string, string]> {
  let count = 0
  const cpu = process.cpuUsage()
  const from = performance.now()
  const until = from + SECONDS * 1_000
  const run = async () => {
    while (performance.now() < until) await act(count++)
  }
  await Promise.all(Array.from({ length: inFlight }, run))
  const seconds = (performance.now() - from) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return [Math.round(count / seconds).toLocaleString('en'), ((user + system) / count).toFixed(1)]
}

const dir = await mkdtemp(join(flags.dir, 'weir-bench-store-'))
const rows: string[][] = []
try {
  const plain = await open(join(dir, 'plain'), 'a')
  const line = Buffer.from(JSON.stringify(RECORD))
  const group = Buffer.concat(Array.from({ length: IN_FLIGHT }, () => line))
  rows.push(['disk: append 2 kB, fdatasync', ...(await rate(1, () => append(plain, line)))])
  rows.push([`disk: append ${IN_FLIGHT} × 2 kB, fdatasync`, ...(await rate(1, () => append(plain, group)))])
  await plain.close()

  const store = new LevelStore(join(dir, 'data'))
  await store.open()
  const notes = store.collection('notes')
  for (const durability of ['relaxed', 'synced'] as const) {
    for (const inFlight of [1, IN_FLIGHT]) {
      const put = (index: number) =>
        notes.put('a', `${durability}-${inFlight}-${index}`, RECORD, { durability })
      rows.push([`put 2 kB ${durability}, ${inFlight} in flight`, ...(await rate(inFlight, put))])
    }
  }
  const get = (index: number) => notes.get('a', `synced-${IN_FLIGHT}-${index % 1_000}`)
  rows.push([`get 2 kB, ${IN_FLIGHT} in flight`, ...(await rate(IN_FLIGHT, get))])
  await store.close()

  const many = new LevelStore(join(dir, 'many'))
  await many.open()
  for (let from = 0; from < Number(flags.records); from += 1_000) {
    const changes = Array.from(
      { length: 1_000 },
      (_, index): Change => ({
        kind: 'put',
        collection: 'notes',
        tenant: 'a',
        id: String(from + index).padStart(12, '0'),
        value: { index, text: 'x'.repeat(200) },
      }),
    )
    await many.write(changes)
  }
  await many.close()
  const again = new LevelStore(join(dir, 'many'))
  const startedAt = performance.now()
  await again.open()
  await again.collection('notes').get('a', '000000000001')
  const tookMs = performance.now() - startedAt
  await again.close()
  rows.push([
    `start and first read, ${Number(flags.records).toLocaleString('en')} records`,
    `${tookMs.toFixed(0)} ms`,
    '',
  ])
} finally {
  await rm(dir, { recursive: true, force: true })
}
for (const [what, figure, cpu] of [['what', 'a second', 'CPU µs each'], ...rows]) {
  console.log(what.padEnd(44), figure.padStart(10), cpu.padStart(12))
}

async function append(plain: Awaited<ReturnType<typeof open>>, bytes: Buffer): Promise<void> {
  await plain.write(bytes)
  await plain.datasync()
}
