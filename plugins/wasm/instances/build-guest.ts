/** Rewrites a module for the limits of the gateway and compiles it. */
import type { WasmConfig } from '../config.ts'
import { BadModule } from '../rewrite/module-rejected.ts'
import { PAGE_BYTES } from '../rewrite/plan.ts'
import { rewriteModule } from '../rewrite/rewrite-module.ts'
import type { LoadedModule } from '../threads/guest-task.ts'

/** Settings that limit a guest. */
type GuestLimits = Pick<WasmConfig, 'memoryPages' | 'tablePlaces' | 'stackKiB' | 'maxBodyBytes' | 'fuel'>

/** Size of the exchange memory as a multiple of the largest body, with room for heads and the guest's own blocks. */
const EXCHANGE_OF_BODY = 8
/** Pages by which a call may grow each memory so that the instance can still be restored. */
const HEADROOM_PAGES = 32
/** Fuel of the start, as a multiple of that of a call. */
const START_OF_CALL = 10

/** Fuel for the start of an instance, units. */
export function startFuel({ fuel }: Pick<GuestLimits, 'fuel'>): number {
  return fuel * START_OF_CALL
}

/**
 * @param bytes a module that V8 accepts
 * @param startUnits fuel for the start of an instance
 * @throws BadModule
 */
export async function buildGuest(
  bytes: Uint8Array,
  instance: LoadedModule['instance'],
  config: GuestLimits,
  startUnits = startFuel(config),
): Promise<Pick<LoadedModule, 'module' | 'layout'>> {
  const { bytes: rewritten, layout } = rewriteModule(bytes, {
    maxPages: config.memoryPages,
    maxTablePlaces: config.tablePlaces,
    stackBytes: config.stackKiB * 1_024,
    exchangePages: Math.ceil((EXCHANGE_OF_BODY * config.maxBodyBytes) / PAGE_BYTES),
    startFuel: startUnits,
    restores: instance === 'fresh',
    headroomPages: HEADROOM_PAGES,
  })
  return { module: await compileModule(rewritten), layout }
}

/** @throws BadModule with the message of V8 */
export async function compileModule(bytes: Uint8Array<ArrayBuffer>): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(bytes)
  } catch (error) {
    throw new BadModule(`invalid module: ${(error as Error).message}`)
  }
}
