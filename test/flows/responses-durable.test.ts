/** Acknowledged turns are durable: after a kill under load, and with a disk that is full or read-only. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { LevelStore } from '../../plugins/state/storage/level-store.ts'
import {
  type BuiltGateway,
  makeFolder,
  runCommand,
  startBuiltGateway,
  startSim,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { startScriptedWorker } from '../support/scripted-worker.ts'
import { TurnLanes } from '../support/turn-lanes.ts'

const MODEL = 'sim-model'
const TURNS = 4_000
const CONNECTIONS = 256

/** Mounts made by the test, the last one first. */
const mounts: string[] = []
afterEach(async () => {
  // Lazy unmount, because gateways may still run; their folders can only be removed afterwards.
  for (const mount of mounts.splice(0)) spawnSync('umount', ['-l', mount])
  await stopCommands()
})

function start(dir: string, workerUrl: string, threads = 2): Promise<BuiltGateway> {
  return startBuiltGateway({
    kernel: { threads },
    plugins: { generations: {}, storage: { dir }, history: {}, responses: {} },
    workers: [{ url: workerUrl, runtime_type: 'sglang', models: [{ id: MODEL }] }],
  })
}

type Json = Record<string, unknown>

/** Records of a history on disk that lack a counterpart, or that no other record refers to. */
async function halves(dir: string): Promise<string[]> {
  const store = new LevelStore(dir)
  await store.open()
  const all = async (name: string) => {
    const records = new Map<string, Json>()
    let after: string | null | undefined
    while (after !== null) {
      const page = await store.collection(name).range('anonymous', { limit: 1_000, after })
      for (const { id, value } of page.records) records.set(id, value as Json)
      after = page.next
    }
    return records
  }
  const [responses, turns, items, ages] = [
    await all('responses'),
    await all('response-turns'),
    await all('items'),
    await all('response-ages'),
  ]
  await store.close()
  expect(responses.size).toBeGreaterThan(0)
  const found: string[] = []
  for (const [id, { place }] of responses) {
    const { chain, turn } = place as { chain: string; turn: number }
    if (turns.get(`${chain}.${String(turn).padStart(12, '0')}`)?.id !== id) found.push(`${id} has no turn`)
  }
  for (const [name, turn] of turns) {
    if (!responses.has(String(turn.id))) found.push(`turn ${name} has no response`)
    for (const { id } of [...(turn.input as { id: string }[]), ...(turn.output as { id: string }[])])
      if (items.get(id)?.turn !== name) found.push(`item ${id} is not known`)
  }
  if (ages.size !== responses.size) found.push(`${ages.size} ages of ${responses.size} responses`)
  if (items.size !== 2 * turns.size) found.push(`${items.size} items of ${turns.size} turns`)
  return found
}

test('after a kill in the middle of 4,000 turns every acknowledged turn is stored, and none partially', async () => {
  const dir = join(makeFolder(), 'data')
  const sim = await startSim('--model', MODEL, '--tokens', '4')
  const first = await start(dir, sim.url)
  const lanes = new TurnLanes(first.url, { model: MODEL, lanes: CONNECTIONS, chainLength: 5, turns: TURNS })
  await until(() => lanes.acknowledged.length >= TURNS / 2)
  first.command.signal('SIGKILL')
  await first.command.ended
  await lanes.done
  const { acknowledged } = lanes
  expect(acknowledged.length).toBeLessThan(TURNS)
  expect([...lanes.refusals]).toEqual([])

  const second = await start(dir, sim.url)
  expect(await TurnLanes.missing(second.url, acknowledged)).toEqual([])
  // The restarted gateway continues.
  const more = new TurnLanes(second.url, { model: MODEL, lanes: 8, chainLength: 5, turns: 50 })
  await more.done
  expect(more.acknowledged).toHaveLength(50)
  await second.command.stop()
  expect(await halves(dir)).toEqual([])
})

/** Null if the machine allows mounts; otherwise the reason. */
function whyNoMount(): string | null {
  const dir = join(makeFolder(), 'probe')
  mkdirSync(dir)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', dir], { encoding: 'utf8' })
  if (mounted.status !== 0) return (mounted.stderr || String(mounted.error)).trim()
  spawnSync('umount', ['-l', dir])
  return null
}

const noMount = process.platform === 'linux' ? whyNoMount() : 'mounts are made on Linux only'
if (noMount !== null) console.log(`a small disk cannot be mounted, so nothing is filled: ${noMount}`)

