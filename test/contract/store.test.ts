import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Worker } from 'node:worker_threads'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { StoreMetrics } from '#shared'
import type { HistogramFamily, ValueFamily } from '../../kernel/contracts/metric.ts'
import { ThreadMetrics } from '../../kernel/observe/metrics.ts'
import { checkSection } from '../../plugins/cli/configuration/check-section.ts'
import { type PostgresConfig, postgresConfig } from '../../plugins/state/postgres/config.ts'
import { PgStore } from '../../plugins/state/postgres/pg-store.ts'
import { LevelStore, SHARED_BYTES } from '../../plugins/state/storage/level-store.ts'
import { MemoryStore } from '../support/memory-store.ts'
import { type PostgresServer, postgresSkipReason, startPostgres } from '../support/postgres-server.ts'
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

describe.skipIf(postgresSkipReason !== null)('PostgreSQL', () => {
  let server: PostgresServer
  let schemas = 0
  beforeAll(async () => {
    server = await startPostgres()
  }, 180_000)
  afterAll(() => server?.remove())

  const settings = (schema: string, more: object = {}) =>
    checkSection(postgresConfig, { url: server.url, schema, ...more }, []).value as PostgresConfig
  const openStore = async (schema = `test_${++schemas}`, more: object = {}) => {
    const store = new PgStore(settings(schema, more))
    await store.open()
    await store.prepare()
    return store
  }

  storeContract('PostgreSQL', async () => {
    const store = await openStore()
    return { store, sweep: (limit) => store.sweep(limit), close: () => store.close() }
  })

  test('concurrent starts of several gateways share records and conditions', async () => {
    const stores = await Promise.all([openStore('shared'), openStore('shared'), openStore('shared')])
    await stores[0].collection('notes').put('a', 'count', 0)
    const raise = async (store: PgStore) => {
      for (;;) {
        const seen = await store.collection<number>('notes').read('a', 'count')
        const change = { collection: 'notes', tenant: 'a', id: 'count', onlyIf: seen?.version } as const
        if (await store.write([{ ...change, kind: 'put', value: (seen?.value ?? 0) + 1 }])) return
      }
    }
    await Promise.all(Array.from({ length: 30 }, (_, index) => raise(stores[index % 3])))
    expect(await stores[2].collection('notes').get('a', 'count')).toBe(30)
    const firsts = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        stores[index % 3].write([
          { kind: 'put', collection: 'notes', tenant: 'a', id: 'first', value: index, onlyIf: null },
        ]),
      ),
    )
    expect(firsts.filter((version) => version !== null)).toHaveLength(1)
    await Promise.all(stores.map((store) => store.close()))
  })

  test('concurrent changes of the same records in different orders all succeed', async () => {
    const stores = await Promise.all([openStore('crossing'), openStore('crossing')])
    const ids = Array.from({ length: 40 }, (_, index) => `id-${index}`)
    await Promise.all(
      stores.flatMap((store, which) =>
        Array.from({ length: 20 }, (_, round) => {
          const order = round % 2 === which ? ids : ids.toReversed()
          return store.write(
            order.map((id) => ({ kind: 'put', collection: 'notes', tenant: 'a', id, value: round })),
          )
        }),
      ),
    )
    expect(await stores[0].collection('notes').list('a')).toHaveLength(40)
    await Promise.all(stores.map((store) => store.close()))
  })

  test('a lost database is reported at once, and acknowledged records are there when it is back', async () => {
    const store = await openStore('gone', { connectTimeoutMs: 500 })
    const notes = store.collection<number>('notes')
    const acknowledged = new Set<number>()
    const refusals = new Set<string>()
    let isOver = false
    const write = async (lane: number) => {
      for (let index = lane; !isOver; index += 16) {
        try {
          await notes.put('a', String(index).padStart(8, '0'), index, { durability: 'synced' })
          acknowledged.add(index)
        } catch (error) {
          refusals.add(`${(error as { status: number }).status} ${(error as { code: string }).code}`)
          await new Promise((resolve) => setTimeout(resolve, 5))
        }
      }
    }
    const writers = Array.from({ length: 16 }, (_, lane) => write(lane))
    await vi.waitUntil(() => acknowledged.size > 200, { timeout: 30_000 })
    await server.kill()
    await vi.waitUntil(() => refusals.size > 0, { timeout: 30_000 })
    await expect(notes.get('a', '0')).rejects.toMatchObject({ code: 'storage_unavailable', status: 503 })
    await server.start()
    const before = acknowledged.size
    await vi.waitUntil(() => acknowledged.size > before + 200, { timeout: 30_000 })
    isOver = true
    await Promise.all(writers)
    const found = new Set<number>()
    let after: string | null | undefined
    while (after !== null) {
      const page = await notes.range('a', { limit: 1_000, after })
      for (const { value } of page.records) found.add(value)
      after = page.next
    }
    expect([...acknowledged].filter((index) => !found.has(index))).toEqual([])
    expect([...refusals]).toEqual(['503 storage_unavailable'])
    await store.close()
  }, 180_000)

  test('the queue is bounded in number and in bytes', async () => {
    const store = await openStore('bounded', { maxWaiting: 20, maxWaitingBytes: 10_000 })
    const notes = store.collection<string>('notes')
    const codes = async (writes: Promise<unknown>[]) =>
      new Set(
        (await Promise.allSettled(writes)).map((end) => (end as { reason?: { code: string } }).reason?.code),
      )
    const overloaded = new Set([undefined, 'storage_overloaded'])
    expect(await codes(Array.from({ length: 50 }, (_, index) => notes.put('a', `${index}`, '')))).toEqual(
      overloaded,
    )
    expect(await codes(Array.from({ length: 50 }, () => notes.get('a', 'x')))).toEqual(overloaded)
    const large = 'x'.repeat(4_000)
    expect(await codes(Array.from({ length: 5 }, (_, index) => notes.put('b', `${index}`, large)))).toEqual(
      overloaded,
    )
    await notes.put('b', 'later', large)
    await store.close()
  })

  test('a statement that exceeds its timeout is cancelled, and its connection is not reused', async () => {
    const store = await openStore('slow', { statementTimeoutMs: 2_000, maxConnections: 2 })
    const blocker = await openStore('slow')
    const notes = store.collection<number>('notes')
    await notes.put('a', 'x', 1)
    const admin = new Client({ connectionString: server.url })
    await admin.connect()
    await admin.query('BEGIN')
    await admin.query('LOCK TABLE slow.records IN ACCESS EXCLUSIVE MODE')
    await expect(notes.get('a', 'x')).rejects.toMatchObject({ code: 'storage_unavailable' })
    await admin.query('ROLLBACK')
    expect(await notes.get('a', 'x')).toBe(1)
    await admin.end()
    await blocker.close()
    await store.close()
  })

  test('the start reports database problems', async () => {
    const store = new PgStore(settings('x', { url: 'postgres://weir@127.0.0.1:1/x', bootWaitMs: 0 }))
    await store.open()
    await expect(store.prepare()).rejects.toMatchObject({ code: 'database_unreachable' })
    await store.close()
    const other = new PgStore(settings('x', { url: server.url.replace('/postgres', '/nothing') }))
    await other.open()
    await expect(other.prepare()).rejects.toMatchObject({
      code: 'database_unsuitable',
      message: expect.stringContaining('nothing'),
    })
    await other.close()
    const admin = new Client({ connectionString: server.url })
    await admin.connect()
    await (await openStore('newer')).close()
    await admin.query('INSERT INTO newer.migrations (step) VALUES (999)')
    await admin.end()
    const newer = new PgStore(settings('newer'))
    await newer.open()
    await expect(newer.prepare()).rejects.toMatchObject({ message: expect.stringContaining('newer version') })
    await newer.close()
  })

  test('over TLS, only a server with a trusted certificate is accepted', async () => {
    const dir = await makeDir()
    const file = (name: string) => join(dir, name)
    const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: dir, stdio: 'ignore' })
    for (const name of ['ca', 'other']) {
      const subject = ['-subj', `/CN=${name}`, '-days', '2', '-nodes']
      openssl(
        'req',
        '-x509',
        '-newkey',
        'rsa:2048',
        '-keyout',
        `${name}.key`,
        '-out',
        `${name}.crt`,
        ...subject,
      )
    }
    openssl(
      'req',
      '-newkey',
      'rsa:2048',
      '-keyout',
      's.key',
      '-out',
      's.csr',
      '-nodes',
      '-subj',
      '/CN=127.0.0.1',
    )
    await writeFile(file('s.ext'), 'subjectAltName=IP:127.0.0.1')
    openssl(
      ...['x509', '-req', '-in', 's.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial'],
      ...['-out', 's.crt', '-days', '2', '-extfile', 's.ext'],
    )
    const [cert, key] = await Promise.all(['s.crt', 's.key'].map((name) => readFile(file(name), 'utf8')))
    const secured = await startPostgres({ cert, key })
    try {
      const openWith = async (tls: object) => {
        const store = new PgStore(settings('tls', { url: secured.url, tls, bootWaitMs: 0 }))
        await store.open()
        await store.prepare().finally(() => store.close())
      }
      await openWith({ mode: 'verify', caFile: file('ca.crt') })
      await expect(openWith({ mode: 'verify', caFile: file('other.crt') })).rejects.toMatchObject({
        code: 'database_unreachable',
      })
      await expect(openWith({ mode: 'off' })).rejects.toMatchObject({ code: 'database_unsuitable' })
    } finally {
      await secured.remove()
    }
  }, 180_000)

  test('a closed store rejects calls', async () => {
    const store = await openStore()
    await store.close()
    await store.close()
    await expect(store.collection('notes').get('a', 'id')).rejects.toMatchObject({ code: 'storage_not_open' })
    await expect(store.collection('notes').put('a', 'id', 1)).rejects.toMatchObject({
      code: 'storage_not_open',
    })
  })
})

