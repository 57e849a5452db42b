/** Builds a module without a gateway, registered with access to everything. */
import { defineValidator } from '#kernel'
import type { AttachPoint } from '../../../wasm-sdk/abi.ts'
import { type WasmConfig, wasmConfig } from '../config.ts'
import { buildGuest, compileModule, type GuestLimits, startFuel } from '../instances/build-guest.ts'
import { WASI_NAMESPACE } from '../instances/check-module.ts'
import type { LoadedModule } from '../threads/guest-task.ts'

export type TrialLimits = GuestLimits & Pick<WasmConfig, 'fuelPerByte' | 'timeoutMs'>

interface TrialSettings {
  readonly limits: TrialLimits
  readonly config: Readonly<Record<string, string>>
  readonly attachPoints: readonly AttachPoint[]
  readonly instance: LoadedModule['instance']
}

const NAME = 'module'
const DEFAULT_TIMEOUT_MS = 5_000

/** Completes the limits by the defaults of the gateway, with 5 s per call for busy machines. */
export function withDefaultLimits(limits: Partial<TrialLimits> = {}): TrialLimits {
  return { ...defineValidator(wasmConfig).parse({}), timeoutMs: DEFAULT_TIMEOUT_MS, ...limits }
}

/** @throws BadModule */
export async function buildTrial(
  given: Uint8Array,
  { limits, config, attachPoints, instance }: TrialSettings,
): Promise<LoadedModule> {
  const bytes = Uint8Array.from(given)
  const imports = WebAssembly.Module.imports(await compileModule(bytes))
  return {
    uuid: NAME,
    name: NAME,
    row: 0,
    ...(await buildGuest(bytes, instance, limits)),
    attachPoints,
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
    usesWasi: imports.some((one) => one.module === WASI_NAMESPACE),
    match: {},
    allowedHosts: [],
    seesRefused: false,
    shadowOf: null,
    hasStart: false,
  }
}
