/** The responses plugin: the stateful responses API over any worker. */
import { Generations, History, SharedStore, Store, Tokenizers, ToolLoop } from '#contracts'
import { definePlugin, type GatewayError, type RequestFacts } from '#kernel'
import { BackgroundRunner } from './background/background-runner.ts'
import { Cancellation, CancelTopic } from './background/cancellation.ts'
import { compactRoute } from './compact.ts'
import { responsesConfig } from './config.ts'
import { responsesErrorFormat, socketErrorFormat } from './error-format.ts'
import { inputTokensRoute } from './input-tokens.ts'
import { TextSeal } from './prompt/sealed-text.ts'
import { createRoute } from './routes.ts'
import type { ResponseRun } from './run/response-run.ts'
import type { ServeParts } from './run/serve-create.ts'
import { loadKeys, SharedKeys } from './seal-keys.ts'
import { responsesSocket } from './socket.ts'
import { LiveTopic } from './stored/follow-response.ts'
import { type StoredParts, storedRoutes } from './stored/stored-routes.ts'

export default definePlugin({
  manifest: {
    name: 'responses',
    version: '0.1.0',
    description: 'The responses API: state on the server, tools on the server, streams that resume.',
    uses: [Generations],
    usesOptionally: [History, SharedStore, Store, Tokenizers, ToolLoop],
    config: responsesConfig,
  },
  register(host, config) {
    const runs = host.slot<ResponseRun>()
    const history = host.find(History)
    const live = host.topic(LiveTopic)
    const parts: ServeParts & StoredParts = {
      host,
      config,
      runs,
      live,
      cancellation: new Cancellation(history, live, host.topic(CancelTopic)),
      history,
      toolLoop: host.find(ToolLoop),
      tokenizers: host.find(Tokenizers),
      seal: new TextSeal(),
    }
    const lastFrames = (request: RequestFacts, error: GatewayError) => runs.get(request)?.lastFrames(error)
    const errors = responsesErrorFormat(lastFrames)
    const runner = history === undefined ? null : new BackgroundRunner(parts, history)
    host.route(createRoute(parts, errors, () => runner?.poke()))
    host.route(compactRoute(parts, errors))
    host.route(inputTokensRoute(parts, errors))
    host.socket(responsesSocket(parts, socketErrorFormat(lastFrames)))
    for (const route of storedRoutes(parts, errors)) host.route(route)
    const sealKeys = new SharedKeys(host.shared('seal-keys', SharedKeys.BYTES))
    const stores = { shared: host.find(SharedStore), own: host.find(Store), log: host.log }
    return {
      start: async () => {
        const { encryptionKey } = config
        if (host.isControl) sealKeys.publish(await loadKeys(stores, encryptionKey !== null))
        const configured = encryptionKey === null ? [] : [Buffer.from(encryptionKey)]
        parts.seal.useKeys([...configured, ...sealKeys.read()])
      },
      ready: () => {
        if (host.isData) runner?.start()
      },
      drain: () => runner?.stop(),
      stop: () => runner?.stop(),
    }
  },
})
