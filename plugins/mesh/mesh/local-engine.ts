/** The engine of a mesh with one gateway: records in the local store, or in memory without one. */
import {
  type Collection,
  type CounterChange,
  type EnginePosition,
  type EngineRecord,
  type EngineState,
  type Followed,
  GATEWAY_TENANT,
  type Grant,
  type GrantRequest,
  type MeshEngine,
  type Positions,
  type Renewal,
  type StoreService,
} from '#kernel'
import { isRecord } from './record-copy.ts'

const EPOCH = 'local'
const SYNCED = { durability: 'synced' } as const

interface StoredMeshRecord {
  readonly kind: string
  readonly id: string
  readonly revision: number
  readonly value: string
}

export class LocalEngine implements MeshEngine {
  readonly kind = 'local'
  readonly commands = { count: 0, errors: 0, seconds: 0 }
  readonly #collection: Collection<StoredMeshRecord> | undefined
  readonly #records = new Map<string, EngineRecord>()
  readonly #windows = new GrantWindows()
  readonly #counters = new Map<string, number>()
  readonly #sequences = new Map<string, number>()
  #revision = 0
  #isClosed = false
  #wake: () => void = () => undefined

  constructor(store: StoreService | undefined) {
    this.#collection = store?.collection<StoredMeshRecord>('mesh-records', isRecord)
  }

  async connect(): Promise<void> {
    for (const record of (await this.#collection?.list(GATEWAY_TENANT)) ?? []) {
      this.#records.set(keyOf(record.kind, record.id), record)
      this.#revision = Math.max(this.#revision, record.revision)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
  }

  async takeName(): ReturnType<MeshEngine['takeName']> {
    return { incarnation: 1, ...this.#state() }
  }

  async renew(name: string, incarnation: number, about: string): Promise<Renewal> {
    return { isHeld: true, nodes: [{ name, incarnation, about, ageMs: 0 }], ...this.#state() }
  }

  async leave(): Promise<void> {}

  async readAll(): ReturnType<MeshEngine['readAll']> {
    const positions = { log: '', last: this.#last, channels: new Map<string, string>() }
    return { records: [...this.#records.values()], positions, ...this.#state() }
  }

  async write({
    kind,
    id,
    expected,
    value,
  }: Parameters<MeshEngine['write']>[0]): ReturnType<MeshEngine['write']> {
    const key = keyOf(kind, id)
    const present = this.#records.get(key)
    if ((present?.revision ?? 0) !== expected)
      return { conflict: present ?? { kind, id, revision: 0, value: null } }
    const revision = ++this.#revision
    this.#wake()
    // Before it is stored, so that a second change of the record is a conflict.
    if (value === null) this.#records.delete(key)
    else this.#records.set(key, { kind, id, revision, value })
    try {
      await this.#save(key, kind, id, revision, value)
    } catch (error) {
      if (present === undefined) this.#records.delete(key)
      else this.#records.set(key, present)
      throw error
    }
    return { revision, epoch: EPOCH }
  }

  async restore(): Promise<void> {}

  /** Only this gateway writes, so there is nothing to read. */
  async follow(positions: Positions, waitMs: number): Promise<Followed> {
    if (!this.#isClosed)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    return {
      positions: { ...positions, last: this.#last },
      changes: [],
      messages: [],
      isTrimmed: false,
    }
  }

  async send(): Promise<void> {}

  async grant(requests: readonly GrantRequest[]): Promise<readonly Grant[]> {
    return requests.map((request) => this.#windows.grant(request, Date.now()))
  }

  /** Until this process ends. */
  async addToCounters(
    writer: string,
    sequence: number,
    changes: readonly CounterChange[],
  ): Promise<readonly number[]> {
    const isNew = sequence > (this.#sequences.get(writer) ?? 0)
    if (isNew) this.#sequences.set(writer, sequence)
    return changes.map(({ counter, add }) => {
      const total = (this.#counters.get(counter) ?? 0) + (isNew ? add : 0)
      this.#counters.set(counter, total)
      return total
    })
  }

  async putBlob(): Promise<void> {}

  async readBlob(): Promise<null> {
    return null
  }

  async removeBlob(): Promise<void> {}

  #state(): EngineState {
    return { revision: this.#revision, epochs: [this.#last] }
  }

  get #last(): EnginePosition {
    return { epoch: EPOCH, revision: this.#revision }
  }

  async #save(key: string, kind: string, id: string, revision: number, value: string | null): Promise<void> {
    if (value === null) await this.#collection?.delete(GATEWAY_TENANT, key, SYNCED)
    else await this.#collection?.put(GATEWAY_TENANT, key, { kind, id, revision, value }, SYNCED)
  }
}

function keyOf(kind: string, id: string): string {
  return `${kind}.${id}`
}

/** Above this number all buckets are forgotten. */
const MAX_BUCKETS = 10_000

interface Window {
  readonly number: number
  readonly used: number
}

/** Grants of shared limits in one process; the same rules as the script of mesh-valkey. */
export class GrantWindows {
  readonly #windows = new Map<string, Window>()

  /** @param nowMs wall clock */
  grant({ bucket, limit, windowMs, need, want, window }: GrantRequest, nowMs: number): Grant {
    const number = Math.floor(nowMs / windowMs)
    const known = this.#windows.get(bucket)
    const used = known?.number === number ? known.used : 0
    const left = Math.max(0, limit - used)
    let granted = 0
    if (want > 0) {
      // The fewer are left, the fewer for stocks: none is left over where no request comes.
      const spare = Math.floor(((want - need) * left) / limit)
      granted = Math.min(left, need + spare)
    } else if (window === number) {
      granted = 0 - Math.min(-want, used)
    }
    if (known === undefined && this.#windows.size >= MAX_BUCKETS) this.#windows.clear()
    this.#windows.set(bucket, { number, used: used + granted })
    return {
      granted,
      left: Math.max(0, limit - used - granted),
      window: number,
      endsInMs: Math.floor((number + 1) * windowMs - nowMs),
    }
  }
}