/** Mounts a small file system. */
function makeDisk(megabytes: number): string {
  const dir = join(makeFolder(), 'disk')
  mkdirSync(dir)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', dir])
  mounts.unshift(dir)
  return dir
}

const refused = (lanes: TurnLanes) => [...lanes.refusals.values()].reduce((sum, count) => sum + count, 0)

/** During the fault turns are rejected and stored ones are readable; afterwards both work again without a restart. */
async function survives(dir: string, begin: () => void, end: () => void): Promise<void> {
  const sim = await startSim('--model', MODEL, '--tokens', '4')
  const gateway = await start(dir, sim.url)
  const lanes = new TurnLanes(gateway.url, { model: MODEL, lanes: 32, chainLength: 5 })
  await until(() => lanes.acknowledged.length >= 300)
  begin()
  await until(
    () => refused(lanes) >= 100,
    () => `${lanes.acknowledged.length} acknowledged`,
  )
  expect((await gateway.get(`/v1/responses/${lanes.acknowledged[0].id}`)).status).toBe(200)
  expect((await gateway.get('/health')).status).toBe(200)
  end()
  const before = lanes.acknowledged.length
  await until(
    () => lanes.acknowledged.length >= before + 300,
    () => [...lanes.refusals].join(),
  )
  await lanes.stop()
  // Those that were being generated when the fault was noticed, and those that came after: all may be retried.
  expect([...lanes.refusals.keys()]).toEqual(['storage_unavailable'])
  expect(lanes.refusals.get('storage_unavailable')).toBeGreaterThan(50)
  expect(await TurnLanes.missing(gateway.url, lanes.acknowledged)).toEqual([])
  await gateway.command.stop()
  expect(await halves(dir)).toEqual([])
}

test.skipIf(noMount !== null)(
  'on a full disk responses are refused as not stored, and taken again when there is room',
  async () => {
    const disk = makeDisk(64)
    const dir = join(disk, 'data')
    const ballast = join(disk, 'ballast')
    const fill = () => {
      try {
        writeFileSync(ballast, Buffer.alloc(80 * 1024 * 1024))
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC')
      }
    }
    await survives(dir, fill, () => rmSync(ballast))
  },
)

test.skipIf(noMount !== null)(
  'a data directory that cannot be written is an error at the start, and loses nothing',
  async () => {
    const disk = makeDisk(64)
    const dir = join(disk, 'data')
    const sim = await startSim('--model', MODEL, '--tokens', '4')
    const first = await start(dir, sim.url)
    const lanes = new TurnLanes(first.url, { model: MODEL, lanes: 8, chainLength: 5, turns: 100 })
    await lanes.done
    await first.command.stop()
    execFileSync('mount', ['-o', 'remount,ro', disk])
    const end = await runCommand(['serve', '--port', '0', '--metrics-port', '0', '--data-dir', dir]).ended
    expect(end.code).toBe(1)
    expect(end.stderr).toContain(`cannot open the data directory ${dir}`)
    expect(end.stderr).not.toMatch(/\n\s+at /)
    execFileSync('mount', ['-o', 'remount,rw', disk])
    const second = await start(dir, sim.url)
    expect(lanes.acknowledged).toHaveLength(100)
    expect(await TurnLanes.missing(second.url, lanes.acknowledged)).toEqual([])
  },
)

test('encrypted reasoning of each thread can be opened by each thread, also after a restart', async () => {
  const worker = await startScriptedWorker({ models: [MODEL] })
  worker.script(CHAT, chatAnswer({ content: 'four', reasoning_content: 'two and two' }))
  const dir = makeFolder()
  const hi = { role: 'user', content: 'hi' }
  const send = (gateway: BuiltGateway, input: unknown[]) =>
    gateway.send('POST', '/v1/responses', { model: MODEL, store: false, input })
  const first = await start(dir, worker.url)
  const sealed = await Promise.all(
    Array.from({ length: 16 }, async () => {
      const reply = (await (await send(first, [hi])).json()) as { output: Json[] }
      return reply.output[0]
    }),
  )
  await first.command.stop()
  const second = await start(dir, worker.url)
  for (const item of sealed) {
    const reply = await send(second, [hi, item, { role: 'user', content: 'so?' }])
    expect([reply.status, reply.headers.get('x-weir-warning')]).toEqual([200, null])
  }
  await second.command.stop()
  await worker.close()
})
