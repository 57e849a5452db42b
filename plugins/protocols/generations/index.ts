/** Generations: requests in one internal form, answered as events, over the engines of every protocol. */
import { definePlugin, Generations, OutgoingHttp, Tokenizers } from '#kernel'
import { MESSAGES_HEADERS } from '#shared'
import { chatEngine, completionsEngine } from '../chat/engine/chat-engine.ts'
import { generateEngine } from '../chat/engine/generate-engine.ts'
import { messagesEngine } from '../messages/engine/messages-engine.ts'
import { responsesEngine } from '../responses/engine/responses-engine.ts'
import { generationsConfig } from './config.ts'
import { FileLoader } from './file-loader.ts'
import { StreamCounter } from './stream-counter.ts'
import { ThreadGenerations } from './thread-generations.ts'

export default definePlugin({
  manifest: {
    name: 'generations',
    version: '0.1.0',
    description: 'Requests in one internal form between the formats of clients and the formats of workers.',
    provides: [Generations],
    usesOptionally: [Tokenizers, OutgoingHttp],
    config: generationsConfig,
  },
  register(host, config) {
    const tokenizers = host.find(Tokenizers)
    const counter = tokenizers === undefined ? null : new StreamCounter(tokenizers)
    if (counter !== null) host.upstream.estimateUsage(counter)
    const files = new FileLoader(host.find(OutgoingHttp) ?? null, config.fileUrls)
    const { toolImages } = config
    const generations = new ThreadGenerations(host.upstream, host.balance, { toolImages, files, counter })
    const engines = [chatEngine, messagesEngine, responsesEngine, completionsEngine, generateEngine]
    for (const engine of engines) generations.addEngine(engine(config))
    host.provide(Generations, generations)
    // Kept on every route: a chat request may name betas for a worker that speaks the Messages format.
    host.hook('onRequest', () => {}, { scope: 'all', routes: () => false, headers: MESSAGES_HEADERS })
  },
})
