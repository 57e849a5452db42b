/** A module with the gateway's own host around it, called on this thread: what remains is the time of the guest. */
import { type AttachPoint, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import { WASI_NAMESPACE } from '../../../wasm-sdk/runner.ts'
import type { WasmConfig } from '../../wasm/config.ts'
import { GuestInstance, type GuestSurroundings } from '../../wasm/guest-instance.ts'
import { readPhaseOutput, readStreamOutput } from '../../wasm/guest-output.ts'
import type { LoadedModule } from '../../wasm/guest-task.ts'
import { SharedState } from '../../wasm/shared-state.ts'

export interface BenchSubject {
  readonly module: WebAssembly.Module
  readonly config: Readonly<Record<string, string>>
  readonly limits: WasmConfig
}

const NAME = 'bench'

export class BenchGuest {
  readonly #on: AttachPoint
  readonly #loaded: LoadedModule
  readonly #surroundings: GuestSurroundings
  readonly #reuseCalls: number
  #warm: GuestInstance | null = null

  constructor(subject: BenchSubject, on: AttachPoint, instance: 'fresh' | 'reuse') {
    const { limits } = subject
    this.#on = on
    this.#loaded = toLoaded(subject, on, instance)
    this.#reuseCalls = instance === 'reuse' ? limits.reuseCalls : 1
    this.#surroundings = {
      state: new SharedState(new SharedArrayBuffer(limits.stateBytes), 0),
      maxGuestBlockBytes: 8 * limits.maxBodyBytes,
      logLevel: 0,
      mayCount: () => true,
    }
  }

  /** One call with everything that a thread of the gateway does for it. @returns false when it failed */
  async call(frame: Uint8Array): Promise<boolean> {
    try {
      const instance = this.#warm ?? (await GuestInstance.open(this.#loaded, this.#surroundings))
      this.#warm = null
      this.#read(await instance.call(EXPORT_OF_ATTACH_POINT[this.#on], Uint8Array.from(frame), null))
      if (instance.calls < this.#reuseCalls) {
        await instance.reset()
        this.#warm = instance
      } else await instance.close()
      return true
    } catch {
      return false
    }
  }

  #read(output: Uint8Array | null): void {
    if (this.#on === 'OnStreamEvent') readStreamOutput(output)
    else readPhaseOutput(output, this.#on === 'OnRequest')
  }
}

function toLoaded(
  { module, config, limits }: BenchSubject,
  on: AttachPoint,
  instance: 'fresh' | 'reuse',
): LoadedModule {
  return {
    uuid: NAME,
    name: NAME,
    row: 0,
    module,
    attachPoints: [on],
    needs: { headers: true, request_body: true, response_headers: true, response_body: true },
    instance,
    onFailure: 'open',
    timeoutMs: limits.timeoutMs,
    config,
    usesWasi: WebAssembly.Module.imports(module).some((one) => one.module === WASI_NAMESPACE),
    hasStart: false,
  }
}
