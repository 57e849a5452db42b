/** The trusted-proxies section of the configuration file: whose word about clients is taken. */
import { Type } from '#kernel'

export const trustedProxiesConfig = Type.Object(
  {
    addresses: Type.Array(Type.String(), {
      minItems: 1,
      description: 'Addresses and networks of the proxies in front of the gateway, such as 10.0.0.0/8.',
    }),
    header: Type.String({
      default: 'x-forwarded-for',
      pattern: '^[a-z0-9-]{1,64}$',
      description:
        'Where they name the client, in lower case: a list to which each proxy adds, or one address. Fixed at boot.',
    }),
  },
  { additionalProperties: false },
)
