/** A real PostgreSQL server for tests in its own folder, on a free loopback port, run by an unprivileged user. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { freePort } from './free-port.ts'

export interface PostgresServer {
  readonly url: string
  /** Stops it gracefully. */
  stop(): Promise<void>
  /** Kills it. */
  kill(): Promise<void>
  /** Starts it again on the same port, with the same data. */
  start(): Promise<void>
  /** Stops it and removes its data. */
  remove(): Promise<void>
}

/** Folder of `initdb` and `postgres`; null if they are not installed. */
function findBinaries(): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const packaged = '/usr/lib/postgresql'
  if (existsSync(packaged)) {
    for (const version of readdirSync(packaged)) folders.push(join(packaged, version, 'bin'))
  }
  return (
    folders.find((folder) => ['initdb', 'postgres'].every((name) => existsSync(join(folder, name)))) ?? null
  )
}

const binaries = findBinaries()

/** Reason why tests with a server are skipped; null if they run. */
export const postgresSkipReason: string | null =
  binaries === null && process.env.WEIR_TEST_REQUIRE_SERVICES !== '1'
    ? 'PostgreSQL is not installed (no initdb on PATH or under /usr/lib/postgresql)'
    : null

if (postgresSkipReason !== null) console.warn(`skipped: ${postgresSkipReason}`)

/** @param tls PEM files of the server's certificate; the server then rejects plain connections */
export async function startPostgres(tls?: { cert: string; key: string }): Promise<PostgresServer> {
  if (binaries === null) throw new Error('PostgreSQL is not installed')
  const dir = mkdtempSync(join(tmpdir(), 'weir-postgres-'))
  const user = serverUser()
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid ?? user.uid)
  const data = join(dir, 'data')
  const setup = ['-D', data, '-U', 'weir', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  execFileSync(join(binaries, 'initdb'), setup, { ...user, cwd: dir, stdio: ['ignore', 'ignore', 'inherit'] })
  const secured = tls === undefined ? [] : secure(data, tls, user)
  const port = await freePort()
  const url = `postgres://weir@127.0.0.1:${port}/postgres`
  let running: ChildProcess | null = null
  const start = async () => {
    const settings = ['-c', 'fsync=off', '-c', 'unix_socket_directories=', '-c', 'max_connections=120']
    const options = ['-D', data, '-h', '127.0.0.1', '-p', String(port), ...settings, ...secured]
    running = spawn(join(binaries, 'postgres'), options, {
      ...user,
      cwd: dir,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    await isReady(running)
  }
  const end = async (signal: NodeJS.Signals) => {
    if (running === null) return
    const ended = once(running, 'exit')
    running.kill(signal)
    running = null
    await ended
  }
  await start()
  return {
    url,
    start,
    stop: () => end('SIGINT'),
    kill: () => end('SIGQUIT'),
    remove: async () => {
      await end('SIGINT')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Settings of a server that accepts TLS only. */
function secure(
  data: string,
  tls: { cert: string; key: string },
  user: { uid?: number; gid?: number },
): string[] {
  for (const [name, text] of [
    ['server.crt', tls.cert],
    ['server.key', tls.key],
    ['pg_hba.conf', 'hostssl all all 127.0.0.1/32 trust\n'],
  ]) {
    const file = join(data, name)
    writeFileSync(file, text, { mode: 0o600 })
    if (user.uid !== undefined) chownSync(file, user.uid, user.gid ?? user.uid)
  }
  return ['-c', 'ssl=on']
}

/** The server does not run as root. */
function serverUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const idOf = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}

async function isReady(server: ChildProcess): Promise<void> {
  let log = ''
  await new Promise<void>((resolve, reject) => {
    server.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-4_000)
      if (text.includes('ready to accept connections')) resolve()
    })
    server.once('exit', () => reject(new Error(`PostgreSQL ended before it was ready:\n${log}`)))
  })
}
