/** The functions of the gateway over the state of a runner, for as much fuel; what goes wrong gives 0. */
import { createHash, createHmac } from 'node:crypto'
import type { HostFunctionName } from '../../../wasm-sdk/abi.ts'
import type { GuestExchange } from '../instances/guest-exchange.ts'
import type { InstanceFacts } from '../instances/guest-instance.ts'
import { bindHostCall, type HostCall, WORK_UNITS } from '../instances/host-functions.ts'
import type { HostState } from './host-state.ts'

const COUNT_FAILED = -(2n ** 63n)

export function hostFunctions(
  state: HostState,
  facts: InstanceFacts,
): Record<HostFunctionName, (...parameters: bigint[]) => bigint> {
  const bind = (call: HostCall, otherwise = 0n) => bindHostCall(facts, otherwise, call)
  const flag = (isDone: boolean) => (isDone ? 1n : 0n)
  return {
    kv_get: bind((exchange, key) => {
      const value = state.get(keyOf(exchange, key))
      exchange.burn((value?.length ?? 0) * WORK_UNITS.keptByte)
      return toBlock(exchange, value)
    }),
    kv_set: bind((exchange, key, offset, ttlMs) => {
      const value = bytesOf(exchange, offset)
      exchange.burn(value.length * WORK_UNITS.keptByte)
      return flag(state.set(keyOf(exchange, key), value, ttlMs))
    }),
    kv_delete: bind((exchange, key) => flag(state.delete(keyOf(exchange, key)))),
    kv_incr: bind(
      (exchange, key, delta, ttlMs) => state.increment(keyOf(exchange, key), delta, ttlMs),
      COUNT_FAILED,
    ),
    now_ms: () => BigInt(state.nowMs),
    random_bytes: bind((exchange, count) => toBlock(exchange, state.random(count))),
    sha256: bind((exchange, offset) => {
      const data = bytesOf(exchange, offset)
      exchange.burn(data.length * WORK_UNITS.hashedByte)
      return toBlock(exchange, createHash('sha256').update(data).digest())
    }),
    hmac_sha256: bind((exchange, keyOffset, offset) => {
      const [key, data] = [bytesOf(exchange, keyOffset), bytesOf(exchange, offset)]
      exchange.burn(WORK_UNITS.hmac + (key.length + data.length) * WORK_UNITS.hashedByte)
      return toBlock(exchange, createHmac('sha256', key).update(data).digest())
    }),
    metric_inc: bind((exchange, name, delta) => flag(state.count(textOf(exchange, name), delta))),
  }
}

/** Offset 0 and what is no block read as empty. */
function bytesOf(exchange: GuestExchange, offset: bigint): Uint8Array {
  return exchange.read(offset) ?? new Uint8Array(0)
}

function textOf(exchange: GuestExchange, offset: bigint): string {
  return Buffer.from(bytesOf(exchange, offset)).toString('utf8')
}

/** Looking it up costs what it takes in the gateway. */
function keyOf(exchange: GuestExchange, offset: bigint): string {
  if (exchange.read(offset) !== null) exchange.burn(WORK_UNITS.kept)
  return textOf(exchange, offset)
}

function toBlock(exchange: GuestExchange, bytes: Uint8Array | null): bigint {
  return bytes === null ? 0n : exchange.give(bytes)
}
