/** The name of the kernel's own policy, and the comparison of policy names. */

/** The kernel's own policy, used if no plugin provides one. */
export const PLAIN_POLICY = 'round_robin'

/** Names are compared without letter case and underscores. */
export function foldPolicyName(name: string): string {
  return name.toLowerCase().replaceAll('_', '')
}
