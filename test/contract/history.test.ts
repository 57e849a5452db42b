import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { checkSection } from '../../plugins/cli/configuration/check-section.ts'
import { type PostgresConfig, postgresConfig } from '../../plugins/state/postgres/config.ts'
import { PgStore } from '../../plugins/state/postgres/pg-store.ts'
import { LevelStore } from '../../plugins/state/storage/level-store.ts'
import { MemoryStore } from '../support/memory-store.ts'
import { type PostgresServer, postgresSkipReason, startPostgres } from '../support/postgres-server.ts'
import { historyContract } from './history-contract.ts'

historyContract('memory', async () => ({ store: new MemoryStore(), close: async () => undefined }))

historyContract('LevelDB', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'weir-history-'))
  const store = new LevelStore(dir)
  await store.open()
  return {
    store,
    close: async () => {
      await store.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
})

describe.skipIf(postgresSkipReason !== null)('with a server', () => {
  let server: PostgresServer
  let schemas = 0
  beforeAll(async () => {
    server = await startPostgres()
  }, 180_000)
  afterAll(() => server?.remove())

  historyContract('PostgreSQL', async () => {
    const settings = { url: server.url, schema: `history_${++schemas}` }
    const store = new PgStore(checkSection(postgresConfig, settings, []).value as PostgresConfig)
    await store.open()
    await store.prepare()
    return { store, close: () => store.close() }
  })
})
