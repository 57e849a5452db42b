/** Functions that a module may import, with their signatures. */
import { HOST_FUNCTIONS, HOST_NAMESPACE } from '../../../wasm-sdk/abi.ts'
import { EXCHANGE_FUNCTIONS } from '../rewrite/exchange-functions.ts'
import type { FunctionType } from '../rewrite/module-parts.ts'
import { VALUE } from '../rewrite/opcodes.ts'
import { KERNEL_NAMESPACE } from '../rewrite/rewrite-module.ts'

type ValueType = 'i32' | 'i64' | 'f32' | 'f64' | 'other'

export interface Signature {
  readonly parameters: readonly ValueType[]
  readonly results: readonly ValueType[]
}

/** The AssemblyScript compiler imports `abort` from it. */
const ABORT_NAMESPACE = 'env'

/** Kernel functions that the gateway implements: parameters, arrow, results. */
const KERNEL: Readonly<Record<string, string>> = {
  error_get: '-> i64',
  config_get: 'i64 -> i64',
  var_get: 'i64 -> i64',
  var_set: 'i64 i64 ->',
  log_trace: 'i64 ->',
  log_debug: 'i64 ->',
  log_info: 'i64 ->',
  log_warn: 'i64 ->',
  log_error: 'i64 ->',
  get_log_level: '-> i32',
}

const ALLOWED: ReadonlyMap<string, ReadonlyMap<string, Signature>> = new Map([
  [
    KERNEL_NAMESPACE,
    new Map([
      ...Object.entries(EXCHANGE_FUNCTIONS).map(([name, type]) => [name, signatureOf(type)] as const),
      ...Object.entries(KERNEL).map(([name, text]) => [name, toSignature(text)] as const),
    ]),
  ],
  [
    HOST_NAMESPACE,
    new Map(
      Object.entries(HOST_FUNCTIONS).map(
        ([name, { parameters }]) => [name, userSignature(parameters.length)] as const,
      ),
    ),
  ],
  [ABORT_NAMESPACE, new Map([['abort', toSignature('i32 i32 i32 i32 ->')]])],
])

/** Null if the gateway does not provide the function. */
export function offeredSignature(module: string, name: string): Signature | null {
  return ALLOWED.get(module)?.get(name) ?? null
}

/** The function of the namespace with the longest common prefix; null below three characters. */
export function nearestName(module: string, name: string): string | null {
  let nearest: string | null = null
  let most = 2
  for (const known of ALLOWED.get(module)?.keys() ?? []) {
    let shared = 0
    while (shared < known.length && known[shared] === name[shared]) shared++
    if (shared > most) {
      most = shared
      nearest = known
    }
  }
  return nearest
}

export function sameSignature(a: Signature, b: Signature): boolean {
  return showSignature(a) === showSignature(b)
}

export function showSignature({ parameters, results }: Signature): string {
  return `(${parameters.join(', ')}) -> (${results.join(', ')})`
}

export function signatureOf({ parameters, results }: FunctionType): Signature {
  return { parameters: parameters.map(valueName), results: results.map(valueName) }
}

function valueName(value: number): ValueType {
  const names: readonly ValueType[] = ['i32', 'i64', 'f32', 'f64']
  return names.find((name) => name !== 'other' && VALUE[name] === value) ?? 'other'
}

function toSignature(text: string): Signature {
  const [parameters, results] = text.split('->').map((side) => side.split(' ').filter((part) => part !== ''))
  return { parameters: parameters as ValueType[], results: results as ValueType[] }
}

function userSignature(parameters: number): Signature {
  return { parameters: Array.from({ length: parameters }, () => 'i64' as const), results: ['i64'] }
}
