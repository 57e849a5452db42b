/** Worker entries for tests, with the defaults of a registered worker. */
import type { ModelCard, WorkerEntry } from '../../kernel/contracts/worker.ts'

/** @param given members that differ from a ready HTTP worker; models may be ids */
export function workerEntry(
  given: Partial<Omit<WorkerEntry, 'models' | 'slot'>> & {
    slot: number
    models?: readonly (string | ModelCard)[]
  },
): WorkerEntry {
  return {
    id: `worker-${given.slot}`,
    url: `http://worker-${given.slot}:8000`,
    workerType: 'regular',
    connectionMode: 'http',
    runtimeType: 'unspecified',
    apis: ['chat'],
    isExternal: false,
    provider: null,
    apiKey: null,
    priority: 50,
    cost: 1,
    labels: {},
    bootstrapPort: null,
    bootstrapHost: null,
    dataParallel: null,
    resilience: null,
    httpPool: null,
    revision: 1,
    ...given,
    models: (given.models ?? []).map((model) => (typeof model === 'string' ? { id: model } : model)),
  }
}
