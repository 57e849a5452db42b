/** Names of policies: the kernel's own, and how they are compared. */

/** The kernel's own: what routes where no plugin brings a policy. */
export const PLAIN_POLICY = 'round_robin'

/** How names are compared: letter case and underscores do not count. */
export function foldPolicyName(name: string): string {
  return name.toLowerCase().replaceAll('_', '')
}
