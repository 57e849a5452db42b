import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, test } from 'vitest'
import { ThreadMetrics } from '../../kernel/observe/metrics.ts'
import type { HistogramFamily, ValueFamily } from '../../kernel/observe/metrics-snapshot.ts'
import { StoreMetrics } from '../../kernel/store/store-metrics.ts'
import { LevelStore } from '../../plugins/storage/level-store.ts'
import { MemoryStore } from '../support/memory-store.ts'
import { storeContract } from './store-contract.ts'

const dirs: string[] = []
afterEach(async () => {
  for (const dir of dirs.splice(0)) await rm(dir, { recursive: true, force: true })
})

async function makeDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'weir-store-'))
  dirs.push(dir)
  return dir
}

storeContract('LevelDB', async () => {
  const store = new LevelStore(join(await makeDir(), 'data'))
  await store.open()
  return { store, sweep: (limit) => store.sweep(limit), close: () => store.close() }
})

storeContract('memory', async () => {
  const store = new MemoryStore()
  return { store, sweep: (limit) => store.sweep(limit), close: async () => undefined }
})

test('records outlive a close', async () => {
  const dir = await makeDir()
  const first = new LevelStore(dir)
  await first.open()
  await first.collection<number>('notes').put('a', 'id', 1)
  await first.close()
  const second = new LevelStore(dir)
  await second.open()
  expect(await second.collection<number>('notes').get('a', 'id')).toBe(1)
  await second.close()
})

test('a missing directory is made, with its parents, for its owner only', async () => {
  const dir = join(await makeDir(), 'a', 'b')
  const store = new LevelStore(dir)
  await store.open()
  expect((await stat(dir)).mode & 0o077).toBe(0)
  await store.close()
})

test('open and close may be called twice', async () => {
  const store = new LevelStore(await makeDir())
  await store.open()
  await store.open()
  await store.close()
  await store.close()
})

test('reads, writes and deletions are counted and timed (routing facts 6.2)', async () => {
  const metrics = new ThreadMetrics()
  const store = new LevelStore(await makeDir(), { metrics: new StoreMetrics(metrics, 'leveldb') })
  await store.open()
  const notes = store.collection<number>('notes')
  await notes.put('a', 'id', 1)
  await notes.get('a', 'id')
  await notes.list('a')
  await notes.delete('a', 'id')
  await store.close()
  const [operations, durations] = metrics.snapshot() as [ValueFamily, HistogramFamily]
  expect(operations.name).toBe('weir_db_operations_total')
  expect(operations.series).toEqual([
    { labels: ['leveldb', 'write', 'success'], value: 1 },
    { labels: ['leveldb', 'read', 'success'], value: 2 },
    { labels: ['leveldb', 'delete', 'success'], value: 1 },
  ])
  expect(durations.series.map(({ labels, count }) => [...labels, count])).toEqual([
    ['leveldb', 'write', 1],
    ['leveldb', 'read', 2],
    ['leveldb', 'delete', 1],
  ])
})

test('an unopened and a closed store say so', async () => {
  const store = new LevelStore(await makeDir())
  const notes = store.collection('notes')
  await expect(notes.get('a', 'id')).rejects.toMatchObject({ code: 'storage_not_open', status: 503 })
  await store.open()
  await store.close()
  await expect(notes.put('a', 'id', 1)).rejects.toMatchObject({ code: 'storage_not_open' })
})

test('a path that cannot be a directory is a clear error', async () => {
  const file = join(await makeDir(), 'file')
  await writeFile(file, '')
  await expect(new LevelStore(file).open()).rejects.toMatchObject({
    code: 'storage_unreadable',
    message: expect.stringContaining(file),
  })
})

test('a directory that another process holds is refused by name', async () => {
  const dir = await makeDir()
  const script = `
    const { Level } = await import('level')
    const db = new Level(process.argv[1])
    await db.open()
    console.log('open')
    process.stdin.resume()
    process.stdin.on('end', () => process.exit(0))`
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', script, dir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(holder.stdout, 'data')
  await expect(new LevelStore(dir).open()).rejects.toMatchObject({
    code: 'storage_locked',
    message: expect.stringContaining(dir),
  })
  holder.stdin.end()
  await once(holder, 'exit')
  const store = new LevelStore(dir)
  await store.open()
  await store.close()
})

test('a thread of the same process sees what another has written, and the other way', async () => {
  const dir = await makeDir()
  const store = new LevelStore(dir)
  await store.open()
  const notes = store.collection<string>('notes')
  await notes.put('a', 'from-main', 'hello')
  const path = new URL('../../plugins/storage/level-store.ts', import.meta.url).href
  const code = `
    const { parentPort, workerData } = await import('node:worker_threads')
    const { LevelStore } = await import(workerData.path)
    const store = new LevelStore(workerData.dir)
    await store.open()
    const notes = store.collection('notes')
    const seen = await notes.get('a', 'from-main')
    await notes.put('a', 'from-thread', seen + ' back')
    await store.close()
    parentPort.postMessage('done')`
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), {
    workerData: { dir, path },
    execArgv: ['--conditions=source', '--disable-warning=ExperimentalWarning'],
  })
  await once(thread, 'message')
  expect(await notes.get('a', 'from-thread')).toBe('hello back')
  await store.close()
})
