/** Tells clients apart behind the operator's own proxies: limits, access lines, traces and modules see the client. */

import { ClientAddresses, definePlugin } from '#kernel'
import { networkProblems, readNetworks } from '#shared'
import { trustedProxiesConfig } from './config.ts'
import { ProxyChain } from './proxy-chain.ts'

export default definePlugin({
  manifest: {
    name: 'trusted-proxies',
    version: '0.1.0',
    description: 'Takes the address of clients from what trusted proxies in front of the gateway say.',
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
