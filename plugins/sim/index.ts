/** A simulated inference engine behind a listener of its own: a real HTTP worker that needs no GPU. */
import { definePlugin } from '#kernel'
import { simConfig } from './config.ts'
import { Engine } from './engine.ts'
import { simRoutes } from './routes.ts'

export default definePlugin({
  manifest: {
    name: 'sim',
    version: '0.1.0',
    description: 'A simulated inference engine, for trying out, testing and measuring without a GPU.',
    config: simConfig,
  },
  register(host, config) {
    return {
      async start() {
        // One engine per process: its counters and its script would mean nothing if each thread had its own.
        if (!host.isControl) return
        const { host: address, port } = config.listen
        const listener = await host.listen({
          host: address,
          port,
          portSetting: 'plugins.sim.listen.port (--port of weir sim)',
          routes: simRoutes(new Engine(config)),
        })
        host.log.info(
          { host: listener.host, port: listener.port, models: config.models, runtime: config.runtime },
          'simulated engine listens',
        )
      },
    }
  },
})
