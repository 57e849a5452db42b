/** Which tokenizers the workers name: their labels tell a path, their models the names. */
import { isAbsolute } from 'node:path'
import type { TokenizerRequest, WorkerEntry, WorkerTable } from '#kernel'

/**
 * Only paths of this machine: names of hubs are not looked up.
 * @param serves whether a worker may have the files itself
 */
export function workerTokenizers(
  { workers }: WorkerTable,
  serves: (worker: WorkerEntry) => boolean = () => false,
): TokenizerRequest[] {
  const wanted = new Map<string, TokenizerRequest>()
  for (const worker of workers) {
    const { labels, models } = worker
    const named = labels.tokenizer_path || labels.model_path || ''
    const isLocal = isAbsolute(named) || named.startsWith('weir:')
    if (!isLocal && !serves(worker)) continue
    for (const { id } of models)
      if (!wanted.has(id)) wanted.set(id, { name: id, source: isLocal ? named : '' })
  }
  return [...wanted.values()]
}
