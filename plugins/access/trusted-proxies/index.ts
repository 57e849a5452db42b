/** The trusted-proxies plugin: takes the client address for limits, logs, traces and modules from trusted proxies. */
import { ClientAddresses, definePlugin, Type } from '#kernel'
import { networkProblems, readNetworks } from '#shared'
import { ProxyChain } from './proxy-chain.ts'

const trustedProxiesConfig = Type.Object(
  {
    addresses: Type.Array(Type.String(), {
      minItems: 1,
      description: 'Addresses and networks of trusted proxies, such as 10.0.0.0/8.',
    }),
    header: Type.String({
      default: 'x-forwarded-for',
      pattern: '^[a-z0-9-]{1,64}$',
      description:
        'Header with the client address, lower-case: a list that each proxy extends, or one address. Requires a restart.',
    }),
  },
  { additionalProperties: false },
)

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
