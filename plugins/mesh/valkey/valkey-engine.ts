/** The mesh engine on Valkey or Redis. */
import { randomUUID } from 'node:crypto'
import type { ChainableCommander } from 'ioredis'
import {
  type Acknowledge,
  type CounterChange,
  type EngineNode,
  type EnginePosition,
  type EngineRecord,
  type EngineState,
  EngineUnreachable,
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
import { BROKEN, Connections } from './connections.ts'
import * as scripts from './scripts.ts'

/** Entries that the streams keep, about. Messages have up to 64 KiB, and are of use for a few seconds. */
const LOG_ENTRIES = 20_000
const CHANNEL_ENTRIES = 2_000
/** Entries of each stream that one read returns at most: with full messages, 16 MiB of each channel. */
const READ_ENTRIES = 250
/** Of a record with its revision. */
const MAX_ROW_BYTES = MESH_INTAKE.recordBytes + 32
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
  #acknowledge: Acknowledge = 'memory'

  /** @param prefix of all keys of the mesh, with a hash tag */
  constructor(config: ValkeyConfig, prefix: string, onError: (error: Error) => void) {
    this.#config = config
    this.#prefix = prefix
    this.#connections = new Connections(config, MAX_WAIT_MS, onError)
  }

  async connect(acknowledge: Acknowledge): Promise<void> {
    this.#acknowledge = acknowledge
    await this.#connections.open()
    if (acknowledge !== 'disk') return
    try {
      await this.#acknowledged((pipeline) => pipeline.get(`${this.#prefix}revision`))
    } catch (cause) {
      if (cause instanceof EngineUnreachable) throw cause
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
    const [incarnation, revision, epochs] = reply as [number, number, string]
    return incarnation === 0 ? null : { incarnation, ...toState(revision, epochs) }
  }

  async renew(
    name: string,
    incarnation: number,
    about: string,
    goneMs: number,
    forgetMs: number,
  ): Promise<Renewal> {
    const { members, aboutBytes } = MESH_INTAKE
    const args = [name, incarnation, about, goneMs, forgetMs, members, aboutBytes]
    const reply = await this.#run(scripts.RENEW, args)
    const [isHeld, revision, epochs, ...rows] = reply as [number, number, string, ...(string | number)[]]
    const nodes: EngineNode[] = []
    for (let at = 0; at < rows.length; at += 4)
      nodes.push({
        name: String(rows[at]),
        incarnation: Number(rows[at + 1]),
        ageMs: Number(rows[at + 2]),
        about: String(rows[at + 3]),
      })
    return { isHeld: isHeld === 1, nodes, ...toState(revision, epochs) }
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
    const [revision, epochs, log] = reply as [number, string, string]
    const kindsAt = 3 + channels.length
    const records: EngineRecord[] = []
    for (let at = kindsAt; at < reply.length; at += 2) {
      const [kind, rows] = reply.slice(at) as [string, string[]]
      for (let row = 0; row < rows.length; row += 2) records.push(toRecord(kind, rows[row], rows[row + 1]))
    }
    const ids = channels.map((channel, index): [string, string] => [channel, String(reply[3 + index])])
    const state = toState(revision, epochs)
    const last = state.epochs.at(-1) ?? { epoch: '', revision }
    return { records, positions: { log, last, channels: new Map(ids) }, ...state }
  }

  async write({
    kind,
    id,
    expected,
    value,
  }: Parameters<MeshEngine['write']>[0]): ReturnType<MeshEngine['write']> {
    const puts = value === null ? '0' : '1'
    const args = [kind, id, expected, puts, value ?? '', LOG_ENTRIES, randomUUID(), MAX_ROW_BYTES]
    const [revision, text] = (await this.#runAcknowledged(scripts.WRITE, args)) as [number, string]
    return revision === 0 ? { conflict: toRecord(kind, id, text) } : { revision, epoch: text }
  }

  async restore(
    records: readonly EngineRecord[],
    epochs: readonly string[],
    revision: number,
  ): Promise<void> {
    const rows = records.flatMap(({ kind, id, revision: own, value }) => [kind, id, `${own} ${value}`])
    const args = [epochs.join(' '), revision, LOG_ENTRIES, randomUUID(), ...rows]
    await this.#runAcknowledged(scripts.RESTORE, args)
  }

  async follow({ log, last, channels }: Positions, waitMs: number): Promise<Followed> {
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
      const newest = found.get(`channel:${name}`)?.at(-1)
      return [name, newest === undefined ? ids[at + 1] : String(newest[0])]
    })
    // Each change has the revision after that of the one before, and is of the same epoch.
    const hasGap = entries.some(
      ({ change: { kind, revision, epoch } }, at) =>
        kind === '' || epoch !== last.epoch || revision !== last.revision + at + 1,
    )
    const changes = hasGap ? null : await this.#readChanged(entries.map(({ change }) => change))
    return {
      positions: {
        log: entries.at(-1)?.id ?? log,
        last: entries.at(-1)?.change ?? last,
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
    await this.#acknowledged((pipeline) => pipeline.set(`${this.#prefix}blob:${sha256}`, bytes))
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

  async #runAcknowledged(script: scripts.Script, args: readonly (string | number)[]): Promise<unknown> {
    const run = script.run(this.#connections.writes, this.#prefix, args, (pipeline) =>
      this.#addWait(pipeline),
    )
    return this.#confirmed(await this.#measured(run))
  }

  async #acknowledged(add: (pipeline: ChainableCommander) => unknown): Promise<unknown> {
    const pipeline = this.#connections.writes.pipeline()
    add(pipeline)
    this.#addWait(pipeline)
    return this.#confirmed(await this.#measured(scripts.repliesOf(pipeline)))
  }

  /** Waits until what this connection wrote is acknowledged. */
  #addWait(pipeline: ChainableCommander): void {
    const waitMs = this.#config.timeoutMs - 50
    if (this.#acknowledge === 'disk') pipeline.call('WAITAOF', 1, 0, waitMs)
    else if (this.#acknowledge !== 'memory') pipeline.wait(this.#acknowledge.replicas, waitMs)
  }

  /** @returns the first reply. @throws EngineUnreachable if the change may be lost */
  #confirmed([reply, wait]: readonly unknown[]): unknown {
    const acknowledge = this.#acknowledge
    if (acknowledge === 'memory') return reply
    const { timeoutMs } = this.#config
    const [count] = (Array.isArray(wait) ? wait : [wait]) as [number]
    if (acknowledge === 'disk') {
      if (count >= 1) return reply
      throw new EngineUnreachable(
        `the server did not confirm within ${timeoutMs} ms that the change is on its disk`,
      )
    }
    if (count >= acknowledge.replicas) return reply
    throw new EngineUnreachable(
      `within ${timeoutMs} ms, ${count} of ${acknowledge.replicas} replicas confirmed the change`,
    )
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

  async #run(script: scripts.Script, args: readonly (string | number)[]): Promise<unknown> {
    const [reply] = await this.#measured(script.run(this.#connections.commands, this.#prefix, args))
    return reply
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
      throw this.#connections.explain(error, BROKEN.test(messageOf(error)))
    }
  }
}

/** @param text epochs with their last revisions, such as `a:50 b:99 c`; the last one goes on */
function toState(revision: number, text: string): EngineState {
  const epochs = text.split(' ').map((entry): EnginePosition => {
    const [epoch, last] = entry.split(':')
    return { epoch, revision: last === undefined ? revision : Number(last) }
  })
  return { revision, epochs }
}

/** @param row revision and JSON; empty for a removed record */
function toRecord(kind: string, id: string, row: string): EngineRecord {
  const space = row.indexOf(' ')
  if (space < 0) return { kind, id, revision: 0, value: null }
  return { kind, id, revision: Number(row.slice(0, space)), value: row.slice(space + 1) }
}

function toChange(fields: readonly Buffer[]): { kind: string; id: string } & EnginePosition {
  const [, kind, , id, , revision, , epoch] = fields.map(String)
  return { kind, id, revision: Number(revision), epoch }
}

function toMessage(fields: readonly Buffer[]): { from: string; message: Buffer } {
  return { from: String(fields[1]), message: fields[3] }
}
