/** Keys of the real command: rotation under load, secrets in files, and two gateways on one database. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import {
  type BuiltGateway,
  makeFolder,
  runCommand,
  startBuiltGateway,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { postgresSkipReason, startPostgres } from '../support/postgres-server.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const ADMIN = { authorization: 'Bearer root' }
const workers: ScriptedWorker[] = []

afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
})

async function startWorker() {
  const worker = await startScriptedWorker({ models: ['m'] })
  worker.script('POST /v1/chat/completions', jsonAnswer({ object: 'chat.completion', choices: [] }))
  workers.push(worker)
  return { url: worker.url, models: [{ id: 'm' }], runtime_type: 'sglang' }
}

async function chat(gateway: BuiltGateway, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` }
  const response = await gateway.send('POST', '/v1/chat/completions', { model: 'm', messages: [] }, headers)
  await response.arrayBuffer()
  return response.status
}

/** Each request has its own connection, which any thread may accept. */
async function statuses(gateway: BuiltGateway, key: string): Promise<number[]> {
  const all = await Promise.all(Array.from({ length: 24 }, () => chat(gateway, key)))
  return [...new Set(all)]
}

async function weirKeys(gateway: BuiltGateway, ...args: string[]): Promise<string> {
  const command = runCommand(['keys', ...args, '--gateway', gateway.url], { WEIR_ADMIN_KEY: 'root' })
  const { code, stdout, stderr } = await command.ended
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

async function createKey(gateway: BuiltGateway): Promise<{ id: string; key: string }> {
  return JSON.parse(await weirKeys(gateway, 'create', '--tenant', 'acme', '--expires', '90d', '--json'))
}

test('a key is replaced under load over two threads: no request fails, and the revoked key is refused', async () => {
  const plugins = {
    auth: { apiKey: 'root', keys: [{ id: 'ci', tenant: 'b', key: 'ci-key' }] },
    keys: {},
    storage: { dir: join(makeFolder(), 'data') },
  }
  const gateway = await startBuiltGateway({ plugins, workers: [await startWorker()] })
  const old = await createKey(gateway)
  let current = old.key
  let isOver = false
  const counts = new Map<string, number>()
  const load = Array.from({ length: 16 }, async () => {
    while (!isOver) {
      const used = current === old.key ? 'old' : 'new'
      const status = await chat(gateway, current).catch((error: Error) => String(error.cause))
      counts.set(`${used} ${status}`, (counts.get(`${used} ${status}`) ?? 0) + 1)
    }
  })
  await until(() => (counts.get('old 200') ?? 0) > 200)
  const next = await createKey(gateway)
  // Every client takes the new key with its next request, and those with the old one end.
  current = next.key
  await until(() => (counts.get('new 200') ?? 0) > 100)
  const listed = await weirKeys(gateway, 'list')
  expect(listed).toMatch(new RegExp(`${old.id} .*acme.*store.*\\n${next.id}`))
  expect(listed).toMatch(
    /- +shared \(admin\) .*file: plugins\.auth\.apiKey.*\nci +b .*file: plugins\.auth\.keys\.0/,
  )
  const ofFile = await runCommand(['keys', 'revoke', 'ci', '--gateway', gateway.url, '--api-key', 'root'])
    .ended
  expect([ofFile.code, ofFile.stderr]).toEqual([1, expect.stringContaining('remove plugins.auth.keys.0')])
  await weirKeys(gateway, 'revoke', old.id)
  expect(await statuses(gateway, old.key)).toEqual([401])
  const before = counts.get('new 200') ?? 0
  await until(() => (counts.get('new 200') ?? 0) > before + 200)
  isOver = true
  await Promise.all(load)
  expect([...counts.keys()].sort()).toEqual(['new 200', 'old 200'])
  await gateway.command.stop()
  const again = await startBuiltGateway({ plugins, workers: [await startWorker()] })
  expect(await statuses(again, next.key)).toEqual([200])
  expect(await statuses(again, old.key)).toEqual([401])
  const missing = await runCommand(['keys', 'revoke', old.id, '--gateway', again.url, '--api-key', 'root'])
    .ended
  expect(missing.code).toBe(1)
  expect(missing.stderr).toContain("'weir keys list' shows the ids")
})

test('a key in a file is read again by a reload, and its value is never shown', async () => {
  const folder = makeFolder()
  const secret = join(folder, 'key')
  const file = join(folder, 'weir.json')
  writeFileSync(secret, 'first-key\n')
  const worker = await startWorker()
  const plugins = { auth: { keys: [{ id: 'k', tenant: 'a', key: { $file: secret } }] } }
  const gateway = await startBuiltGateway({ plugins, workers: [worker] })
  expect(await statuses(gateway, 'first-key')).toEqual([200])
  writeFileSync(secret, 'second-key')
  gateway.command.signal('SIGHUP')
  await until(async () => (await chat(gateway, 'second-key')) === 200)
  expect(await statuses(gateway, 'first-key')).toEqual([401])
  expect(await statuses(gateway, 'second-key')).toEqual([200])

  // A file that is gone changes nothing and is reported with setting and path.
  writeFileSync(secret, '')
  gateway.command.signal('SIGHUP')
  await gateway.command.line(
    /plugins\.auth\.keys\.0\.key refers to the file .*key, which cannot be used: it is empty/,
  )
  expect(await statuses(gateway, 'second-key')).toEqual([200])
  writeFileSync(file, JSON.stringify({ kernel: {}, plugins }))
  writeFileSync(secret, 'second-key')
  const shown = await runCommand(['config', 'show', '--config', file]).ended
  expect(shown.stdout).toContain('id: k')
  expect(shown.stdout + gateway.command.lines.join('\n')).not.toMatch(/first-key|second-key/)
})

test.skipIf(postgresSkipReason !== null)(
  'a key is valid at once on the gateway that creates it, and soon on another; the database may fail meanwhile',
  async () => {
    const database = await startPostgres()
    try {
      const worker = await startWorker()
      const plugins = { auth: { apiKey: 'root' }, keys: { refreshMs: 200 }, postgres: { url: database.url } }
      const [one, two] = await Promise.all([
        startBuiltGateway({ plugins, workers: [worker] }),
        startBuiltGateway({ plugins, workers: [worker] }),
      ])
      const made = await createKey(one)
      expect(await statuses(one, made.key)).toEqual([200])
      await until(async () => (await chat(two, made.key)) === 200)
      // Keys that were read stay valid while the database is down; none can be created.
      await database.kill()
      expect(await statuses(two, made.key)).toEqual([200])
      const refused = await one.send('POST', '/keys', { tenant: 'a' }, ADMIN)
      expect(refused.status).toBe(503)
      await database.start()
      await until(async () => (await one.send('DELETE', `/keys/${made.id}`, undefined, ADMIN)).status === 200)
      expect(await statuses(one, made.key)).toEqual([401])
      await until(async () => (await chat(two, made.key)) === 401)
      expect(await statuses(two, made.key)).toEqual([401])
    } finally {
      await stopCommands()
      await database.remove()
    }
  },
)
