/** Runs promtool of Prometheus, from PATH or from `.build-tools`. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export interface Promtool {
  /** @param input standard input */
  run(args: readonly string[], input?: string): Promise<{ code: number | null; output: string }>
}

const folders = [
  ...(process.env.PATH ?? '').split(delimiter),
  fileURLToPath(new URL('../../.build-tools', import.meta.url)),
]
const file = folders.map((folder) => join(folder, 'promtool')).find((path) => existsSync(path))
if (file === undefined) {
  const problem = 'promtool is not installed: apt-get install --no-install-recommends prometheus'
  if (process.env.WEIR_TEST_REQUIRE_SERVICES === '1') throw new Error(problem)
  console.warn(`skipped: checks of metrics and alert rules, since ${problem}`)
}

/** Null if it is not installed. */
export const promtool: Promtool | null = file === undefined ? null : { run: (...call) => run(file, ...call) }

async function run(
  command: string,
  args: readonly string[],
  input = '',
): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, args)
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  child.stdin.end(input)
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  return { code, output: stdout + stderr }
}
