/** Filters, counts and pages of the listed workers: only the records of the page are built. */
import type { WorkerStatus } from '#kernel'
import { serves } from './model-card.ts'
import type { WorkerList, WorkerQuery, WorkerRecord } from './wire.ts'
import type { Worker } from './worker.ts'
import type { Reservation } from './worker-spec.ts'

/** A registered worker, or an unfinished registration. */
export type Listed = Worker | Reservation

interface ListParts {
  /** In order of their ids. */
  readonly workers: readonly Worker[]
  readonly reservations: readonly Reservation[]
  readonly statusOf: (slot: number) => WorkerStatus
  readonly toRecord: (listed: Listed) => WorkerRecord
}

export function listWorkers(parts: ListParts, query: WorkerQuery): WorkerList {
  const statusOf = (listed: Listed) => ('entry' in listed ? parts.statusOf(listed.entry.slot) : 'pending')
  const found = inOrder(parts).filter((listed) => matches(listed, statusOf, query))
  const first = query.after == null ? 0 : firstAfter(found, query.after)
  const page = found.slice(first, query.limit == null ? undefined : first + query.limit)
  const ofType = (type: string) => found.filter(({ spec }) => spec.workerType === type).length
  return {
    workers: page.map(parts.toRecord),
    total: found.length,
    has_more: first + page.length < found.length,
    last_id: page.at(-1)?.id ?? null,
    stats: {
      prefill_count: ofType('prefill'),
      decode_count: ofType('decode'),
      regular_count: ofType('regular'),
      by_status: countsBy(found, statusOf),
      models: [...Map.groupBy(found, modelOf)]
        .sort(([a], [b]) => ((a ?? '') < (b ?? '') ? -1 : 1))
        .map(([model, ofModel]) => ({ model, by_status: countsBy(ofModel, statusOf) })),
    },
  }
}

/** By id, which is the order of registration. */
function inOrder({ workers, reservations }: ListParts): readonly Listed[] {
  if (reservations.length === 0) return workers
  return [...workers, ...reservations].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** The worker of the cursor may have been removed. */
function firstAfter(found: readonly Listed[], after: string): number {
  const at = found.findIndex(({ id }) => id > after)
  return at === -1 ? found.length : at
}

/** The models of a registration that is still to be described are unknown; an empty list of the registration is a wildcard. */
function modelsOf(listed: Listed) {
  return 'entry' in listed ? listed.entry.models : listed.spec.models
}

function modelOf(listed: Listed): string | null {
  return modelsOf(listed)?.[0]?.id ?? null
}

function matches(
  listed: Listed,
  statusOf: (listed: Listed) => string,
  { model, q, state }: WorkerQuery,
): boolean {
  const models = modelsOf(listed)
  if (model != null && (models === null || !serves(models, model))) return false
  if (state != null && statusOf(listed) !== state) return false
  return q == null || [urlOf(listed), listed.id, modelOf(listed) ?? ''].some((text) => contains(text, q))
}

/** Ranks of an engine have URLs of their own. */
const urlOf = (listed: Listed) => ('entry' in listed ? listed.entry.url : listed.spec.url)

function contains(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase())
}

function countsBy(found: readonly Listed[], statusOf: (listed: Listed) => string): Record<string, number> {
  const groups = Map.groupBy(found, statusOf)
  return Object.fromEntries([...groups].map(([status, { length }]) => [status, length]))
}
