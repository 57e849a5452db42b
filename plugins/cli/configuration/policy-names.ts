/** The policies that a configuration may name, as far as manifests tell before anything boots. */
import { foldPolicyName, PLAIN_POLICY } from '../../../kernel/balance/policy-name.ts'
import type { KernelConfig } from '../../../kernel/config/kernel-config.ts'
import { closestKey } from './closest-key.ts'
import type { PluginFacts, PluginSchemas } from './plugin-facts.ts'
import type { ProblemList } from './problem-list.ts'

const SETTINGS = ['policy', 'prefillPolicy', 'decodePolicy'] as const

/**
 * Reports settings that name no policy of the enabled plugins, and says which plugin has it where one of the catalog
 * does.
 */
export async function checkPolicyNames(
  kernel: Partial<KernelConfig>,
  enabled: readonly PluginFacts[],
  { names, find }: PluginSchemas,
  problems: ProblemList,
): Promise<void> {
  const known = [PLAIN_POLICY, ...enabled.flatMap(({ policies = [] }) => policies)]
  for (const setting of SETTINGS) {
    const name = kernel[setting]
    if (typeof name !== 'string' || has(known, name)) continue
    const near = closestKey(name, known)
    const hint = near === null ? '' : `; did you mean ${near}?`
    const owner = await findOwner(name, names, find)
    const text =
      owner === null
        ? `must be one of ${known.join(', ')}${hint}`
        : `is a policy of plugin ${owner}, which is not enabled: write \`${owner}: {}\` under plugins, or use --plugin ${owner}`
    problems.add({ path: ['kernel', setting], text, got: JSON.stringify(name) })
  }
}

function has(policies: readonly string[], name: string): boolean {
  return policies.some((policy) => foldPolicyName(policy) === foldPolicyName(name))
}

/** Imports what is not enabled, which only a configuration that fails anyway pays for. */
async function findOwner(
  policy: string,
  names: readonly string[],
  find: PluginSchemas['find'],
): Promise<string | null> {
  for (const name of names) {
    const facts = await find(name, {}).catch(() => null)
    if (facts !== null && has(facts.policies ?? [], policy)) return name
  }
  return null
}
