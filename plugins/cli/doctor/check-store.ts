/** Checks the stores that a configuration enables. */
import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import { messageOf } from '../../../kernel/errors/message-of.ts'
import type { PostgresConfig } from '../../state/postgres/config.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

const LOW_SPACE_BYTES = 1024 ** 3

export async function checkStores({ plugins }: LoadedConfig): Promise<Finding[]> {
  const { storage, postgres } = plugins
  const checks: Promise<Finding>[] = []
  if (storage !== undefined) checks.push(checkDirectory(String(storage.dir)))
  if (postgres !== undefined) checks.push(checkDatabase(postgres as unknown as PostgresConfig))
  return Promise.all(checks)
}

/** The database itself is locked by the gateway; what can be checked is its directory, as the user of this command. */
async function checkDirectory(dir: string): Promise<Finding> {
  const path = resolve(dir)
  try {
    const target = await nearestExisting(path)
    await access(target, constants.R_OK | constants.W_OK | constants.X_OK)
    const { bavail, bsize } = await statfs(target)
    const freeBytes = bavail * bsize
    const text = `storage directory ${path} is writable, ${(freeBytes / LOW_SPACE_BYTES).toFixed(1)} GiB free`
    if (freeBytes >= LOW_SPACE_BYTES) return ok('store', text)
    return warn('store', text, 'free space, or prune the history: weir history prune --help')
  } catch (error) {
    const text = `storage directory ${path} is not writable by this user: ${messageOf(error)}`
    return fail(
      'store',
      text,
      'run weir doctor as the user of the gateway; if it fails there too, change the owner of the directory or plugins.storage.dir',
    )
  }
}

/** The gateway creates missing directories. */
async function nearestExisting(path: string): Promise<string> {
  const exists = await access(path).then(
    () => true,
    () => false,
  )
  return exists || dirname(path) === path ? path : nearestExisting(dirname(path))
}

async function checkDatabase(config: PostgresConfig): Promise<Finding> {
  const { Connections } = await import('../../state/postgres/connections.ts')
  const connections = new Connections(config, () => undefined)
  try {
    await connections.open()
    const startedMs = performance.now()
    const { rows } = await connections.withClient((client) =>
      client.query<{ read_only: string }>("SELECT current_setting('transaction_read_only') AS read_only"),
    )
    const ms = Math.round(performance.now() - startedMs)
    if (rows[0].read_only === 'off') return ok('store', `PostgreSQL accepts writes (connected in ${ms} ms)`)
    return fail('store', 'PostgreSQL is read-only', 'plugins.postgres.url must point to the primary server')
  } catch (error) {
    const text = `PostgreSQL is not reachable: ${messageOf(error)}`
    return fail('store', text, 'check plugins.postgres.url, the network and the state of the server')
  } finally {
    await connections.close()
  }
}
