/** The registered modules as one serving thread uses them: a chain per attach point, and what each chain needs. */
import { ATTACH_POINTS, type AttachPoint } from '../../wasm-sdk/abi.ts'
import type { LoadedModule, ModuleSet } from './guest-task.ts'

export interface Chain {
  /** In order of registration. */
  readonly modules: readonly LoadedModule[]
  readonly needsRequestHeaders: boolean
  readonly needsRequestBody: boolean
  readonly needsResponseHeaders: boolean
  readonly needsResponseBody: boolean
}

export class ActiveModules {
  #chains = toChains([])
  #modules: readonly LoadedModule[] = []

  update({ modules }: ModuleSet): void {
    this.#modules = modules
    this.#chains = toChains(modules)
  }

  get all(): readonly LoadedModule[] {
    return this.#modules
  }

  chain(point: AttachPoint): Chain {
    return this.#chains[point]
  }
}

function toChains(modules: readonly LoadedModule[]): Readonly<Record<AttachPoint, Chain>> {
  const entries = ATTACH_POINTS.map((point) => [
    point,
    toChain(modules.filter(({ attachPoints }) => attachPoints.includes(point))),
  ])
  return Object.fromEntries(entries)
}

function toChain(modules: readonly LoadedModule[]): Chain {
  return {
    modules,
    needsRequestHeaders: modules.some(({ needs }) => isAny(needs.headers)),
    needsRequestBody: modules.some(({ needs }) => needs.request_body),
    needsResponseHeaders: modules.some(({ needs }) => isAny(needs.response_headers)),
    needsResponseBody: modules.some(({ needs }) => needs.response_body),
  }
}

function isAny(needs: boolean | readonly string[]): boolean {
  return needs === true || (Array.isArray(needs) && needs.length > 0)
}
