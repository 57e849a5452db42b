/** Configuration section of the mesh-valkey plugin. */
import { integer, type Static, Type } from '#kernel'

export const valkeyConfig = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      secret: true,
      pattern: '^(redis|rediss|valkey|valkeys)://',
      description:
        'Server, such as `redis://user:password@host:6379/0`, `rediss:` for TLS; usually a reference: `{ "$env": "VALKEY_URL" }`. Valkey or Redis from 7.2. With `sentinels`, its host is not used: they name the primary.',
    }),
    sentinels: Type.Array(
      Type.String({ pattern: '^(\\[[0-9A-Fa-f:.]+\\]|[^\\s:/@\\[\\]]+)(:[0-9]{1,5})?$' }),
      {
        default: [],
        description: 'Addresses of Sentinel, such as `sentinel-1:26379`, which name the primary of `name`.',
      },
    ),
    name: Type.String({
      minLength: 1,
      default: 'mymaster',
      description: 'What the sentinels call the primary.',
    }),
    sentinelPassword: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      secret: true,
      description: 'Password of the sentinels.',
    }),
    cluster: Type.Boolean({
      default: false,
      description: '`url` names a member of a cluster, of which the one with the keys of the mesh is used.',
    }),
    caFile: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      reads: 'start',
      description: 'PEM file of the trusted certificate authorities for TLS, instead of the default ones.',
    }),
    timeoutMs: integer(
      { default: 2_000, min: 100, max: 60_000 },
      'Maximum time of a command, in milliseconds; then the connection is opened anew.',
    ),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type ValkeyConfig = Static<typeof valkeyConfig>
