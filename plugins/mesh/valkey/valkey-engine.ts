/** The mesh engine on Valkey or Redis. */
import { randomUUID } from 'node:crypto'
import {
  type CounterChange,
  type EngineNode,
  type EngineRecord,
  type EngineState,
  type Followed,
  type Grant,
  type GrantRequest,
  MESH_INTAKE,
  type MeshEngine,
  messageOf,
  type Positions,
  type Renewal,
} from '#kernel'
import type { ValkeyConfig } from './config.ts'
import { Connections } from './connections.ts'
import * as scripts from './scripts.ts'

/** Entries that the streams keep, about. Messages have up to 64 KiB, and are of use for a few seconds. */
const LOG_ENTRIES = 20_000
const CHANNEL_ENTRIES = 2_000
/** Entries of each stream that one read returns at most: with full messages, 16 MiB of each channel. */
const READ_ENTRIES = 250
/** How long the last sequence number of a writer is kept. */
const WRITER_MS = 86_400_000
/** Longest wait of a read, milliseconds. */
export const MAX_WAIT_MS = 5_000

export class ValkeyEngine implements MeshEngine {
  readonly kind = 'valkey'
  readonly commands = { count: 0, errors: 0, seconds: 0 }
  readonly #connections: Connections
  readonly #config: ValkeyConfig
  readonly #prefix: string

  /** @param prefix of all keys of the mesh, with a hash tag */
  constructor(config: ValkeyConfig, prefix: string, onError: (error: Error) => void) {
    this.#config = config
    this.#prefix = prefix
    this.#connections = new Connections(config, MAX_WAIT_MS, onError)
  }

  async connect(isDurable: boolean): Promise<void> {
    await this.#connections.open()
    if (!isDurable) return
    try {
      await this.#onDisk()
    } catch (cause) {
      const advice =
        'use Valkey or Redis from 7.2 with `appendonly yes`, or set plugins.mesh.acknowledge to memory'
      throw new Error(`changes cannot be confirmed on its disk (${messageOf(cause)}): ${advice}`, { cause })
    }
  }

  async close(): Promise<void> {
    this.#connections.close()
  }

  async takeName(name: string, about: string, goneMs: number): ReturnType<MeshEngine['takeName']> {
    const reply = await this.#run(scripts.TAKE_NAME, [name, about, goneMs, randomUUID()])
    const [incarnation, revision, dataSets] = reply as [number, number, string]
    return incarnation === 0 ? null : { incarnation, ...toState(revision, dataSets) }
  }

  async renew(
    name: string,
    incarnation: number,
    about: string,
    goneMs: number,
    forgetMs: number,
  ): Promise<Renewal> {
    const reply = await this.#run(scripts.RENEW, [name, incarnation, about, goneMs, forgetMs])
    const [isHeld, revision, dataSets, ...rows] = reply as [number, number, string, ...(string | number)[]]
    const nodes: EngineNode[] = []
    for (let at = 0; at < rows.length; at += 4)
      nodes.push({
        name: String(rows[at]),
        incarnation: Number(rows[at + 1]),
        ageMs: Number(rows[at + 2]),
        about: String(rows[at + 3]),
      })
    return { isHeld: isHeld === 1, nodes, ...toState(revision, dataSets) }
  }

  async leave(name: string, incarnation: number): Promise<void> {
    await this.#run(scripts.LEAVE, [name, incarnation])
  }

