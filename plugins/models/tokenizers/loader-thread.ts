/** Runs tasks on the loading thread, which loads no other part of the gateway. */
import { workerData } from 'node:worker_threads'
import {
  type LoaderThreadData,
  type LoadResult,
  loadTokenizer,
  type TokenizerPlace,
} from './load-tokenizer.ts'
import { type UnpackLimits, unpackBundle } from './unpack-bundle.ts'

export type LoaderTask =
  | { readonly kind: 'load'; readonly place: TokenizerPlace }
  | {
      readonly kind: 'unpack'
      readonly archive: string
      readonly folder: string
      readonly limits: UnpackLimits
    }

export type LoaderResult =
  | { readonly kind: 'loaded'; readonly loaded: LoadResult }
  | { readonly kind: 'unpacked' }
  | { readonly kind: 'unusable'; readonly message: string }

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
