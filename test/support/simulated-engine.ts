/** A simulated engine on a free port, closed after the test. */
import { onTestFinished } from 'vitest'
import { defineValidator, type Logger } from '#kernel'
import { KernelConfigSchema } from '../../kernel/config/kernel-config.ts'
import { openListener } from '../../kernel/http/listener.ts'
import { type SimConfig, simConfig } from '../../plugins/sim/config.ts'
import { Engine } from '../../plugins/sim/engine.ts'
import { simRoutes } from '../../plugins/sim/routes.ts'

const silent: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silent,
}
const http = { ...defineValidator(KernelConfigSchema).parse({}).http, heartbeatMs: 0 }

/** Without delays unless the test sets them. */
export async function openSimulatedEngine(
  fields: Partial<SimConfig> = {},
): Promise<{ url: string; engine: Engine }> {
  const engine = new Engine(defineValidator(simConfig).parse({ ttftMs: 0, itlMs: 0, ...fields }))
  const { server, port } = await openListener(
    { host: '127.0.0.1', port: 0, routes: simRoutes(engine) },
    http,
    silent,
  )
  onTestFinished(() => server.close())
  return { url: `http://127.0.0.1:${port}`, engine }
}
