/** Checks what a configuration names on this machine: certificate files of the API listener, and stores. */

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { constants, readFileSync } from 'node:fs'
import { access, mkdir, mkdtemp, rmdir, statfs } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import type { TlsConfig } from '../../../kernel/config/tls-config.ts'
import { messageOf } from '../../../kernel/errors/message-of.ts'
import { checkTlsFiles } from '../../../kernel/http/tls-files.ts'
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
    await tryDirectory(path)
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

/** Leaves nothing behind. Permissions alone say nothing about file systems such as /proc. @throws if nothing can be created there */
export async function tryDirectory(path: string): Promise<void> {
  const existing = await nearestExisting(path)
  const created: string[] = []
  try {
    // One by one: Node's recursive mkdir does not end on file systems that create nothing.
    for (const name of relative(existing, path).split(sep).filter(Boolean)) {
      const dir = join(created.at(-1) ?? existing, name)
      await mkdir(dir)
      created.push(dir)
    }
    await rmdir(await mkdtemp(join(path, '.weir-check-')))
  } finally {
    for (const dir of created.toReversed()) await rmdir(dir)
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

const DAY_MS = 86_400_000
/** Certificates that expire within this time are reported. */
const RENEWAL_DAYS = 30

/** @param nowMs time of the check, milliseconds since the epoch */
export function checkCertificates(tls: TlsConfig, nowMs = Date.now()): Finding[] {
  try {
    checkTlsFiles(tls)
    const certificate = new X509Certificate(readFileSync(tls.certFile))
    const key = createPrivateKey({ key: readFileSync(tls.keyFile), passphrase: tls.keyPassphrase })
    if (!certificate.checkPrivateKey(key)) {
      const text = `kernel.tls.keyFile ${tls.keyFile} is not the key of ${tls.certFile}`
      return [fail('certificate', text, 'configure the key that the certificate was issued for')]
    }
    const findings = [checkValidity('kernel.tls.certFile', tls.certFile, certificate, nowMs)]
    if (tls.clientCaFile !== undefined) {
      const authority = new X509Certificate(readFileSync(tls.clientCaFile))
      findings.push(checkValidity('kernel.tls.clientCaFile', tls.clientCaFile, authority, nowMs))
    }
    return findings
  } catch (error) {
    return [fail('certificate', messageOf(error), 'correct the files of kernel.tls, then reload the gateway')]
  }
}

function checkValidity(setting: string, file: string, certificate: X509Certificate, nowMs: number): Finding {
  const { validFromDate, validToDate } = certificate
  const renew = 'renew it, then run: weir config apply (or send SIGHUP)'
  const [from, to] = [validFromDate.toISOString().slice(0, 10), validToDate.toISOString().slice(0, 10)]
  if (validToDate.getTime() <= nowMs) return fail('certificate', `${setting} ${file} expired on ${to}`, renew)
  if (validFromDate.getTime() > nowMs)
    return fail('certificate', `${setting} ${file} is not valid before ${from}`, 'check the clock')
  const days = Math.floor((validToDate.getTime() - nowMs) / DAY_MS)
  const text = `${setting} ${file} expires on ${to}, in ${days} days`
  return days <= RENEWAL_DAYS ? warn('certificate', text, renew) : ok('certificate', text)
}
