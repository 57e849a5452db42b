/** A module with the gateway's own host around it, called on this thread: what remains is the time of the guest. */
import { type AttachPoint, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import type { WasmConfig } from '../config.ts'
import { buildGuest, startFuel } from '../instances/build-guest.ts'
import { Guest } from '../instances/guest.ts'
import type { InstanceFacts } from '../instances/guest-instance.ts'
import { readPhaseOutput, readStreamOutput, readToolOutput } from '../instances/guest-output.ts'
import { hostFunctions } from '../instances/host-functions.ts'
import { SharedState } from '../instances/shared-state.ts'
import { readChoice } from '../pick/read-choice.ts'
import { WASI_NAMESPACE } from '../testing/runner.ts'
import type { CallReport, LoadedModule } from '../threads/guest-task.ts'

export interface BenchSubject {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly config: Readonly<Record<string, string>>
  readonly limits: WasmConfig
}

export type BenchInstance = 'fresh' | 'reuse'

const NAME = 'bench'

/** Which handler is called, as far as it matters for what it gives back. */
export interface BenchCall {
  readonly on: AttachPoint
  /** Workers that a choice is made of. */
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
    const { limits } = subject
    const state = new SharedState(new SharedArrayBuffer(limits.stateBytes), 0)
    const host = { state, mayCount: () => true }
    const surroundings = {
      logLevel: 0,
      hostFunctions: (facts: InstanceFacts) => hostFunctions(host, facts),
    }
    const module = await toLoaded(subject, call.on, instance)
    return new BenchGuest(call, new Guest(module, { surroundings, reuseCalls: limits.reuseCalls }))
  }

  /** One call with everything that a thread of the gateway does for it. */
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
    else if (on === 'OnToolCall') readToolOutput(output)
    else if (on === 'OnPick') readChoice(output, candidates)
    else readPhaseOutput(output, on === 'OnRequest')
  }
}

async function toLoaded(
  { bytes, config, limits }: BenchSubject,
  on: AttachPoint,
  instance: BenchInstance,
): Promise<LoadedModule> {
  const built = await buildGuest(bytes, instance, limits)
  return {
    uuid: NAME,
    name: NAME,
    row: 0,
    ...built,
    attachPoints: [on],
    needs: {
      headers: true,
      credentials: true,
      client_ip: true,
      request_body: true,
      response_headers: true,
      response_body: true,
    },
    instance,
    onFailure: 'open',
    timeoutMs: limits.timeoutMs,
    fuel: limits.fuel,
    fuelPerByte: limits.fuelPerByte,
    startFuel: startFuel(limits),
    burntAtStart: 0,
    placement: 'pool',
    kvOwner: NAME,
    config,
    settings: null,
    usesWasi: WebAssembly.Module.imports(built.module).some((one) => one.module === WASI_NAMESPACE),
    match: {},
    allowedHosts: [],
    seesRefused: false,
    shadowOf: null,
    hasStart: false,
  }
}
