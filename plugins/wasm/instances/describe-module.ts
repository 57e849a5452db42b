/** The trial start of a module at its registration. */
import { DESCRIBE_EXPORT } from '../../../wasm-sdk/abi.ts'
import type { LoadedModule, StartedModule } from '../threads/guest-task.ts'
import { GuestInstance, type GuestSurroundings } from './guest-instance.ts'

/** Longest description, bytes. */
const MAX_DESCRIPTION = 65_536
const NO_INPUT = new Uint8Array(0)

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
    const output = hasDescribe ? instance.call(DESCRIBE_EXPORT, NO_INPUT, null, module.fuel) : null
    if (output !== null && output.length > MAX_DESCRIPTION)
      return { failure: 'the description is too long', json: null, startFuel }
    const json = output && Buffer.from(output).toString('utf8')
    return { failure: null, json, startFuel }
  } catch (error) {
    const failure = error instanceof Error ? error.message : String(error)
    return { failure, json: null, startFuel }
  }
}
