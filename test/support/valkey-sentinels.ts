/** Real servers that replace each other: a primary and its replica that Sentinel processes watch, and a cluster of one. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { ask, startValkey, type ValkeyServer, valkeyBinary } from './valkey-server.ts'

/** Servers copy all data as soon as a replica asks for it. */
const REPLICATION = ['--masteruser', 'peer', '--masterauth', 'any', '--repl-diskless-sync-delay', '0']
const DOWN_AFTER_MS = 2_000

export class ValkeySentinels {
  readonly servers: readonly ValkeyServer[]
  readonly #ports: readonly number[]
  readonly #processes: readonly ChildProcess[]
  readonly #dir: string

  /** Use `startSentinels`. */
  constructor(
    servers: readonly ValkeyServer[],
    ports: readonly number[],
    processes: readonly ChildProcess[],
    dir: string,
  ) {
    this.servers = servers
    this.#ports = ports
    this.#processes = processes
    this.#dir = dir
  }

  get addresses(): string[] {
    return this.#ports.map((port) => `127.0.0.1:${port}`)
  }

  /** The primary, as the first sentinel names it; null before it does. */
  async primary(): Promise<ValkeyServer | null> {
    const reply = await ask({ port: this.#ports[0] }, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'mymaster')
    return this.servers.find(({ port }) => Array.isArray(reply) && reply[1] === String(port)) ?? null
  }

  /** Whether the primary has a replica that is up, and every sentinel knows it and both others. */
  async isWhole(): Promise<boolean> {
    const primary = await this.primary()
    if (primary === null) return false
    const { port } = primary
    const info = await primary.operate('INFO', 'replication')
    if (!String(info).includes('state=online')) return false
    const views = await Promise.all(this.#ports.map((own) => ask({ port: own }, 'INFO', 'sentinel')))
    return views.every(
      (view) => /status=ok,address=\S+:(\d+),slaves=1,sentinels=3/.exec(String(view))?.[1] === String(port),
    )
  }

  /** Promotes the replica; the primary hands over its clients and follows it. */
  async failOver(): Promise<unknown> {
    return ask({ port: this.#ports[0] }, 'SENTINEL', 'FAILOVER', 'mymaster', 'COORDINATED')
  }

  /** Keeps the sentinels and the replica from the primary, which other clients still reach. @returns ends it */
  async split(primary: ValkeyServer): Promise<() => Promise<unknown>> {
    await primary.operate('ACL', 'SETUSER', 'peer', 'off')
    await primary.operate('CLIENT', 'KILL', 'USER', 'peer')
    return () => primary.operate('ACL', 'SETUSER', 'peer', 'on')
  }

  async remove(): Promise<void> {
    for (const sentinel of this.#processes) {
      const ended = once(sentinel, 'exit')
      if (sentinel.kill('SIGKILL')) await ended
    }
    for (const server of this.servers) await server.remove()
    rmSync(this.#dir, { recursive: true, force: true })
  }
}

/** A primary, a replica and three sentinels, which see each other. */
export async function startSentinels(): Promise<ValkeySentinels> {
  if (valkeyBinary === null) throw new Error('valkey-server is not on PATH')
  const primary = await startValkey(...REPLICATION)
  const replica = await startValkey(...REPLICATION, '--replicaof', `127.0.0.1 ${primary.port}`)
  const dir = mkdtempSync(join(tmpdir(), 'weir-sentinel-'))
  const ports: number[] = []
  const processes: ChildProcess[] = []
  for (let number = 0; number < 3; number += 1) {
    const port = await freePort()
    const file = join(dir, `${port}.conf`)
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${dir}`,
      `sentinel monitor mymaster 127.0.0.1 ${primary.port} 2`,
      'sentinel auth-user mymaster peer',
      'sentinel auth-pass mymaster any',
      `sentinel down-after-milliseconds mymaster ${DOWN_AFTER_MS}`,
      'sentinel failover-timeout mymaster 10000',
    ]
    writeFileSync(file, `${lines.join('\n')}\n`)
    ports.push(port)
    processes.push(spawn(valkeyBinary, [file, '--sentinel'], { stdio: 'ignore' }))
  }
  return new ValkeySentinels([primary, replica], ports, processes, dir)
}

/** A cluster whose only member has all slots. */
export async function startCluster(): Promise<ValkeyServer> {
  // By default 10,000 above the port of the server, where the system also takes the ports of outgoing connections.
  const busPort = String(await freePort())
  const cluster = [
    '--cluster-enabled',
    'yes',
    '--cluster-port',
    busPort,
    '--cluster-announce-ip',
    '127.0.0.1',
  ]
  const server = await startValkey(...cluster)
  await server.operate('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
  while (!String(await server.operate('CLUSTER', 'INFO')).includes('cluster_state:ok'))
    await new Promise((resolve) => setTimeout(resolve, 50))
  return server
}
