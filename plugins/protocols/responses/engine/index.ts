/** Generations over workers that speak Responses themselves. */
import { definePlugin, Generations } from '#kernel'
import { responsesEngineConfig } from './config.ts'
import { responsesEngine } from './responses-engine.ts'

export default definePlugin({
  manifest: {
    name: 'responses-engine',
    version: '0.1.0',
    description: 'Generations over HTTP workers that speak the Responses format',
    uses: [Generations],
    config: responsesEngineConfig,
  },
  register(host, config) {
    host.use(Generations).addEngine(responsesEngine(config))
  },
})
