/** Which tokenizers the workers name: their labels tell a path, their models the names. @source grpc facts 3.5 */
import { isAbsolute } from 'node:path'
import type { TokenizerRequest } from '#contracts'
import type { WorkerTable } from '#kernel'

/** Only paths of this machine: names of hubs are not looked up. */
export function workerTokenizers({ workers }: WorkerTable): TokenizerRequest[] {
  const wanted = new Map<string, TokenizerRequest>()
  for (const { labels, models } of workers) {
    const source = labels.tokenizer_path || labels.model_path || ''
    if (!isAbsolute(source)) continue
    for (const { id } of models) if (!wanted.has(id)) wanted.set(id, { name: id, source })
  }
  return [...wanted.values()]
}
