/** The part of the plugin that runs on control: the threads that load and encode, and the list of tokenizers. */

import { isAbsolute } from 'node:path'
import {
  type BundleSource,
  defineValidator,
  type Host,
  Mesh,
  Store,
  type TokenizerRequest,
  type WorkerEntry,
  type WorkerTable,
  WorkerTableReplica,
} from '#kernel'
import {
  AddTokenizer,
  EncodeTexts,
  EnsureTokenizer,
  RemoveTokenizer,
  StatusOfTokenizer,
  TokenizersReplica,
} from './commands.ts'
import type { TokenizersConfig } from './config.ts'
import { EncoderPools } from './encoder-pool.ts'
import { LoaderPool } from './loader-pool.ts'
import { Registry } from './registry.ts'
import { SavedTokenizers, SharedTokenizers } from './saved-tokenizers.ts'
import { AddTokenizerSchema } from './wire.ts'
import { WorkerBundles } from './worker-bundles.ts'

const addValidator = defineValidator(AddTokenizerSchema)

export interface TokenizerControl {
  readonly registry: Registry
  readonly encoders: EncoderPools
  readonly loader: LoaderPool
  readonly bundles: WorkerBundles
}

/** @param sources sources of bundles; plugins add to it while they register */
export function openControl(
  host: Host,
  config: TokenizersConfig,
  sources: readonly BundleSource[],
): TokenizerControl {
  const table = host.replica(WorkerTableReplica)
  const loader = new LoaderPool(host, config)
  const bundles = new WorkerBundles({
    sources,
    workers: () => table.current.workers,
    unpack: (archive, folder) => loader.unpack(archive, folder),
  })
  const encoders = new EncoderPools({ host, config, images: () => registry.images() })
  const mesh = host.find(Mesh)
  const registry: Registry = new Registry({
    config,
    loader,
    encoders,
    bundles,
    saved: mesh?.shares('tokenizers') ? new SharedTokenizers(mesh) : new SavedTokenizers(host.find(Store)),
    log: host.log,
    publish: (tokenizers) => host.publish(TokenizersReplica, { tokenizers }),
  })
  host.onCommand(AddTokenizer, ({ body, asker }) => {
    const { name, source, chat_template_path: chatTemplatePath } = addValidator.parse(body)
    return registry.add({ name, source, chatTemplatePath: chatTemplatePath ?? undefined }, asker)
  })
  host.onCommand(EnsureTokenizer, (request) => registry.ensure(request))
  host.onCommand(StatusOfTokenizer, (idOrName) => registry.status(idOrName))
  host.onCommand(RemoveTokenizer, ({ idOrName, asker }) => registry.remove(idOrName, asker))
  host.onCommand(EncodeTexts, (items) => encoders.encode(items))
  if (config.autoload)
    table.onChange((workers) => {
      const serves = (worker: WorkerEntry) => sources.some((source) => source.covers(worker))
      for (const request of workerTokenizers(workers, serves)) registry.ensure(request)
    })
  return { registry, encoders, loader, bundles }
}

/**
 * Tokenizers named by labels of workers, one per model. Only paths of this machine: names of model hubs are ignored.
 * @param serves whether the files can be fetched from a worker
 */
export function workerTokenizers(
  { workers }: WorkerTable,
  serves: (worker: WorkerEntry) => boolean = () => false,
): TokenizerRequest[] {
  const wanted = new Map<string, TokenizerRequest>()
  for (const worker of workers) {
    const { labels, models, configuredLabels = {} } = worker
    const named = labels.tokenizer_path || labels.model_path || ''
    const isConfigured = named === (configuredLabels.tokenizer_path || configuredLabels.model_path)
    const isLocal = isAbsolute(named) || named.startsWith('weir:')
    if (!isLocal && !serves(worker)) continue
    for (const { id } of models)
      if (!wanted.has(id)) wanted.set(id, { name: id, source: isLocal ? named : '', isConfigured })
  }
  return [...wanted.values()]
}
