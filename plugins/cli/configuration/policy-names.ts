/** Checks the policies that a configuration selects against the manifests, before the boot. */
import { foldPolicyName, PLAIN_POLICY } from '../../../kernel/balance/policy-name.ts'
import type { KernelConfig } from '../../../kernel/config/kernel-config.ts'
import { closestKey } from './closest-key.ts'
import type { PluginFacts, PluginSchemas } from './plugin-facts.ts'
import type { ProblemList } from './problem-list.ts'

const SETTINGS = ['policy', 'prefillPolicy', 'decodePolicy'] as const

/**
 * Reports settings with a policy that no enabled plugin has, and the plugin of the catalog that has it.
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

/** Imports plugins that are not enabled; happens only for an invalid configuration. */
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
