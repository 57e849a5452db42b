/** The kernel's flags and environment variables. */
import type { ConfigFlag } from '#kernel'
import { KernelConfigSchema } from '../../../kernel/config/kernel-config.ts'
import { flagsOfSchema } from './schema-flags.ts'

/** Precedence: flag, then environment, then file, then default. */
export const CONFIG_FLAGS: readonly ConfigFlag[] = Object.freeze([
  ...flagsOfSchema(
    KernelConfigSchema,
    ['kernel'],
    [
      { flag: 'host', env: 'WEIR_HOST', placeholder: 'address', path: ['host'] },
      { flag: 'port', env: 'WEIR_PORT', placeholder: 'port', path: ['port'] },
      { flag: 'threads', env: 'WEIR_THREADS', placeholder: 'count', path: ['threads'] },
      { flag: 'policy', env: 'WEIR_POLICY', placeholder: 'name', path: ['policy'] },
      { flag: 'prefill-policy', placeholder: 'name', path: ['prefillPolicy'] },
      { flag: 'decode-policy', placeholder: 'name', path: ['decodePolicy'] },
      { flag: 'log-level', env: 'WEIR_LOG_LEVEL', placeholder: 'level', path: ['log', 'level'] },
      { flag: 'access-log', path: ['log', 'access'] },
      { flag: 'grace-ms', placeholder: 'ms', path: ['shutdown', 'graceMs'] },
    ],
  ),
  {
    flag: 'auth-off',
    path: ['kernel', 'auth'],
    kind: 'constant',
    constant: 'off',
    help: 'serve every route without a key',
  },
])
