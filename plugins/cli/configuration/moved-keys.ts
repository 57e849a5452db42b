/** Keys of the kernel section that stand elsewhere now. */

import { isRecord } from './is-record.ts'
import type { ProblemList } from './problem-list.ts'

/** Old key → its place, as a path of the file. */
const MOVED: Readonly<Record<string, string>> = {
  policies: 'plugins.policies',
  stickyRoutingKeys: 'plugins.policies.stickyRoutingKeys',
}

/** Reports each that is still there with what to write instead, and takes it out. */
export function takeOutMovedKeys(kernel: Record<string, unknown>, problems: ProblemList): void {
  for (const [key, place] of Object.entries(MOVED)) {
    if (!Object.hasOwn(kernel, key)) continue
    delete kernel[key]
    problems.add({ path: ['kernel', key], text: `has moved: write the same value as ${place}` })
  }
}

/**
 * Older files have what is now the section of plugin `metrics` as `kernel.metrics`, where `enabled: false` leaves the plugin
 * out. What the plugin's own section says goes before it.
 *
 * @param plugins the chosen ones; changed in place
 * @returns the kernel section without it
 */
export function moveMetrics(kernel: unknown, plugins: Record<string, unknown>): unknown {
  if (!isRecord(kernel) || !isRecord(kernel.metrics)) return kernel
  const { metrics, ...rest } = kernel
  const { enabled, ...section } = metrics as Record<string, unknown>
  if (enabled === false) delete plugins.metrics
  else plugins.metrics = { ...section, ...(isRecord(plugins.metrics) ? plugins.metrics : {}) }
  return rest
}
