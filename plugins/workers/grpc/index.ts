/** gRPC workers, which exchange token ids: sglang, vllm, trtllm, tokenspeed, mlx. */
import {
  definePlugin,
  Embeddings,
  Generations,
  type Host,
  KvEvents,
  OutputParsers,
  Tokenizers,
} from '#kernel'
import { PairMetrics } from '#shared'
import { grpcConfig } from './config.ts'
import { GrpcControl } from './control/grpc-control.ts'
import { GrpcKvEvents } from './control/kv-events.ts'
import { LoadSender, PushedLoads, PushLoad } from './control/pushed-loads.ts'
import { GrpcTokenizerBundles } from './control/tokenizer-bundles.ts'
import { Embedder } from './engine/embedder.ts'
import { GrpcEngine, SamplingDefaults } from './engine/grpc-engine.ts'
import { PromptBuilder } from './engine/prompt.ts'
import { GrpcPairs } from './pairs/grpc-pairs.ts'
import { Channels } from './wire/channels.ts'
import { GrpcTransport } from './wire/grpc-transport.ts'
import { H2Connections } from './wire/h2-connections.ts'
import { SentRequests } from './wire/sent-requests.ts'

export default definePlugin({
  manifest: {
    name: 'grpc',
    version: '0.1.0',
    description: 'Connects to workers with grpc:// and grpcs:// URLs, in token ids.',
    provides: [Embeddings, KvEvents],
    uses: [Generations, OutputParsers, Tokenizers],
    config: grpcConfig,
  },
  register(host, config) {
    const tokenizers = host.use(Tokenizers)
    const parsers = host.use(OutputParsers)
    const calls = new SentRequests()
    const controlChannels = new Channels(config)
    host.transport(new GrpcTransport(new H2Connections(config), calls))
    tokenizers.bundlesFrom(new GrpcTokenizerBundles(controlChannels))
    host.provide(KvEvents, new GrpcKvEvents(controlChannels, loadSender(host)))
    const pushed = new PushedLoads()
    host.workerControl(new GrpcControl({ channels: controlChannels, tokenizers, pushed, log: host.log }))
    if (host.isControl)
      host.onCommand(PushLoad, (load) => {
        const worker = host.balance.byId(load.workerId)
        if (worker !== undefined) pushed.add(worker, load)
      })
    const prompts = new PromptBuilder(tokenizers, parsers, (model) => host.balance.workersOf(model))
    host.provide(Embeddings, new Embedder(prompts, { upstream: host.upstream, calls }))
    host.pairs(new GrpcPairs(calls, new PairMetrics(host.metrics)))
    host.use(Generations).addEngine(
      new GrpcEngine({
        prompts,
        parsers,
        defaults: new SamplingDefaults(host.log),
        calls,
      }),
    )
    return { stop: () => controlChannels.close() }
  },
})

/** Every data thread reads the events of all engines: the first one passes their loads on. */
function loadSender(host: Host): LoadSender | null {
  if (!host.isData || host.threadIndex > 1) return null
  return new LoadSender((load) => {
    host.command(PushLoad, load).catch((err: unknown) => host.log.debug({ err }, 'engine load not passed on'))
  })
}
