/** Runs tasks on the loading thread, which loads no other part of the gateway. */
import { workerData } from 'node:worker_threads'
import { loadTokenizer } from './load-tokenizer.ts'
import type { LoaderResult, LoaderTask, LoaderThreadData } from './loader-task.ts'
import { unpackBundle } from './unpack-bundle.ts'

const data = workerData as LoaderThreadData

/** Called by the pool, one task at a time. */
export async function runTask(task: LoaderTask): Promise<LoaderResult> {
  try {
    if (task.kind === 'load') return { kind: 'loaded', loaded: await loadTokenizer(task.place, data) }
    unpackBundle(task.archive, task.folder, task.limits)
    return { kind: 'unpacked' }
  } catch (error) {
    return { kind: 'unusable', message: error instanceof Error ? error.message : String(error) }
  }
}
