/** The responses plugin: the stateful responses API over any worker. */
import { definePlugin, History, ToolLoop } from '#kernel'
import { responsesConfig } from './config.ts'
import { responsesErrorFormat } from './error-format.ts'
import { SHARED_KEY_BYTES, sharedKey, TextSeal } from './prompt/sealed-text.ts'
import { createRoute } from './routes.ts'
import type { ResponseRun } from './run/response-run.ts'
import type { ServeParts } from './run/serve-create.ts'

export default definePlugin({
  manifest: {
    name: 'responses',
    version: '0.1.0',
    description: 'The responses API: state on the server, tools on the server, streams that resume.',
    usesOptionally: [History, ToolLoop],
    config: responsesConfig,
  },
  register(host, config) {
    const runs = host.slot<ResponseRun>()
    const key = config.encryptionKey
    const parts: ServeParts = {
      host,
      config,
      runs,
      history: host.find(History),
      toolLoop: host.find(ToolLoop),
      seal: new TextSeal(
        key === null ? sharedKey(host.shared('seal-key', SHARED_KEY_BYTES)) : Buffer.from(key),
      ),
    }
    const errors = responsesErrorFormat((request, error) => runs.get(request)?.lastFrames(error))
    host.route(createRoute(parts, errors))
  },
})
