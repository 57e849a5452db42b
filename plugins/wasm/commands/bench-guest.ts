/** Calls a module on this thread with the host functions of the gateway, to measure the guest only. */
import { type AttachPoint, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import type { WasmConfig } from '../config.ts'
import { Guest } from '../instances/guest.ts'
import {
  readChoice,
  readPhaseOutput,
  readStreamOutput,
  readTextOutput,
  readToolOutput,
} from '../instances/guest-output.ts'
import { guestSurroundings } from '../instances/guest-surroundings.ts'
import { SharedState } from '../instances/shared-state.ts'
import { buildTrial } from '../testing/trial-module.ts'
import type { CallReport } from '../threads/guest-task.ts'

export interface BenchSubject {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly config: Readonly<Record<string, string>>
  readonly limits: WasmConfig
}

export type BenchInstance = 'fresh' | 'reuse'

interface BenchCall {
  readonly on: AttachPoint
  /** Number of candidates of OnPick. */
  readonly candidates: number
}

export class BenchGuest {
  readonly #call: BenchCall
  readonly #guest: Guest

  private constructor(call: BenchCall, guest: Guest) {
    this.#call = call
    this.#guest = guest
  }

  static async open(subject: BenchSubject, call: BenchCall, instance: BenchInstance): Promise<BenchGuest> {
    const { bytes, config, limits } = subject
    const state = new SharedState(new SharedArrayBuffer(limits.stateBytes), 0)
    const surroundings = guestSurroundings(state, 'debug')
    const module = await buildTrial(bytes, { limits, config, attachPoints: [call.on], instance })
    return new BenchGuest(call, new Guest(module, { surroundings, reuseCalls: limits.reuseCalls }))
  }

  /** One call, including what a thread of the gateway does for it. */
  async call(frame: Uint8Array): Promise<CallReport> {
    if (!this.#guest.isReady(null)) await this.#guest.open(null)
    const order = {
      exportName: EXPORT_OF_ATTACH_POINT[this.#call.on],
      input: frame,
      tenant: null,
      fuel: null,
      read: (output: Uint8Array | null) => this.#read(output),
    }
    return this.#guest.call(order).report
  }

  #read(output: Uint8Array | null): void {
    const { on, candidates } = this.#call
    if (on === 'OnStreamEvent') readStreamOutput(output)
    else if (on === 'OnText') readTextOutput(output)
    else if (on === 'OnToolCall') readToolOutput(output)
    else if (on === 'OnPick') readChoice(output, candidates)
    else readPhaseOutput(output, on === 'OnRequest')
  }
}
