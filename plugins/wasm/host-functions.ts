/** The host functions of our interface, synchronous on the pool thread. None throws: what goes wrong gives 0. */
import { createHmac, hash, randomBytes } from 'node:crypto'
import type { CallContext } from '@extism/extism'
import type { HostFunctionName } from '../../wasm-sdk/abi.ts'
import type { CallScope, GuestSurroundings } from './guest-instance.ts'
import { MAX_KEY_BYTES, NOT_COUNTED, stateKey } from './shared-state.ts'

const MAX_RANDOM_BYTES = 1_024
/** Offset 0 as a value. */
const NOTHING = new Uint8Array(0)
const METRIC_NAME = /^[a-z][a-z0-9_]{0,63}$/

type HostCall = (context: CallContext, ...args: bigint[]) => bigint

/** Functions bound to one instance of one module. */
export function hostFunctions(
  module: string,
  scope: CallScope,
  surroundings: GuestSurroundings,
): Record<HostFunctionName, HostCall> {
  const { state } = surroundings
  const give = (context: CallContext, bytes: Uint8Array): bigint => {
    scope.blockBytes += bytes.length
    // A block takes over the whole memory behind an array: it must be the array's own.
    return context.store(Uint8Array.from(bytes))
  }
  const keyOf = (context: CallContext, offset: bigint): Uint8Array | null => {
    const key = textAt(context, offset)
    if (key === null || Buffer.byteLength(key) > MAX_KEY_BYTES) return null
    return stateKey(module, scope.tenant, key)
  }
  return {
    kv_get: guarded(0n, (context, offset) => {
      const key = keyOf(context, offset)
      const value = key === null ? null : state.get(key)
      return value === null ? 0n : give(context, value)
    }),
    kv_set: guarded(0n, (context, offset, valueOffset, ttlMs) => {
      const key = keyOf(context, offset)
      const value = bytesAt(context, valueOffset) ?? NOTHING
      return key !== null && state.set(key, value, Number(ttlMs)) ? 1n : 0n
    }),
    kv_delete: guarded(0n, (context, offset) => {
      const key = keyOf(context, offset)
      return key !== null && state.delete(key) ? 1n : 0n
    }),
    kv_incr: guarded(NOT_COUNTED, (context, offset, delta, ttlMs) => {
      const key = keyOf(context, offset)
      return key === null ? NOT_COUNTED : state.increment(key, delta, Number(ttlMs))
    }),
    now_ms: () => BigInt(Date.now()),
    random_bytes: guarded(0n, (context, count) =>
      count > 0n && count <= MAX_RANDOM_BYTES ? give(context, randomBytes(Number(count))) : 0n,
    ),
    sha256: guarded(0n, (context, offset) => {
      const data = bytesAt(context, offset) ?? NOTHING
      return give(context, hash('sha256', data, 'buffer'))
    }),
    hmac_sha256: guarded(0n, (context, keyOffset, offset) => {
      const key = bytesAt(context, keyOffset) ?? NOTHING
      const data = bytesAt(context, offset) ?? NOTHING
      return give(context, createHmac('sha256', key).update(data).digest())
    }),
    metric_inc: guarded(0n, (context, offset, delta) => {
      const name = textAt(context, offset)
      if (name === null || !METRIC_NAME.test(name) || delta < 0n) return 0n
      if (!surroundings.mayCount(module, name)) return 0n
      scope.counted.set(name, (scope.counted.get(name) ?? 0) + Number(delta))
      return 1n
    }),
  }
}

/** An exception here would end the guest's call. */
function guarded(otherwise: bigint, call: HostCall): HostCall {
  return (context, ...args) => {
    try {
      return call(context, ...args)
    } catch {
      return otherwise
    }
  }
}

function bytesAt(context: CallContext, offset: bigint): Uint8Array | null {
  const block = offset === 0n ? null : context.read(offset)
  return block === null ? null : new Uint8Array(block.arrayBuffer())
}

function textAt(context: CallContext, offset: bigint): string | null {
  const bytes = bytesAt(context, offset)
  return bytes === null ? null : Buffer.from(bytes).toString('utf8')
}
