/** Host functions of the module interface, and the surroundings that all guests of one thread share. Failed calls return 0; only exceeded limits end the guest's call. */
import { createHmac, hash, randomBytes } from 'node:crypto'
import type { HostFunctionName } from '../../../wasm-sdk/abi.ts'
import type { GuestExchange } from './guest-exchange.ts'
import type { GuestSurroundings } from './guest-instance.ts'
import type { GuestState } from './guest-kernel.ts'
import { MAX_KEY_BYTES, NOT_COUNTED, type PendingCounts, type SharedState, stateKey } from './shared-state.ts'
import { StoredState } from './stored-state.ts'

const MAX_RANDOM_BYTES = 1_024
/** Fuel in addition to that of a host call, units. */
const WORK_UNITS = {
  hmac: 8_000,
  /** The key is hashed and the table is locked. */
  kept: 8_000,
  /** Hashing is about 20 times slower than copying. */
  hashedByte: 1.25,
  /** Values are copied in small pieces while the table is locked. */
  keptByte: 8,
} as const
/** Offset 0 as a value. */
const NOTHING = new Uint8Array(0)
/** A name, and the value of a label. */
const METRIC_SERIES = /^[a-z][a-z0-9_]{0,63}(?:\{[\w.:/-]{1,64}\})?$/
const MAX_SERIES_BYTES = 130
/** Observations of one call. */
const MAX_OBSERVED = 64

type HostCall = (exchange: GuestExchange, ...args: bigint[]) => bigint

interface HostParts {
  readonly state: SharedState
  nowMs(): number
  randomBytes(count: number): Uint8Array
  /** Returns false for a new series if the module has too many. */
  mayCount(owner: string, series: string): boolean
  /** Records increments that may be rolled back. */
  readonly pendingCounts?: PendingCounts
}

function hostFunctions(
  { state: shared, nowMs, randomBytes, mayCount, pendingCounts }: HostParts,
  instance: GuestState,
): Record<HostFunctionName, (...args: bigint[]) => bigint> {
  const { counted, observed, gauged, module } = instance
  // Values and counters outlive a version.
  const owner = module.name
  const state = module.stored === null ? shared : new StoredState(module.stored, shared.owner, shared.waitMs)
  const keyOf = (exchange: GuestExchange, offset: bigint): Uint8Array | null => {
    const block = exchange.read(offset)
    if (block === null || block.length > MAX_KEY_BYTES) return null
    exchange.burn(WORK_UNITS.kept)
    return stateKey(owner, instance.tenant, textOf(block))
  }
  const seriesOf = (exchange: GuestExchange, offset: bigint): string | null => {
    const block = exchange.read(offset)
    const series = block === null || block.length > MAX_SERIES_BYTES ? '' : textOf(block)
    return METRIC_SERIES.test(series) && mayCount(owner, series) ? series : null
  }
  /** Exceptions would end the guest's call, which only exceeded limits may do. */
  const bind =
    (otherwise: bigint, call: HostCall) =>
    (...args: bigint[]): bigint => {
      const { exchange } = instance
      if (exchange === null) return otherwise
      try {
        return call(exchange, ...args)
      } catch (error) {
        if (error instanceof WebAssembly.RuntimeError) throw error
        return otherwise
      }
    }
  return {
    kv_get: bind(0n, (exchange, offset) => {
      const key = keyOf(exchange, offset)
      const value = key === null ? null : state.get(key)
      if (value === null) return 0n
      exchange.burn(value.length * WORK_UNITS.keptByte)
      return exchange.give(value)
    }),
    kv_set: bind(0n, (exchange, offset, valueOffset, ttlMs) => {
      const key = keyOf(exchange, offset)
      const value = exchange.read(valueOffset) ?? NOTHING
      exchange.burn(value.length * WORK_UNITS.keptByte)
      return key !== null && state.set(key, value, Number(ttlMs), instance.tenant) ? 1n : 0n
    }),
    kv_delete: bind(0n, (exchange, offset) => {
      const key = keyOf(exchange, offset)
      return key !== null && state.delete(key) ? 1n : 0n
    }),
    kv_incr: bind(NOT_COUNTED, (exchange, offset, delta, ttlMs) => {
      const key = keyOf(exchange, offset)
      if (key === null) return NOT_COUNTED
      const value = state.increment(key, delta, Number(ttlMs), instance.tenant)
      if (value !== NOT_COUNTED) pendingCounts?.add(state, key, delta)
      return value
    }),
    now_ms: () => BigInt(nowMs()),
    random_bytes: bind(0n, (exchange, count) =>
      count > 0n && count <= MAX_RANDOM_BYTES ? exchange.give(randomBytes(Number(count))) : 0n,
    ),
    sha256: bind(0n, (exchange, offset) => {
      const data = exchange.read(offset) ?? NOTHING
      exchange.burn(data.length * WORK_UNITS.hashedByte)
      return exchange.give(hash('sha256', data, 'buffer'))
    }),
    hmac_sha256: bind(0n, (exchange, keyOffset, offset) => {
      const key = exchange.read(keyOffset) ?? NOTHING
      const data = exchange.read(offset) ?? NOTHING
      exchange.burn(WORK_UNITS.hmac + (key.length + data.length) * WORK_UNITS.hashedByte)
      return exchange.give(createHmac('sha256', key).update(data).digest())
    }),
    metric_inc: bind(0n, (exchange, offset, delta) => {
      const series = delta < 0n ? null : seriesOf(exchange, offset)
      if (series === null) return 0n
      counted.set(series, (counted.get(series) ?? 0) + Number(delta))
      return 1n
    }),
    metric_observe: bind(0n, (exchange, offset, value) => {
      const series = value < 0n || observed.length >= 2 * MAX_OBSERVED ? null : seriesOf(exchange, offset)
      if (series === null) return 0n
      observed.push(series, Number(value))
      return 1n
    }),
    metric_set: bind(0n, (exchange, offset, value) => {
      const series = seriesOf(exchange, offset)
      if (series === null) return 0n
      gauged.set(series, Number(value))
      return 1n
    }),
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}

/** Names of one module's metrics, each with each value of its label. */
export const MAX_METRIC_SERIES = 128

/** @param logLevel of the gateway, by name */
export function guestSurroundings(
  state: SharedState,
  logLevel: string,
  parts: Partial<Pick<HostParts, 'nowMs' | 'randomBytes' | 'pendingCounts'>> = {},
): GuestSurroundings {
  const known = new Map<string, Set<string>>()
  const host: HostParts = {
    state,
    nowMs: () => Date.now(),
    randomBytes,
    ...parts,
    mayCount(owner, series) {
      const all = known.get(owner) ?? new Set()
      known.set(owner, all)
      if (all.size < MAX_METRIC_SERIES) all.add(series)
      return all.has(series)
    },
  }
  return { logLevel: guestLogLevel(logLevel), hostFunctions: (instance) => hostFunctions(host, instance) }
}

/** Result of `get_log_level`: 1 debug, 2 info, 3 warn, 4 error; higher disables logging. */
function guestLogLevel(level: string): number {
  const place = ['trace', 'debug', 'info', 'warn', 'error'].indexOf(level)
  return place < 0 ? 0x7fff_ffff : Math.max(1, place)
}
