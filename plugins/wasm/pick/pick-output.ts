/** Output of OnPick. */
import type { PickAction } from '../../../wasm-sdk/abi.ts'
import { BadOutput, readFrame } from '../instances/guest-output.ts'

/** The module leaves the choice of a worker to the default policy. */
export const NO_CHOICE = -1

/**
 * Reads the output of OnPick.
 * @param shown number of candidates in the input
 * @returns index of a candidate, or NO_CHOICE
 * @throws BadOutput
 */
export function readChoice(output: Uint8Array | null, shown: number): number {
  if (output === null || output.length === 0) return NO_CHOICE
  return checkChoice((readFrame(output).head as PickAction).choice, shown)
}

/** @throws BadOutput */
export function checkChoice(choice: unknown, shown: number): number {
  if (choice === undefined || choice === null || choice === NO_CHOICE) return NO_CHOICE
  if (typeof choice !== 'number' || !Number.isInteger(choice) || choice < 0 || choice >= shown)
    throw new BadOutput(`choice must be null, -1 or the index of one of ${shown} candidates`)
  return choice
}
