/** The trusted-proxies plugin: takes the client address for limits, logs, traces and modules from trusted proxies. */

import { ClientAddresses, definePlugin } from '#kernel'
import { networkProblems, readNetworks } from '#shared'
import { trustedProxiesConfig } from './config.ts'
import { ProxyChain } from './proxy-chain.ts'

export default definePlugin({
  manifest: {
    name: 'trusted-proxies',
    version: '0.1.0',
    description: 'Takes client addresses from the forwarding headers of trusted proxies.',
    provides: [ClientAddresses],
    config: trustedProxiesConfig,
    reloads: ['addresses'],
  },
  check: ({ addresses }) => networkProblems(['addresses'], addresses),
  register(host, config) {
    const chain = new ProxyChain(config.header, readNetworks(config.addresses))
    host.provide(ClientAddresses, chain)
    return { reload: ({ addresses }) => chain.use(readNetworks(addresses)) }
  },
})
