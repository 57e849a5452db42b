/** The registered modules of a data thread: a chain per attach point with what it needs. */
import { ATTACH_POINTS, type AttachPoint } from '../../../wasm-sdk/abi.ts'
import type { LoadedModule, ModuleSet } from '../threads/guest-task.ts'
import { isSelective } from './matcher.ts'

export interface Chain {
  /** In order of registration. */
  readonly modules: readonly LoadedModule[]
  /** Some modules have conditions. */
  readonly isSelective: boolean
  /** Shadow versions. */
  readonly shadows: readonly LoadedModule[]
  readonly needsClientAddress: boolean
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

function toChain(all: readonly LoadedModule[]): Chain {
  const modules = all.filter(({ shadowOf }) => shadowOf === null)
  return {
    modules,
    isSelective: modules.some(isSelective),
    shadows: all.filter(({ shadowOf }) => shadowOf !== null),
    needsClientAddress: all.some(({ needs }) => needs.client_ip),
    needsRequestHeaders: all.some(({ needs, match }) => isAny(needs.headers) || match.headers !== undefined),
    needsRequestBody: all.some(({ needs }) => needs.request_body),
    needsResponseHeaders: all.some(({ needs }) => isAny(needs.response_headers)),
    needsResponseBody: all.some(({ needs }) => needs.response_body),
  }
}

function isAny(needs: boolean | readonly string[]): boolean {
  return needs === true || (Array.isArray(needs) && needs.length > 0)
}
