/** Records that were altered in the store itself: a read reports the record, and nothing else is affected. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Level } from 'level'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { GATEWAY_TENANT, type StoreService } from '#kernel'
import { checkSection } from '../../plugins/cli/configuration/check-section.ts'
import { LocalEngine } from '../../plugins/mesh/mesh/local-engine.ts'
import { type PostgresConfig, postgresConfig } from '../../plugins/state/postgres/config.ts'
import { PgStore } from '../../plugins/state/postgres/pg-store.ts'
import { LevelStore } from '../../plugins/state/storage/level-store.ts'
import { SavedModules } from '../../plugins/wasm/registry/saved-modules.ts'
import { SavedWorkers } from '../../plugins/workers/registry/saved-workers.ts'
import { type PostgresServer, postgresSkipReason, startPostgres } from '../support/postgres-server.ts'
import { makeRecord, message, newId, openHistory } from './history-contract.ts'

interface AlterableStore {
  open(): Promise<StoreService>
  close(): Promise<void>
  /** Replaces the JSON of every record of a collection, while the store is closed. */
  alter(collection: string, json: string): Promise<void>
}

function alteredRecords(name: string, make: () => Promise<AlterableStore>): void {
  describe(`altered records in ${name}`, () => {
    const shapes = [
      '',
      '{"status":"comp',
      'no JSON',
      'null',
      '5',
      '"text"',
      '[]',
      '{}',
      '{"status":1}',
      '[null]',
    ]

    test.each(shapes)('a value of %j is reported for its record; other records are read', async (json) => {
      const altered = await make()
      let history = openHistory(await altered.open())
      const response = makeRecord({ in: 'q', out: 'a' })
      const queued = makeRecord({ in: 'q' }, { status: 'queued' })
      const conversation = { id: newId('conv'), createdAtSec: 1, metadata: {} }
      await history.responses.finish('a', response)
      await history.responses.create('a', queued, true)
      await history.conversations.create('a', conversation, [{ item: message('x') }])
      await history.usage.flush()
      await altered.close()
      for (const collection of [
        'responses',
        'response-turns',
        'conversations',
        'conversation-items',
        'conversation-positions',
        'items',
        'jobs-waiting',
        'response-ages',
        'history-usage',
      ])
        await altered.alter(collection, json)

      history = openHistory(await altered.open())
      const damaged = { code: 'record_unreadable', status: 500 }
      const rejects = async (read: Promise<unknown> | undefined) =>
        expect(read).rejects.toMatchObject(damaged)
      await rejects(history.responses.get('a', response.id))
      await rejects(history.responses.loadChain('a', response.id))
      await rejects(history.responses.delete('a', response.id))
      await rejects(history.conversations.get('a', conversation.id))
      await rejects(history.conversations.load('a', conversation.id))
      await rejects(history.conversations.page('a', conversation.id, { order: 'asc', limit: 10 }))
      // Damaged totals are counted again, which fails if the index is damaged too; 5 is a valid entry of it.
      if (json !== '5') await rejects(history.checkQuota('a', 1) as Promise<void>)
      if (json !== '{}' && json !== '{"status":1}')
        await rejects(history.resolveItems('a', [response.output[0].id]))
      // Another tenant is served, its jobs are claimed, and its history is pruned.
      const other = makeRecord({ in: 'q', out: 'a' }, { createdAtSec: 1 })
      const work = makeRecord({ in: 'q' }, { status: 'queued' })
      await history.responses.finish('b', other)
      await history.responses.create('b', work, true)
      expect(await history.queue.claim(10, () => 10)).toMatchObject([{ tenant: 'b', responseId: work.id }])
      await history.retention.slice(100).catch(() => undefined)
      await history.retention.slice(100)
      expect(await history.responses.get('b', other.id)).toBeUndefined()
      await history.queue.stop()
      await altered.close()
    })

    test.each(shapes)(
      'a worker, a module or a record of the mesh of %j is reported at the start',
      async (json) => {
        const altered = await make()
        let store = await altered.open()
        for (const collection of ['workers', 'wasm-modules', 'mesh-records'])
          await store.collection(collection).put(GATEWAY_TENANT, 'x', {})
        await altered.close()
        for (const collection of ['workers', 'wasm-modules', 'mesh-records'])
          await altered.alter(collection, json)
        store = await altered.open()
        const damaged = { code: 'record_unreadable' }
        await expect(new SavedWorkers(store).load()).rejects.toMatchObject(damaged)
        await expect(new SavedModules(store).open()).rejects.toMatchObject(damaged)
        await expect(new LocalEngine(store).connect()).rejects.toMatchObject(damaged)
        await altered.close()
      },
    )

    test('damaged totals of a tenant are counted again', async () => {
      const altered = await make()
      let history = openHistory(await altered.open())
      await history.responses.finish('a', makeRecord({ in: 'q', out: 'a' }))
      await history.usage.flush()
      const totals = await history.usage.totals('a')
      await altered.close()
      await altered.alter('history-usage', '{"bytes":')
      history = openHistory(await altered.open())
      await history.checkQuota('a', 1)
      expect(await history.usage.totals('a')).toEqual(totals)
      await altered.close()
    })
  })
}

alteredRecords('LevelDB', async () => {
  const dir = join(await mkdtemp(join(tmpdir(), 'weir-altered-')), 'data')
  let store: LevelStore | null = null
  return {
    open: async () => {
      store = new LevelStore(dir)
      await store.open()
      return store
    },
    close: async () => {
      await store?.close()
    },
    alter: async (collection, json) => {
      const db = new Level<string, string>(dir)
      for await (const [key, text] of db.iterator({ gte: `${collection}\u0000`, lt: `${collection}\u0001` }))
        await db.put(key, `${text.slice(0, text.indexOf(' '))} ${json}`)
      await db.close()
    },
  }
})

test('a LevelDB value without a valid head is reported', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'weir-altered-'))
  const path = join(dir, 'data')
  const values = ['@', '@version', '@v,notatime', '\u0000\u0001', '@v,']
  const db = new Level<string, string>(path)
  for (const [index, value] of values.entries()) await db.put(`things\u0000a\u0000${index}`, value)
  await db.close()
  const store = new LevelStore(path)
  await store.open()
  const things = store.collection('things')
  for (const index of values.keys())
    await expect(things.get('a', String(index))).rejects.toMatchObject({ code: 'record_unreadable' })
  await expect(things.list('a')).rejects.toMatchObject({ code: 'record_unreadable' })
  await things.put('a', '0', { fine: true })
  expect(await things.get('a', '0')).toEqual({ fine: true })
  await store.close()
  await rm(dir, { recursive: true, force: true })
})

describe.skipIf(postgresSkipReason !== null)('with a server', () => {
  let server: PostgresServer
  let schemas = 0
  beforeAll(async () => {
    server = await startPostgres()
  }, 180_000)
  afterAll(() => server?.remove())

  alteredRecords('PostgreSQL', async () => {
    const schema = `altered_${++schemas}`
    let store: PgStore | null = null
    return {
      open: async () => {
        store = new PgStore(
          checkSection(postgresConfig, { url: server.url, schema }, []).value as PostgresConfig,
        )
        await store.open()
        await store.prepare()
        return store
      },
      close: async () => {
        await store?.close()
      },
      alter: async (collection, json) => {
        const client = new Client({ connectionString: server.url })
        await client.connect()
        await client.query(`UPDATE ${schema}.records SET value = $1 WHERE collection = $2`, [
          json,
          collection,
        ])
        await client.end()
      },
    }
  })
})