  async readAll(channels: readonly string[]): ReturnType<MeshEngine['readAll']> {
    const { allRecords, allBytes } = MESH_INTAKE
    const reply = (await this.#run(scripts.READ_ALL, [allRecords, allBytes, ...channels])) as unknown[]
    if (reply.length === 1)
      throw new Error(
        `the mesh has more than ${allRecords} records or ${allBytes} bytes of records, which a gateway does not read; remove some`,
      )
    const [revision, dataSets, log] = reply as [number, string, string]
    const kindsAt = 3 + channels.length
    const records: EngineRecord[] = []
    for (let at = kindsAt; at < reply.length; at += 2) {
      const [kind, rows] = reply.slice(at) as [string, string[]]
      for (let row = 0; row < rows.length; row += 2) records.push(toRecord(kind, rows[row], rows[row + 1]))
    }
    const ids = channels.map((channel, index): [string, string] => [channel, String(reply[3 + index])])
    const positions: Positions = { log, revision, channels: new Map(ids) }
    return { records, positions, ...toState(revision, dataSets) }
  }

  async write(
    { kind, id, expected, value }: Parameters<MeshEngine['write']>[0],
    isDurable: boolean,
  ): ReturnType<MeshEngine['write']> {
    const { writes } = this.#connections
    const puts = value === null ? '0' : '1'
    const args = [kind, id, expected, puts, value ?? '', LOG_ENTRIES]
    const [revision, row] = (await this.#run(scripts.WRITE, args, writes)) as [number, string]
    if (revision === 0) return { conflict: toRecord(kind, id, row) }
    if (isDurable) await this.#onDisk()
    return { revision }
  }

  async restore(
    records: readonly EngineRecord[],
    dataSets: readonly string[],
    revision: number,
  ): Promise<void> {
    const rows = records.flatMap(({ kind, id, revision: own, value }) => [kind, id, `${own} ${value}`])
    const sets = [randomUUID(), ...dataSets].join(' ')
    await this.#run(scripts.RESTORE, [sets, revision, LOG_ENTRIES, ...rows])
  }

  async follow({ log, revision, channels }: Positions, waitMs: number): Promise<Followed> {
    const names = [...channels.keys()]
    const keys = ['log', ...names.map((name) => `channel:${name}`)].map((key) => this.#prefix + key)
    const ids = [log, ...channels.values()]
    // Not measured: it waits for changes of others.
    const reply = await this.#explained(
      this.#connections.streams.xreadBuffer(
        'COUNT',
        READ_ENTRIES,
        'BLOCK',
        Math.min(waitMs, MAX_WAIT_MS),
        'STREAMS',
        ...keys,
        ...ids,
      ),
    )
    const found = new Map(
      (reply ?? []).map(([key, entries]) => [String(key).slice(this.#prefix.length), entries]),
    )
    const entries = (found.get('log') ?? []).map(([id, fields]) => ({
      id: String(id),
      change: toChange(fields),
    }))
    const messages = names.flatMap((channel) =>
      (found.get(`channel:${channel}`) ?? []).map(([, fields]) => ({ channel, ...toMessage(fields) })),
    )
    const after = names.map((name, at): [string, string] => {
      const last = found.get(`channel:${name}`)?.at(-1)
      return [name, last === undefined ? ids[at + 1] : String(last[0])]
    })
    // Each change has the revision after that of the one before.
    const hasGap = entries.some(
      ({ change }, at) => change.kind === '' || change.revision !== revision + at + 1,
    )
    const changes = hasGap ? null : await this.#readChanged(entries.map(({ change }) => change))
    return {
      positions: {
        log: entries.at(-1)?.id ?? log,
        revision: entries.at(-1)?.change.revision ?? revision,
        channels: new Map(after),
      },
      changes: changes ?? [],
      messages,
      isTrimmed: changes === null,
    }
  }

  async send(from: string, messages: readonly { channel: string; message: Buffer }[]): Promise<void> {
    const pipeline = this.#connections.commands.pipeline()
    for (const { channel, message } of messages)
      pipeline.xadd(
        `${this.#prefix}channel:${channel}`,
        'MAXLEN',
        '~',
        CHANNEL_ENTRIES,
        '*',
        'from',
        from,
        'message',
        message,
      )
    await this.#measured(pipeline.exec())
  }

  async grant(requests: readonly GrantRequest[]): Promise<readonly Grant[]> {
    const args = requests.flatMap(({ bucket, limit, windowMs, need, want, window }) => [
      bucket,
      limit,
      windowMs,
      need,
      want,
      window,
    ])
    const reply = (await this.#run(scripts.GRANT, args)) as number[]
    return requests.map((_, at) => {
      const [granted, left, window, endsInMs] = reply.slice(at * 4)
      return { granted, left, window, endsInMs }
    })
  }

  async addToCounters(
    writer: string,
    sequence: number,
    changes: readonly CounterChange[],
  ): Promise<readonly number[]> {
    const args = changes.flatMap(({ counter, add, keepMs }) => [counter, add, keepMs])
    const reply = (await this.#run(scripts.COUNT, [writer, sequence, WRITER_MS, ...args])) as string[]
    return reply.map(Number)
  }

  async putBlob(sha256: string, bytes: Buffer): Promise<void> {
    await this.#measured(this.#connections.writes.set(`${this.#prefix}blob:${sha256}`, bytes))
    await this.#onDisk()
  }

  async readBlob(sha256: string): Promise<Buffer | null> {
    const { blobBytes } = MESH_INTAKE
    const key = `${this.#prefix}blob:${sha256}`
    const bytes = await this.#measured(this.#connections.commands.getrangeBuffer(key, 0, blobBytes))
    if (bytes.length > blobBytes) throw new Error(`the blob ${sha256} has more than ${blobBytes} bytes`)
    return bytes.length === 0 ? null : bytes
  }

  async removeBlob(sha256: string): Promise<void> {
    await this.#measured(this.#connections.commands.unlink(`${this.#prefix}blob:${sha256}`))
  }

  /** Waits until what this connection wrote is on the server's disk. */
  async #onDisk(): Promise<void> {
    const { timeoutMs } = this.#config
    const reply = await this.#measured(this.#connections.writes.call('WAITAOF', 1, 0, timeoutMs - 50))
    const [local] = reply as [number]
    if (local !== 1)
      throw new Error(`the server did not confirm within ${timeoutMs} ms that the change is on its disk`)
  }

  /** @returns null if the records have more bytes than a gateway takes at once */
  async #readChanged(
    changes: readonly { kind: string; id: string; revision: number }[],
  ): Promise<EngineRecord[] | null> {
    if (changes.length === 0) return []
    // Of several changes of a record, the last one.
    const newest = [...new Map(changes.map((change) => [`${change.kind} ${change.id}`, change])).values()]
    const args = newest.flatMap(({ kind, id }) => [kind, id])
    const rows = (await this.#run(scripts.READ_SOME, [MESH_INTAKE.allBytes, ...args])) as (
      | string
      | number
      | null
    )[]
    if (rows[0] === 0) return null
    return newest.map(({ kind, id, revision }, at): EngineRecord => {
      const row = rows[at]
      // A removed record has no row, so its revision is that of the change.
      return typeof row === 'string' ? toRecord(kind, id, row) : { kind, id, revision, value: null }
    })
  }

  #run(
    script: scripts.Script,
    args: readonly (string | number)[],
    connection = this.#connections.commands,
  ): Promise<unknown> {
    return this.#measured(script.run(connection, this.#prefix, args))
  }

  async #measured<T>(command: Promise<T>): Promise<T> {
    const startedAtMs = performance.now()
    this.commands.count++
    try {
      return await this.#explained(command)
    } catch (error) {
      this.commands.errors++
      throw error
    } finally {
      this.commands.seconds += (performance.now() - startedAtMs) / 1000
    }
  }

  /** @throws Error in words of an operator; the library's words for a broken connection say nothing */
  async #explained<T>(command: Promise<T>): Promise<T> {
    try {
      return await command
    } catch (error) {
      const message = messageOf(error)
      const isBroken = /closed|writeable|max retries|timeout/i.test(message)
      const problem = this.#connections.problem ?? 'the server does not answer'
      throw new Error(isBroken ? problem : message, { cause: error })
    }
  }
}

function toState(revision: number, dataSets: string): EngineState {
  const [dataSet, ...earlierDataSets] = dataSets.split(' ')
  return { revision, dataSet, earlierDataSets }
}

/** @param row revision and JSON; empty for a removed record */
function toRecord(kind: string, id: string, row: string): EngineRecord {
  const space = row.indexOf(' ')
  if (space < 0) return { kind, id, revision: 0, value: null }
  return { kind, id, revision: Number(row.slice(0, space)), value: row.slice(space + 1) }
}

function toChange(fields: readonly Buffer[]): { kind: string; id: string; revision: number } {
  return { kind: String(fields[1]), id: String(fields[3]), revision: Number(String(fields[5])) }
}

function toMessage(fields: readonly Buffer[]): { from: string; message: Buffer } {
  return { from: String(fields[1]), message: fields[3] }
}
