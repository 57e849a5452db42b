#!/usr/bin/env -S node --max-semi-space-size=4
/** The `weir` command. */
import { unsuitableNode } from './cli/node-version.ts'

const complaint = unsuitableNode(process.versions.node)
if (complaint === null) {
  // Only now: what they import does not load on another Node.
  const { useCompileCache } = await import('./cli/compile-cache.ts')
  useCompileCache()
  const { runCommand } = await import('./cli/program.ts')
  await runCommand(process.argv.slice(2))
} else {
  console.error(complaint)
  process.exitCode = 1
}
