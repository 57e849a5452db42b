/** Command-line flags and environment variables of the auth plugin. */
import type { ConfigFlag } from '#kernel'

export const authFlags: readonly ConfigFlag[] = [
  {
    flag: 'api-key',
    env: 'WEIR_API_KEY',
    path: ['plugins', 'auth', 'apiKey'],
    kind: 'text',
    placeholder: 'key',
    help: 'key that clients must send; prefer the environment variable',
    isSecret: true,
  },
  {
    flag: 'tenant-api-key',
    path: ['plugins', 'auth', 'tenantKeys'],
    kind: 'list',
    placeholder: 'id:key',
    help: 'key of a tenant; repeatable',
    isSecret: true,
  },
  {
    flag: 'control-plane-api-keys',
    env: 'WEIR_CONTROL_PLANE_API_KEYS',
    path: ['plugins', 'auth', 'controlPlaneKeys'],
    kind: 'list',
    placeholder: 'id:name:role:key',
    help: 'key for administrative routes, role admin or user; repeatable',
    isSecret: true,
  },
]
