/** A port of its own for clients that the server library does not serve: HTTP/1.0, absolute targets, long pauses. */
import { hostProblem } from '#contracts'
import { ClientAddresses, definePlugin } from '#kernel'
import { legacyHttpConfig } from './config.ts'
import type { Front } from './front.ts'

export default definePlugin({
  manifest: {
    name: 'legacy-http',
    version: '0.1.0',
    description: 'A second port for HTTP/1.0, absolute request targets and long idle connections.',
    usesOptionally: [ClientAddresses],
    config: legacyHttpConfig,
  },
  *check(config, { port, tls }) {
    const wrong = hostProblem(config.host)
    if (wrong !== null) yield { path: ['host'], text: wrong }
    if (port === 0) yield { path: [], text: 'hands requests on to kernel.port, which must not be 0 then' }
    if (port === config.port) yield { path: ['port'], text: `must differ from kernel.port, got ${port}` }
    if (tls?.clientCaFile !== undefined) {
      const text = 'cannot hand on certificates of clients: leave the plugin out, or kernel.tls.clientCaFile'
      yield { path: [], text }
    }
  },
  register(host, config) {
    // One listener for the process; the threads that serve streams do nothing for it.
    if (!host.isControl) return
    const clients = host.find(ClientAddresses) ?? null
    let front: Front | null = null
    return {
      async start() {
        const { Front } = await import('./front.ts')
        front = new Front(host, config, clients)
        await front.listen()
        host.log.info({ host: config.host, port: config.port }, 'HTTP/1.0 is served here')
      },
      drain: (deadlineMs) => front?.drain(deadlineMs),
      stop: () => front?.close(),
    }
  },
})
