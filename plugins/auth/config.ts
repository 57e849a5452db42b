/** The auth section of the configuration file: which keys open which routes. */
import { type Static, Type } from '#kernel'

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
    auditLog: Type.Boolean({
      default: true,
      description: 'One log line, level info, per decision about a control-plane request.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type AuthConfig = Static<typeof authConfig>
