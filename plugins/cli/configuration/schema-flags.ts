/** Flags whose kind, help text and secrecy come from the schema of their setting, and the flags and environment variables of the kernel. */
import type { ConfigFlag, TSchema } from '#kernel'
import { KernelConfigSchema } from '../../../kernel/config/kernel-config.ts'
import { branches, isSecret, nodeAt, type SchemaNode, toNode } from './schema-node.ts'

/** `path` is that of the setting in its section. */
type SchemaFlag = Pick<ConfigFlag, 'flag' | 'env' | 'placeholder' | 'path'>

const KIND_OF_TYPE: ReadonlyMap<unknown, ConfigFlag['kind']> = new Map([
  ['integer', 'integer'],
  ['number', 'number'],
  ['array', 'list'],
  ['boolean', 'switch'],
])

/** @param base path of the section in the file, such as `['plugins', 'sim']` */
export function flagsOfSchema(
  schema: TSchema,
  base: readonly string[],
  rows: readonly SchemaFlag[],
): ConfigFlag[] {
  return rows.map((row) => {
    const node = nodeAt(toNode(schema), row.path) ?? {}
    const kind = KIND_OF_TYPE.get(node.type) ?? 'text'
    return { ...row, path: [...base, ...row.path], kind, help: helpOf(node), isSecret: isSecret(node) }
  })
}

/** In the style of the other options: without a capital and a final stop. */
function helpOf({ description = '', default: value, ...node }: SchemaNode): string {
  const text = description.charAt(0).toLowerCase() + description.slice(1).replace(/\.$/, '')
  const values = branches(node).map((branch) => branch.const)
  const choice = values.includes(undefined) ? '' : `; one of ${values.join(', ')}`
  const fallback = value === undefined || value === null ? '' : ` (default: ${value})`
  return text + choice + fallback
}

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
