/** Errors of authentication. None of them contains a key. */
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
    text: () => 'the control plane requires a key with role admin',
  },
  identity_keys_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the token cannot be verified: the key set of its issuer is unavailable; retry later',
  },
})
