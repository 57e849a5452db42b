/** The host functions as Extism takes them, over the state of a runner; none of them throws. */
import { createHash, createHmac } from 'node:crypto'
import type { CallContext } from '@extism/extism'
import { HOST_NAMESPACE, type HostFunctionName } from './abi.ts'
import { ABORT_NAMESPACE, KERNEL_NAMESPACE } from './host-imports.ts'
import type { HostState } from './host-state.ts'

export type HostFunctionTable = Record<
  string,
  Record<string, (context: CallContext, ...parameters: never[]) => unknown>
>

type UserFunctions = Record<HostFunctionName, (context: CallContext, ...parameters: bigint[]) => bigint>

/**
 * What a guest asks for beyond the kernel of this Extism version, and the functions of the gateway.
 *
 * @param memory that of the guest, once there is one
 */
export function hostFunctions(
  state: HostState,
  onTrace: (text: string) => void,
  memory: () => ArrayBuffer | null,
): HostFunctionTable {
  return {
    [HOST_NAMESPACE]: userFunctions(state),
    [KERNEL_NAMESPACE]: {
      // Log lines of every level: the runner shows them all.
      get_log_level: () => 0,
      log_trace: (context: CallContext, text: bigint) => onTrace(textOf(context, text)),
      http_headers: () => 0n,
      error_get: () => 0n,
    },
    [ABORT_NAMESPACE]: {
      abort: (_: CallContext, message: number, file: number, line: number, column: number) => {
        throw new Error(`${utf16At(memory(), message)} at ${utf16At(memory(), file)}:${line}:${column}`)
      },
    },
  }
}

function userFunctions(state: HostState): UserFunctions {
  const flag = (isDone: boolean) => (isDone ? 1n : 0n)
  return {
    kv_get: (context, key) => toBlock(context, state.get(textOf(context, key))),
    kv_set: (context, key, value, ttlMs) => {
      return flag(state.set(textOf(context, key), bytesOf(context, value), ttlMs))
    },
    kv_delete: (context, key) => flag(state.delete(textOf(context, key))),
    kv_incr: (context, key, delta, ttlMs) => state.increment(textOf(context, key), delta, ttlMs),
    now_ms: () => BigInt(state.nowMs),
    random_bytes: (context, count) => toBlock(context, state.random(count)),
    sha256: (context, data) => {
      return toBlock(context, createHash('sha256').update(bytesOf(context, data)).digest())
    },
    hmac_sha256: (context, key, data) => {
      const mac = createHmac('sha256', bytesOf(context, key)).update(bytesOf(context, data)).digest()
      return toBlock(context, mac)
    },
    metric_inc: (context, name, delta) => flag(state.count(textOf(context, name), delta)),
  }
}

/** Offset 0 and blocks that are gone read as empty. */
function bytesOf(context: CallContext, offset: bigint): Uint8Array {
  return offset === 0n ? new Uint8Array(0) : (context.read(offset)?.bytes() ?? new Uint8Array(0))
}

function textOf(context: CallContext, offset: bigint): string {
  return Buffer.from(bytesOf(context, offset)).toString('utf8')
}

function toBlock(context: CallContext, bytes: Uint8Array | null): bigint {
  // A copy of its own: the host stores the whole buffer behind a view.
  return bytes === null ? 0n : context.store(Uint8Array.from(bytes))
}

/** A string of AssemblyScript: UTF-16, its length in bytes right before it. */
function utf16At(memory: ArrayBuffer | null, pointer: number): string {
  if (memory === null || pointer < 4 || pointer > memory.byteLength) return 'abort'
  const bytes = new DataView(memory).getUint32(pointer - 4, true)
  return bytes > memory.byteLength - pointer
    ? 'abort'
    : Buffer.from(memory, pointer, bytes).toString('utf16le')
}
