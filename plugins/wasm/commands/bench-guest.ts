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
import { loadTrial } from '../testing/trial-module.ts'
import type { CallReport } from '../threads/guest-task.ts'

export interface BenchSubject {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly config: Readonly<Record<string, string>>
  readonly limits: WasmConfig
  readonly usesWasi: boolean
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
  /** Fuel of a call; null for that of the module. */
  readonly #fuel: number | null

  private constructor(call: BenchCall, guest: Guest, fuel: number | null) {
    this.#call = call
    this.#guest = guest
    this.#fuel = fuel
  }

  static async open(subject: BenchSubject, call: BenchCall, instance: BenchInstance): Promise<BenchGuest> {
    const { limits } = subject
    const state = new SharedState(new SharedArrayBuffer(limits.stateBytes), 0)
    const surroundings = guestSurroundings(state, 'debug')
    const { module } = await loadTrial({ ...subject, attachPoints: [call.on], instance })
    const guest = new Guest(module, { surroundings, reuseCalls: limits.reuseCalls })
    return new BenchGuest(call, guest, call.on === 'OnPick' ? limits.inline.fuel : null)
  }

  /** One call, including what a thread of the gateway does for it. */
  async call(frame: Uint8Array): Promise<CallReport> {
    if (!this.#guest.isReady(null)) await this.#guest.open(null)
    const order = {
      exportName: EXPORT_OF_ATTACH_POINT[this.#call.on],
      input: frame,
      tenant: null,
      fuel: this.#fuel,
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
