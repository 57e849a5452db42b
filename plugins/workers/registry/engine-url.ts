/** Which workers share an engine. */
import type { WorkerEntry } from '#kernel'

/** URL of the engine behind a worker; of data-parallel ranks, one for all. */
export function engineUrl({ url, dataParallel }: Pick<WorkerEntry, 'url' | 'dataParallel'>): string {
  return dataParallel?.baseUrl ?? url
}
