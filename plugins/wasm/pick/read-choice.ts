/** Reads which worker a routing module has chosen. @hot */
import type { PickAction } from '../../../wasm-sdk/abi.ts'
import { BadOutput, readFrame } from '../instances/guest-output.ts'

/** The module leaves the choice to the default policy. */
export const NO_CHOICE = -1

/** @param shown candidates that the module was shown @returns its place among them, or NO_CHOICE @throws BadOutput */
export function readChoice(output: Uint8Array | null, shown: number): number {
  if (output === null || output.length === 0) return NO_CHOICE
  const { choice = null } = readFrame(output).head as PickAction
  if (choice === null || choice === NO_CHOICE) return NO_CHOICE
  if (typeof choice !== 'number' || !Number.isInteger(choice) || choice < 0 || choice >= shown)
    throw new BadOutput(`the choice is none of ${shown} candidates`)
  return choice
}
