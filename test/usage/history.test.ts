import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LevelStore } from '../../plugins/state/storage/level-store.ts'
import { makeRecord, message, newId, openHistory } from '../contract/history-contract.ts'
import { type PostgresServer, postgresSkipReason, startPostgres } from '../support/postgres-server.ts'
import { weir as run } from '../support/short-command.ts'

const dir = mkdtempSync(join(tmpdir(), 'weir-history-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const weir = (...args: readonly string[]) => run(['history', ...args], { cwd: dir })

function writeConfig(name: string, plugins: object): string {
  writeFileSync(join(dir, name), JSON.stringify({ plugins: { history: {}, ...plugins } }))
  return name
}

const linesOf = (file: string) => readFileSync(join(dir, file), 'utf8').trimEnd().split('\n')

/** A chain with a branch, a conversation with a turn, a queued response; two tenants. */
async function fill(folder: string): Promise<{ last: string }> {
  const store = new LevelStore(join(dir, folder))
  await store.open()
  const { responses, conversations } = openHistory(store)
  let previousResponseId: string | null = null
  for (let index = 0; index < 5; index++) {
    const record = makeRecord({ in: `q${index} \u0000 🌍`, out: `a${index}` }, { previousResponseId })
    await responses.finish('auth:a', record)
    previousResponseId = record.id
  }
  const branch = makeRecord({ in: 'branch' }, { previousResponseId })
  await Promise.all([responses.finish('auth:a', branch), responses.finish('auth:b', makeRecord({ in: 'b' }))])
  const conversation = { id: newId('conv'), createdAtSec: 1, metadata: { k: 'v' } }
  await conversations.create('auth:b', conversation, [{ item: message('hi') }])
  await responses.create('auth:b', makeRecord({ in: 'later' }, { status: 'queued' }), true)
  await store.close()
  return { last: branch.id }
}

describe('weir history', () => {
  test('stats counts each tenant, as a table and as JSON', async () => {
    await fill('stats')
    const config = writeConfig('stats.json', { storage: { dir: 'stats' } })
    const table = await weir('stats', '--config', config)
    expect(table).toMatchObject({ code: 0, err: '' })
    expect(table.out).toMatch(/auth:a +6 +0 +11 +0\nauth:b +2 +1 +2 +1\n/)
    const { out } = await weir('stats', '--config', config, '--json')
    expect(JSON.parse(out)[1]).toEqual({
      tenant: 'auth:b',
      responses: 2,
      conversations: 1,
      items: 2,
      waitingJobs: 1,
    })
  }, 180_000)

  test('prune removes responses beyond the number, and prints the count', async () => {
    await fill('prune')
    const config = writeConfig('prune.json', { storage: { dir: 'prune' } })
    const end = await weir('prune', '--config', config, '--max-responses', '2', '--tenant', 'auth:a')
    expect(end).toMatchObject({ code: 0, err: 'removed 4 records\n' })
    const wrong = await weir('prune', '--config', config, '--max-responses', 'x')
    expect(wrong.code).toBe(2)
  }, 180_000)

  test('an import restores an export, which only the owner can read; a broken file is rejected', async () => {
    await fill('from')
    const from = writeConfig('from.json', { storage: { dir: 'from' } })
    const to = writeConfig('to.json', { storage: { dir: 'to' } })
    writeFileSync(join(dir, 'history.jsonl'), 'of another time', { mode: 0o644 })
    const end = await weir('export', '--config', from, '--output', 'history.jsonl')
    expect(end).toMatchObject({ code: 0, out: '', err: expect.stringMatching(/^exported \d+ records\n$/) })
    expect(statSync(join(dir, 'history.jsonl')).mode & 0o077).toBe(0)
    expect((await weir('import', 'history.jsonl', '--config', to)).code).toBe(0)
    const again = await weir('export', '--config', to)
    expect(again.out.trimEnd().split('\n')).toEqual(linesOf('history.jsonl'))
    writeFileSync(join(dir, 'cut.jsonl'), linesOf('history.jsonl').slice(0, -1).join('\n'))
    for (const [file, problem] of [
      ['cut.jsonl', 'the trailer is missing'],
      ['missing.jsonl', 'missing.jsonl'],
    ]) {
      const refused = await weir('import', file, '--config', to)
      expect(refused.code).toBe(1)
      expect(refused.err).toContain(problem)
    }
  })

  test('a disabled store is reported', async () => {
    const config = writeConfig('none.json', { storage: { dir: 'none' } })
    const end = await weir('stats', '--config', config, '--store', 'postgres')
    expect(end.code).toBe(1)
    expect(end.err).toContain('does not enable the plugin postgres')
  }, 180_000)
})

describe.skipIf(postgresSkipReason !== null)('weir history with PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  }, 180_000)
  afterAll(() => server?.remove())

  test('from a data directory to PostgreSQL and back, nothing is lost', async () => {
    const { last } = await fill('source')
    const both = writeConfig('both.json', { storage: { dir: 'source' }, postgres: { url: server.url } })
    const back = writeConfig('back.json', { storage: { dir: 'back' } })
    await weir('export', '--config', both, '--store', 'storage', '--output', 'one.jsonl')
    expect((await weir('import', 'one.jsonl', '--config', both)).code).toBe(0)
    await weir('export', '--config', both, '--store', 'postgres', '--output', 'two.jsonl')
    expect(linesOf('two.jsonl')).toEqual(linesOf('one.jsonl'))
    expect((await weir('import', 'two.jsonl', '--config', back)).code).toBe(0)
    const store = new LevelStore(join(dir, 'back'))
    await store.open()
    const loaded = await openHistory(store).responses.loadChain('auth:a', last)
    expect(loaded.problem === undefined && loaded.items).toHaveLength(11)
    await store.close()
  })
})
