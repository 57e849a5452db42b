/** Configuration section of the auth plugin. */
import { integer, type Static, Type } from '#kernel'
import { keyEntryMembers } from '#shared'

const jwtConfig = Type.Object(
  {
    issuer: Type.String({ minLength: 1, description: 'Required `iss` claim, compared exactly.' }),
    audience: Type.String({ minLength: 1, description: 'Required member of the `aud` claim.' }),
    jwksUrl: Type.String({
      minLength: 1,
      description: 'URL of the key set (`jwks_uri` of OpenID discovery); https, or http on loopback.',
    }),
    algorithms: Type.Array(
      Type.Enum(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']),
      {
        default: ['RS256', 'PS256', 'ES256', 'EdDSA'],
        minItems: 1,
        description: 'Accepted signature algorithms.',
      },
    ),
    clockSkewMs: integer(
      { default: 30_000, min: 0, max: 600_000 },
      'Tolerated clock difference to the issuer, in milliseconds.',
    ),
    tenantClaim: Type.String({
      default: 'sub',
      minLength: 1,
      description: 'Claim with the tenant name; the tenant is `jwt:<claim>`. Tokens without it are rejected.',
    }),
    roleClaim: Type.String({
      default: 'roles',
      minLength: 1,
      description: 'Claim with the roles: a list, or a space-separated string.',
    }),
    adminRole: Type.String({
      default: 'admin',
      minLength: 1,
      description: 'Role that grants access to the control plane.',
    }),
    cacheMs: integer(
      { default: 600_000, min: 1000 },
      'Time for which a fetched key set is cached, in milliseconds.',
    ),
    refetchMs: integer(
      { default: 30_000, min: 100 },
      'Minimum interval between fetches for unknown keys and after a failed fetch, in milliseconds.',
    ),
    timeoutMs: integer(
      { default: 5000, min: 100, max: 60_000 },
      'Timeout for fetching the key set, in milliseconds.',
    ),
  },
  {
    additionalProperties: false,
    description:
      'Tokens of one issuer, beside keys. They open the serving routes, and with the admin role the control plane.',
  },
)

/** The jwt section with all defaults. */
export type JwtConfig = Static<typeof jwtConfig>

const listedKey = Type.Object(
  {
    id: Type.String({
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
      description: 'Name of the key in logs and usage; letters, digits, dots, hyphens and underscores.',
    }),
    ...keyEntryMembers,
    key: Type.Optional(
      Type.String({
        minLength: 1,
        secret: true,
        description: 'The key; usually a reference: `{ $file: PATH }`.',
      }),
    ),
    digest: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{64}$',
        secret: true,
        description:
          'Instead of the key: its SHA-256 in lower-case hex, as `printf %s KEY | sha256sum` prints it. For random keys only: a short key can be guessed from it.',
      }),
    ),
  },
  { additionalProperties: false },
)

export const authConfig = Type.Object(
  {
    apiKey: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      secret: true,
      description:
        'Shared key. Accepted on serving routes, and on the control plane if no control-plane key is configured.',
    }),
    tenantKeys: Type.Array(Type.String(), {
      default: [],
      secret: true,
      description: 'Keys by tenant, each `tenant_id:key`. They are accepted on serving routes only.',
    }),
    controlPlaneKeys: Type.Array(Type.String(), {
      default: [],
      secret: true,
      description:
        'Keys of operators, each `id:name:role:key` with role `admin` or `user`. With one configured, the control plane takes nothing else.',
    }),
    keys: Type.Array(listedKey, {
      default: [],
      description:
        'Keys of tenants and operators with id, expiry and restrictions; several per owner. One of an operator counts as a control-plane key.',
    }),
    jwt: Type.Optional(jwtConfig),
    auditLog: Type.Boolean({
      default: true,
      description: 'Logs every decision about a control-plane request at level info.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type AuthConfig = Static<typeof authConfig>
