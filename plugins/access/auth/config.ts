/** The auth section of the configuration file: which keys open which routes. */
import { type Static, Type } from '#kernel'

const jwtConfig = Type.Object(
  {
    issuer: Type.String({ minLength: 1, description: 'The claim `iss` of every token, compared as it is.' }),
    audience: Type.String({ minLength: 1, description: 'What the claim `aud` of every token must hold.' }),
    jwksUrl: Type.String({
      minLength: 1,
      description: "The issuer's key set (`jwks_uri` of OpenID discovery): https, or http on loopback.",
    }),
    algorithms: Type.Array(
      Type.Enum(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']),
      { default: ['RS256', 'PS256', 'ES256', 'EdDSA'], minItems: 1, description: 'Accepted signatures.' },
    ),
    clockSkewMs: Type.Integer({
      default: 30_000,
      minimum: 0,
      maximum: 600_000,
      description: 'How far the clocks of issuer and gateway may be apart, milliseconds.',
    }),
    tenantClaim: Type.String({
      default: 'sub',
      minLength: 1,
      description:
        'The claim that names the tenant, which becomes `jwt:<claim>`; a token without it is refused.',
    }),
    roleClaim: Type.String({
      default: 'roles',
      minLength: 1,
      description: 'The claim with roles: a list, or a text with blanks between.',
    }),
    adminRole: Type.String({
      default: 'admin',
      minLength: 1,
      description: 'The role that opens the control plane.',
    }),
    cacheMs: Type.Integer({
      default: 600_000,
      minimum: 1000,
      description: 'How long a fetched key set is good, milliseconds.',
    }),
    refetchMs: Type.Integer({
      default: 30_000,
      minimum: 100,
      description: 'Least time between fetches for unknown keys, and after a failed one, milliseconds.',
    }),
    timeoutMs: Type.Integer({
      default: 5000,
      minimum: 100,
      maximum: 60_000,
      description: 'Limit of one fetch of the key set, milliseconds.',
    }),
  },
  {
    additionalProperties: false,
    description:
      'Tokens of one issuer, beside keys. They open the serving routes, and with the admin role the control plane.',
  },
)

/** The part about tokens with every default filled in. */
export type JwtConfig = Static<typeof jwtConfig>

export const authConfig = Type.Object(
  {
    apiKey: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      secret: true,
      description:
        'Shared gateway key. Opens the serving routes, and the control plane while no control-plane key is configured.',
    }),
    tenantKeys: Type.Array(Type.String(), {
      default: [],
      secret: true,
      description: 'Keys of single tenants, each `tenant_id:key`. They open the serving routes only.',
    }),
    controlPlaneKeys: Type.Array(Type.String(), {
      default: [],
      secret: true,
      description:
        'Keys of operators, each `id:name:role:key` with role `admin` or `user`. With one configured, the control plane takes nothing else.',
    }),
    jwt: Type.Optional(jwtConfig),
    auditLog: Type.Boolean({
      default: true,
      description: 'One log line, level info, per decision about a control-plane request.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type AuthConfig = Static<typeof authConfig>
