/** Processes that a test starts beside the gateway, ended with the test. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

const started: ChildProcess[] = []

/** @returns the process, which `endChildren` ends */
export function endsWithTest<Child extends ChildProcess>(child: Child): Child {
  started.push(child)
  return child
}

/** In reverse order, because later processes may need earlier ones. */
export async function endChildren(): Promise<void> {
  for (const child of started.splice(0).reverse()) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const closed = once(child, 'close')
    child.kill('SIGTERM')
    await closed
  }
}