test('records survive a close', async () => {
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

test('a missing directory is created with its parents, accessible to its owner only', async () => {
  const dir = join(await makeDir(), 'a', 'b')
  const store = new LevelStore(dir)
  await store.open()
  expect((await stat(dir)).mode & 0o077).toBe(0)
  await store.close()
})

test('open and close are idempotent', async () => {
  const store = new LevelStore(await makeDir())
  await store.open()
  await store.open()
  await store.close()
  await store.close()
})

test('reads, writes and deletions are counted and timed', async () => {
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

test('a store that is not open rejects calls', async () => {
  const store = new LevelStore(await makeDir())
  const notes = store.collection('notes')
  await expect(notes.get('a', 'id')).rejects.toMatchObject({ code: 'storage_not_open', status: 503 })
  await store.open()
  await store.close()
  await expect(notes.put('a', 'id', 1)).rejects.toMatchObject({ code: 'storage_not_open' })
})

test('a path that cannot be a directory is rejected with a clear error', async () => {
  const file = join(await makeDir(), 'file')
  await writeFile(file, '')
  await expect(new LevelStore(file).open()).rejects.toMatchObject({
    code: 'storage_unreadable',
    message: expect.stringContaining(file),
  })
})

test('a directory locked by another process is rejected with its name', async () => {
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

test("threads of one process see each other's writes", async () => {
  const dir = await makeDir()
  const store = new LevelStore(dir)
  await store.open()
  const notes = store.collection<string>('notes')
  await notes.put('a', 'from-main', 'hello')
  const path = new URL('../../plugins/state/storage/level-store.ts', import.meta.url).href
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
    execArgv: ['--conditions=weir-source', '--disable-warning=ExperimentalWarning'],
  })
  await once(thread, 'message')
  expect(await notes.get('a', 'from-thread')).toBe('hello back')
  await store.close()
})

/** Runs threads that increment one counter concurrently. @returns the final count */
async function countWithThreads(dir: string, threads: number, rounds: number): Promise<number | undefined> {
  const shared = new SharedArrayBuffer(SHARED_BYTES)
  const path = new URL('../../plugins/state/storage/level-store.ts', import.meta.url).href
  const workers = Array.from(
    { length: threads },
    () =>
      new Worker(new URL('../fixtures/counting-thread.mjs', import.meta.url), {
        workerData: { path, dir, shared, rounds },
        execArgv: ['--conditions=weir-source', '--disable-warning=ExperimentalWarning'],
      }),
  )
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const store = new LevelStore(dir)
  await store.open()
  const count = await store.collection<number>('notes').get('a', 'count')
  await store.close()
  return count
}

test('conditions hold between the threads of a process', async () => {
  expect(await countWithThreads(await makeDir(), 3, 150)).toBe(450)
}, 180_000)

interface WritingProcess {
  readonly child: ChildProcess
  /** Acknowledged indexes, in order. */
  readonly acknowledged: number[]
  readonly failures: Set<string>
}

async function startWriting(dir: string): Promise<WritingProcess> {
  const path = new URL('../../plugins/state/storage/level-store.ts', import.meta.url).href
  const fixture = new URL('../fixtures/writing-process.mjs', import.meta.url).pathname
  const child = spawn(
    process.execPath,
    ['--conditions=weir-source', '--disable-warning=ExperimentalWarning', fixture, path, dir],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const acknowledged: number[] = []
  const failures = new Set<string>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('failed ')) failures.add(line.slice('failed '.length))
    else if (line !== 'open') acknowledged.push(Number(line))
  })
  return { child, acknowledged, failures }
}

/** Every record of both halves of the pairs. */
async function readPairs(dir: string): Promise<{ left: Set<number>; right: Set<number> }> {
  const store = new LevelStore(dir)
  await store.open()
  const read = async (name: string) => {
    const found = new Set<number>()
    let after: string | null | undefined
    while (after !== null) {
      const page = await store.collection<{ index: number }>(name).range('a', { limit: 1_000, after })
      for (const { value } of page.records) found.add(value.index)
      after = page.next
    }
    return found
  }
  const pairs = { left: await read('left'), right: await read('right') }
  await store.close()
  return pairs
}

test('kill -9 during writes: acknowledged records are complete, and no pair is half written', async () => {
  const dir = await makeDir()
  for (let round = 1; round <= 3; round++) {
    const { child, acknowledged } = await startWriting(dir)
    await vi.waitUntil(() => acknowledged.length > 1_000 * round, { timeout: 30_000 })
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
    const { left, right } = await readPairs(dir)
    expect(acknowledged.filter((index) => !left.has(index))).toEqual([])
    expect([...left].filter((index) => !right.has(index))).toEqual([])
    expect(right.size).toBe(left.size)
  }
}, 180_000)

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0

test.skipIf(!hasPrlimit)(
  'a full disk: writes are rejected, reads continue, and both work again when there is space',
  async () => {
    const dir = await makeDir()
    const { child, acknowledged, failures } = await startWriting(dir)
    await vi.waitUntil(() => acknowledged.length > 500, { timeout: 30_000 })
    // A file size limit simulates a full disk: a write fails in the middle.
    execFileSync('prlimit', ['--pid', String(child.pid), '--fsize=300000:unlimited'])
    await vi.waitUntil(() => failures.has('storage_unavailable'), { timeout: 30_000 })
    execFileSync('prlimit', ['--pid', String(child.pid), '--fsize=unlimited:unlimited'])
    const before = acknowledged.length
    await vi.waitUntil(() => acknowledged.length > before + 1_000, { timeout: 30_000 })
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
    const { left, right } = await readPairs(dir)
    expect(acknowledged.filter((index) => !left.has(index))).toEqual([])
    expect([...left].filter((index) => !right.has(index))).toEqual([])
    expect([...failures]).toEqual(['storage_unavailable'])
  },
  180_000,
)

test('a data directory that others can read is made private', async () => {
  const dir = await makeDir()
  await chmod(dir, 0o755)
  const store = new LevelStore(dir)
  await store.open()
  expect((await stat(dir)).mode & 0o077).toBe(0)
  await store.close()
  await chmod(dir, 0o750)
  await store.open()
  expect((await stat(dir)).mode & 0o077).toBe(0)
  await store.close()
})

test('a directory with other content keeps its permissions, with a warning', async () => {
  const dir = await makeDir()
  await chmod(dir, 0o755)
  await writeFile(join(dir, 'letter.txt'), '')
  const warnings: string[] = []
  const store = new LevelStore(dir, { warn: (message) => warnings.push(message) })
  await store.open()
  await store.close()
  expect((await stat(dir)).mode & 0o777).toBe(0o755)
  expect(warnings).toEqual([expect.stringContaining(dir)])
})

test.each(['/proc/weir-data', '/proc/weir/deep/data', '/dev/null/data'])(
  'a directory that cannot be made, %s, is an error and not an endless wait',
  async (dir) => {
    await expect(new LevelStore(dir).open()).rejects.toMatchObject({ code: 'storage_unreadable' })
  },
)

test('the queue for the disk is bounded', async () => {
  const store = new LevelStore(await makeDir(), { maxWaitingBytes: 10_000 })
  await store.open()
  const notes = store.collection<string>('notes')
  const writes = Array.from({ length: 20 }, (_, index) => notes.put('a', `${index}`, 'x'.repeat(1_000)))
  const ends = await Promise.allSettled(writes)
  const refused = ends.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
  expect(refused.length).toBeGreaterThan(0)
  for (const { reason } of refused)
    expect(reason).toMatchObject({
      code: 'storage_overloaded',
      status: 503,
      headers: ['retry-after', '1'],
    })
  await notes.put('a', 'later', 'x'.repeat(20_000))
  await store.close()
})

test('a record that is too large is rejected', async () => {
  const store = new LevelStore(await makeDir(), { maxRecordBytes: 1_000 })
  await store.open()
  const put = store.collection<string>('notes').put('a', 'x', 'x'.repeat(1_000))
  await expect(put).rejects.toMatchObject({ code: 'record_too_large', status: 413 })
  await store.close()
})

test('records from before versions were stored are readable and can be changed conditionally', async () => {
  const dir = await makeDir()
  const { Level } = await import('level')
  const db = new Level<string, string>(dir)
  await db.put('notes\u0000a\u0000id', '{"v":1}')
  await db.close()
  const store = new LevelStore(dir)
  await store.open()
  const seen = await store.collection('notes').read('a', 'id')
  expect(seen?.value).toEqual({ v: 1 })
  const change = { kind: 'put', collection: 'notes', tenant: 'a', id: 'id', value: 2 } as const
  expect(await store.write([{ ...change, onlyIf: null }])).toBeNull()
  expect(await store.write([{ ...change, onlyIf: seen?.version }])).not.toBeNull()
  await store.close()
})
