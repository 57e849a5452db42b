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
})
