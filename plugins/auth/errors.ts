/** Errors of authentication: refused callers, and keys that are refused at start-up. None of them shows a key. */
import { defineErrors } from '#kernel'

export const authErrors = defineErrors('auth', {
  invalid_credential: {
    kind: 'unauthorized',
    source: 'client',
    text: () => 'missing or invalid API key; send it as `Authorization: Bearer <key>`',
  },
  insufficient_role: {
    kind: 'forbidden',
    source: 'client',
    text: () => 'this key may not use the control plane; the role admin is required',
  },
  identity_keys_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the token cannot be checked now: the keys of its issuer are out of reach',
  },
  insecure_jwks_url: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'auth.jwt.jwksUrl must be an https URL, or http on loopback',
  },
  malformed_api_key: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'auth.apiKey has blanks at its ends, which no request header can carry',
  },
  malformed_tenant_key: {
    kind: 'internal',
    source: 'gateway',
    text: (index: number) =>
      `auth.tenantKeys[${index}] is not of the form tenant_id:key, both non-empty and without blanks at their ends`,
  },
  duplicate_tenant_key: {
    kind: 'internal',
    source: 'gateway',
    text: (index: number) => `auth.tenantKeys[${index}] repeats a tenant id or a key that came before`,
  },
})
