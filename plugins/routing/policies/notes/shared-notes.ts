/** Opens what a thread needs to share prefixes and sessions with other gateways; nothing without a mesh that shares them. */
import { type Host, Mesh, type WorkerEntry, WorkerTableReplica } from '#kernel'
import { WorkerHashes } from '#shared'
import type { PolicyState } from '../policy-state.ts'
import { NoteExchange } from './note-exchange.ts'
import { NoteRing, type NoteRings, type TakeNote } from './note-ring.ts'

const KINDS = ['prefixes', 'sessions'] as const satisfies readonly Kind[]
type Kind = keyof NoteRings

/** Only control has the mesh, and it registers before data threads start; they read from shared memory what is shared. */
export function openNoteRings(host: Pick<Host, 'find' | 'shared' | 'isControl'>): NoteRings {
  const shares = new Int32Array(host.shared('shares', KINDS.length * Int32Array.BYTES_PER_ELEMENT))
  if (host.isControl) {
    const mesh = host.find(Mesh)
    for (const [at, kind] of KINDS.entries()) shares[at] = mesh?.shares(kind) === true ? 1 : 0
  }
  const ringOf = (kind: Kind) =>
    shares[KINDS.indexOf(kind)] === 0
      ? null
      : new NoteRing((name, bytes) => host.shared(name, bytes), `${kind}-notes`)
  return { prefixes: ringOf('prefixes'), sessions: ringOf('sessions') }
}

/** Exchanges notes with the other gateways from `start` on. Control only; call in `register`. */
export function openNoteExchanges(
  host: Pick<Host, 'find' | 'balance' | 'metrics' | 'replica'>,
  rings: NoteRings,
  { prefixes, sessions, counters }: PolicyState,
): Pick<NoteExchange, 'start' | 'close'> {
  const mesh = host.find(Mesh)
  if (mesh === undefined || (rings.prefixes === null && rings.sessions === null))
    return { start: () => undefined, close: () => undefined }
  const hashes = new WorkerHashes()
  let bySlot: ReadonlyMap<number, WorkerEntry> = new Map()
  const follow = () => {
    const { workers } = host.balance
    hashes.follow(workers)
    bySlot = new Map(workers.map((worker) => [worker.slot, worker]))
  }
  host.replica(WorkerTableReplica).onChange(follow)
  follow()
  const family = host.metrics.counter({
    name: 'weir_policy_notes_total',
    help: 'Notes about prompts and sessions that gateways exchange, by kind and by what became of them.',
    labels: ['kind', 'outcome'],
  })
  /** The same order on every gateway. */
  const rankOf = (name: number) => {
    const worker = bySlot.get(name >>> 16)
    return worker === undefined ? Number.POSITIVE_INFINITY : counters.urlHash(worker)
  }
  const appliers: Readonly<Record<Kind, TakeNote>> = {
    prefixes: (low, high, span, name) => prefixes.learn(low, high, span, name),
    sessions: (low, high, isFirst, name) =>
      sessions.learn(low, high, name, isFirst === 1, (other) => rankOf(name) < rankOf(other)),
  }
  const exchanges = KINDS.flatMap((kind) => {
    const ring = rings[kind]
    if (ring === null) return []
    const count = {
      sent: family.labels(kind, 'sent'),
      received: family.labels(kind, 'received'),
      dropped: family.labels(kind, 'dropped'),
    }
    return new NoteExchange({
      channel: mesh.channel(kind),
      ring,
      counters,
      hashes,
      workerOf: (slot) => bySlot.get(slot),
      apply: appliers[kind],
      count,
    })
  })
  return {
    start: () => {
      for (const exchange of exchanges) exchange.start()
    },
    close: () => {
      for (const exchange of exchanges) exchange.close()
    },
  }
}
