/** Whether prefill and decode workers that may be paired are set up alike. Pure. */
import { serves } from './model-card.ts'
import type { Worker } from './worker.ts'

/** Labels that should have one value in both halves of a pair. */
const SHARED_LABELS = ['tp_size', 'dp_size', 'load_balance_method'] as const

export interface PairDisagreement {
  readonly label: string
  readonly value: string
  /** URL of the first worker that has another one. */
  readonly peer: string
  readonly peerValue: string
}

/** What a worker and its possible partners differ in, each label once; a label that one side lacks differs from none. */
export function pairDisagreements(worker: Worker, all: readonly Worker[]): readonly PairDisagreement[] {
  const { workerType } = worker.entry
  if (workerType === 'regular') return []
  const partnerType = workerType === 'prefill' ? 'decode' : 'prefill'
  const partners = all.filter((other) => other.entry.workerType === partnerType && sharesModel(worker, other))
  return SHARED_LABELS.flatMap((label) => {
    const value = worker.entry.labels[label]
    const peer = partners.find(({ entry }) => (entry.labels[label] ?? value) !== value)
    if (value === undefined || peer === undefined) return []
    return [{ label, value, peer: peer.entry.url, peerValue: peer.entry.labels[label] }]
  })
}

function sharesModel(worker: Worker, other: Worker): boolean {
  const { models } = worker.entry
  return models.length === 0 || models.some((card) => serves(other.entry.models, card.id))
}
