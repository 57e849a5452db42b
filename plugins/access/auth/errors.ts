/** Errors of authentication. None of them contains a key. */
import { defineErrors } from '#kernel'

export const authErrors = defineErrors('auth', {
  invalid_api_key: {
    kind: 'unauthorized',
    source: 'client',
    text: () => 'missing or invalid API key; send it as `Authorization: Bearer <key>`',
  },
  invalid_token: {
    kind: 'unauthorized',
    source: 'client',
    text: (reason: string) => `the token was rejected: ${reason}`,
  },
  credential_expired: {
    kind: 'unauthorized',
    source: 'client',
    text: (expiresAtMs: number) =>
      `the API key expired at ${new Date(expiresAtMs).toISOString()}; use another key`,
  },
  insufficient_role: {
    kind: 'forbidden',
    source: 'client',
    text: () => 'the control plane requires a key with role admin',
  },
  open_after_reload: {
    kind: 'conflict',
    source: 'client',
    text: () =>
      'plugins.auth would have no apiKey, tenantKeys, controlPlaneKeys, keys or jwt, which opens every route; keep one credential, or set kernel.auth to off and restart',
  },
  keys_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the key cannot be checked: the store of the keys is unavailable; retry later',
  },
  identity_keys_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the token cannot be verified: the key set of its issuer is unavailable; retry later',
  },
})

/** Codes of rejected credentials, which the audit log records. */
export const DENIALS: ReadonlySet<string> = new Set([
  'invalid_api_key',
  'invalid_token',
  'credential_expired',
  'insufficient_role',
  'route_not_allowed',
])
