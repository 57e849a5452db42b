/** The simulated inference engine: a worker over HTTP or gRPC that needs no GPU. */
import { definePlugin, type Host, Tokenizers } from '#kernel'
import { hostProblem } from '#shared'
import { type SimConfig, simConfig } from './config.ts'
import { Engine } from './engine.ts'
import type { GrpcEngine } from './grpc-engine.ts'
import { PERSONALITIES } from './personality.ts'
import { simRoutes } from './routes.ts'

const LAST_PORT = 65_535

export default definePlugin({
  manifest: {
    name: 'sim',
    version: '0.1.0',
    description: 'A simulated inference engine for demos, tests and benchmarks without a GPU.',
    usesOptionally: [Tokenizers],
    config: simConfig,
  },
  *check({ count, listen, protocol, runtime }) {
    if (protocol === 'grpc' && !PERSONALITIES[runtime].hasGrpc)
      yield { path: ['runtime'], text: `must be an engine with gRPC (got ${runtime})` }
    const wrong = hostProblem(listen.host)
    if (wrong !== null) yield { path: ['listen', 'host'], text: wrong }
    const last = listen.port + count - 1
    if (listen.port !== 0 && last > LAST_PORT)
      yield {
        path: ['count'],
        text: `must leave all ports at most ${LAST_PORT}: ${count} engines from port ${listen.port} on would end at ${last}`,
      }
  },
  register(host, config) {
    const { protocol, count } = config
    const overGrpc: GrpcEngine[] = []
    return {
      async start() {
        // On control only, since all requests must share counters, faults and answers.
        if (!host.isControl) return
        if (protocol === 'grpc' && host.find(Tokenizers) === undefined)
          throw new Error('plugins.sim.protocol: grpc requires plugin tokenizers; enable it')
        for (let index = 0; protocol === 'http' && index < count; index += 1)
          logListening(host, config, index, await listenOverHttp(host, config, index))
      },
      async ready() {
        // Tokenizers are loaded once all plugins have started.
        const tokenizers = host.find(Tokenizers)
        if (!host.isControl || protocol !== 'grpc' || tokenizers === undefined) return
        // Loaded on demand, since it imports a gRPC server.
        const { GrpcEngine } = await import('./grpc-engine.ts')
        for (let index = 0; index < count; index += 1) {
          const engine = new GrpcEngine(config)
          overGrpc.push(engine)
          const port = await engine.listen(tokenizers, config.listen.host, portOf(config, index))
          logListening(host, config, index, port)
        }
      },
      stop() {
        for (const engine of overGrpc) engine.close()
      },
    }
  },
})

/** Each engine has counters, faults and a cache of its own. @returns its port */
async function listenOverHttp(host: Host, config: SimConfig, index: number): Promise<number> {
  const { port } = await host.listen({
    host: config.listen.host,
    port: portOf(config, index),
    portSetting: 'plugins.sim.listen.port (--port of weir sim)',
    routes: simRoutes(new Engine(config)),
  })
  return port
}

/** 0 selects any free port. */
function portOf({ listen }: SimConfig, index: number): number {
  return listen.port === 0 ? 0 : listen.port + index
}

function logListening(
  host: Host,
  { listen, models, runtime, protocol, count }: SimConfig,
  index: number,
  port: number,
) {
  if (index === 0 || listen.port === 0)
    host.log.info({ host: listen.host, port, models, runtime, protocol }, 'simulated engine listening')
  if (index > 0 && index === count - 1)
    host.log.info({ count, first_port: listen.port }, 'all simulated engines listening')
}
