/** Configuration section of the trusted-proxies plugin. */
import { Type } from '#kernel'

export const trustedProxiesConfig = Type.Object(
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
