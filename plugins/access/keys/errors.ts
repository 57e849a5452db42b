/** Errors of the keys plugin. */
import { defineErrors } from '#kernel'

/** Values of clients are shown shortened. */
const shown = (value: string) => JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value)

export const keysErrors = defineErrors('keys', {
  no_admin_key: {
    kind: 'internal',
    source: 'gateway',
    text: () =>
      'needs a key in the configuration that opens the control plane, where keys are created: set plugins.auth.apiKey, or an entry of plugins.auth.keys with a principal and role admin',
  },
  key_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) => `no key has the id ${shown(id)}`,
  },
  key_in_configuration: {
    kind: 'conflict',
    source: 'client',
    text: (id: string, setting: string) =>
      `the key ${shown(id)} is in the configuration file and cannot be revoked here; remove ${setting} from the file and reload`,
  },
  invalid_value: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, problem: string) => `'${field}' ${problem}`,
  },
  too_many_keys: {
    kind: 'conflict',
    source: 'client',
    text: (limit: number) =>
      `${limit} keys are stored, which is the limit (plugins.keys.maxKeys); revoke some`,
  },
  keys_not_loaded: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the stored keys are not known: the store is unavailable; retry later',
  },
})
