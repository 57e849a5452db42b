/** The simulated inference engine: a worker over HTTP or gRPC that needs no GPU. */
import { definePlugin, type Host, type TokenizerService, Tokenizers } from '#kernel'
import { hostProblem } from '#shared'
import { type SimConfig, simConfig } from './config.ts'
import { Engine } from './engine.ts'
import type { GrpcEngine } from './grpc-engine.ts'
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
  *check({ count, listen }) {
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
    const overGrpc: GrpcEngine[] = []
    return {
      async start() {
        // On control only, since all requests must share counters, faults and answers.
        if (!host.isControl) return
        if (config.protocol === 'http') await listenAll(host, config)
        else if (host.find(Tokenizers) === undefined)
          throw new Error('plugins.sim.protocol: grpc requires plugin tokenizers; enable it')
      },
      async ready() {
        // Tokenizers are loaded once all plugins have started.
        const tokenizers = host.find(Tokenizers)
        if (host.isControl && config.protocol === 'grpc' && tokenizers !== undefined)
          await listenOverGrpc(host, config, tokenizers, overGrpc)
      },
      stop() {
        for (const engine of overGrpc) engine.close()
      },
    }
  },
})

async function listenAll(host: Host, config: SimConfig): Promise<void> {
  for (let index = 0; index < config.count; index += 1)
    logListening(host, config, index, (await listenOne(host, config, index)).port)
}

async function listenOverGrpc(
  host: Host,
  config: SimConfig,
  tokenizers: TokenizerService,
  engines: GrpcEngine[],
): Promise<void> {
  // Loaded on demand, since it imports a gRPC server.
  const { GrpcEngine } = await import('./grpc-engine.ts')
  for (let index = 0; index < config.count; index += 1) {
    const engine = new GrpcEngine(config)
    engines.push(engine)
    const { host: address, port } = config.listen
    logListening(host, config, index, await engine.listen(tokenizers, address, port === 0 ? 0 : port + index))
  }
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

/** Each engine has counters, faults and a cache of its own. */
function listenOne(host: Host, config: SimConfig, index: number): Promise<{ port: number }> {
  const { host: address, port } = config.listen
  return host.listen({
    host: address,
    port: port === 0 ? 0 : port + index,
    portSetting: 'plugins.sim.listen.port (--port of weir sim)',
    routes: simRoutes(new Engine(config)),
  })
}
