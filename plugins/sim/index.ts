/** A simulated inference engine behind a listener of its own: a real HTTP worker that needs no GPU. */
import { definePlugin, type Host, type Listener } from '#kernel'
import { type SimConfig, simConfig } from './config.ts'
import { Engine } from './engine.ts'
import { simRoutes } from './routes.ts'

const LAST_PORT = 65_535

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
        const { models, runtime, count } = config
        requirePorts(config)
        for (let index = 0; index < count; index += 1) {
          const { port } = await listenOne(host, config, index)
          if (index === 0 || config.listen.port === 0) {
            host.log.info({ host: config.listen.host, port, models, runtime }, 'simulated engine listens')
          }
        }
        if (count > 1)
          host.log.info({ count, first_port: config.listen.port }, 'all simulated engines listen')
      },
    }
  },
})

/** @throws when the ports would go beyond the last one */
function requirePorts({ count, listen }: SimConfig): void {
  const last = listen.port + count - 1
  if (listen.port === 0 || last <= LAST_PORT) return
  throw new Error(`plugins.sim.count: ${count} engines from port ${listen.port} on would end at ${last}`)
}

/** Each engine has counters, faults and a cache of its own. */
function listenOne(host: Host, config: SimConfig, index: number): Promise<Listener> {
  const { host: address, port } = config.listen
  return host.listen({
    host: address,
    port: port === 0 ? 0 : port + index,
    portSetting: 'plugins.sim.listen.port (--port of weir sim)',
    routes: simRoutes(new Engine(config)),
  })
}
