/** Registers the policies without a gateway, from the build or from the sources. */

/** Parts of a thread that policies need. */
export interface PolicyThread {
  readonly shared: (name: string, bytes: number) => SharedArrayBuffer
  readonly metrics: object
  readonly maxWorkers: number
}

export interface Registry {
  register(name: string, make: unknown, options?: unknown): void
  addOverlay(overlay: unknown): void
}

/** Imports a file of the repository by its path without extension. */
export type Load = (file: string) => Promise<Record<string, unknown>>

/** @returns a function that registers all policies with default settings */
export async function policyAdder(load: Load): Promise<(registry: Registry, thread: PolicyThread) => void> {
  const { resolvePluginConfig } = (await load('plugins/cli/configuration/load-plugin')) as {
    resolvePluginConfig: (name: string, schema: unknown, section: object) => object
  }
  const { policiesConfig } = await load('plugins/routing/policies/config')
  const { PolicyState } = (await load('plugins/routing/policies/policy-state')) as {
    PolicyState: new (options: object) => object
  }
  const { registerPolicies } = (await load('plugins/routing/policies/register-policies')) as {
    registerPolicies: (host: object, config: object, state: object) => void
  }
  const config = resolvePluginConfig('policies', policiesConfig, {})
  return (registry, thread) => {
    const state = new PolicyState({ config, ...thread })
    const host = {
      policy: registry.register.bind(registry),
      policyOverlay: registry.addOverlay.bind(registry),
    }
    registerPolicies(host, config, state)
  }
}
