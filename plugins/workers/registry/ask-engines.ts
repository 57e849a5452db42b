/** Calls every engine once, for all of its data-parallel ranks. */
import type { WorkerEntry } from '#kernel'
import { fanOut } from '#shared'
import { engineUrl } from './worker-url.ts'

const MAX_PARALLEL = 32

/**
 * @param ask called with the first worker of each engine
 * @returns the answer of its engine, by worker
 */
export async function askEngines<Answer>(
  workers: readonly WorkerEntry[],
  ask: (first: WorkerEntry) => Promise<Answer>,
): Promise<ReadonlyMap<WorkerEntry, Answer>> {
  const engines = [...Map.groupBy(workers, engineUrl).values()]
  const answers = await fanOut(engines, MAX_PARALLEL, ([first]) => ask(first))
  return new Map(engines.flatMap((ranks, place) => ranks.map((worker) => [worker, answers[place]] as const)))
}
