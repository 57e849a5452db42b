/** A port of its own for clients that the server library does not serve: HTTP/1.0, absolute targets, long pauses. */
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
  register(host, config) {
    // One listener for the process; the threads that serve streams do nothing for it.
    if (!host.isControl) return
    const { port, tls } = host.kernelConfig
    if (port === 0)
      throw new Error('plugins.legacy-http hands requests on to kernel.port, which must not be 0 then')
    if (port === config.port)
      throw new Error(`plugins.legacy-http.port must differ from kernel.port, got ${port}`)
    if (tls?.clientCaFile !== undefined)
      throw new Error(
        'plugins.legacy-http cannot hand on certificates of clients: leave the plugin out, or kernel.tls.clientCaFile',
      )
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
