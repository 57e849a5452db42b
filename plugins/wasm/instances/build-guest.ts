/** From the bytes of a module to what runs: rewritten within the limits of the gateway, and compiled. */

import type { WasmConfig } from '../config.ts'
import { BadModule } from '../rewrite/bad-module.ts'
import { rewriteModule } from '../rewrite/rewrite-module.ts'
import type { LoadedModule } from '../threads/guest-task.ts'

const PAGE_BYTES = 65_536
/** What of the configuration bounds a guest. */
export type GuestLimits = Pick<
  WasmConfig,
  'memoryPages' | 'tablePlaces' | 'stackKiB' | 'maxBodyBytes' | 'fuel'
>

/** So many times the largest body: heads and what the guest itself makes of them need room too. */
const EXCHANGE_OF_BODY = 8
/** Pages by which a call may grow each memory without that the instance is lost. */
const HEADROOM_PAGES = 32
const START_OF_CALL = 10

/** Units for what runs when a module is instantiated. */
export function startFuel({ fuel }: Pick<GuestLimits, 'fuel'>): number {
  return fuel * START_OF_CALL
}

/**
 * @param bytes of a module that the engine finds valid
 * @param startUnits for what runs when the module is instantiated
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

/** @throws BadModule in the engine's words */
export async function compileModule(bytes: Uint8Array<ArrayBuffer>): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(bytes)
  } catch (error) {
    throw new BadModule(`invalid module: ${(error as Error).message}`)
  }
}
