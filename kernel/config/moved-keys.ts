/** Keys of the kernel section that stand elsewhere now. */
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
