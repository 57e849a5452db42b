/** The trial start of a module at its registration. */
import { DESCRIBE_EXPORT } from '../../../wasm-sdk/abi.ts'
import type { LoadedModule, StartedModule } from '../threads/guest-task.ts'
import { GuestInstance, type GuestSurroundings } from './guest-instance.ts'

/** Longest description, bytes. */
const MAX_DESCRIPTION = 65_536

/** Starts an instance, and calls `describe` if the module exports it. Never rejects. */
export async function describeModule(
  module: LoadedModule,
  surroundings: GuestSurroundings,
  hasDescribe: boolean,
): Promise<StartedModule> {
  let startFuel = 0
  try {
    const instance = await GuestInstance.open(module, surroundings)
    startFuel = instance.burntFuel
    if (!hasDescribe) return { failure: null, json: null, startFuel }
    const output = instance.run(DESCRIBE_EXPORT, new Uint8Array(0), null, module.fuel)
    if (output !== null && output.length > MAX_DESCRIPTION)
      return { failure: 'the description is too long', json: null, startFuel }
    return { failure: null, json: output?.toString('utf8') ?? null, startFuel }
  } catch (error) {
    const failure = error instanceof Error ? error.message : String(error)
    return { failure, json: null, startFuel }
  }
}
