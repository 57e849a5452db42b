/** Programs of Prometheus, from PATH or from `.build-tools`, and runs of promtool. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export interface Promtool {
  /** @param input standard input */
  run(args: readonly string[], input?: string): Promise<{ code: number | null; output: string }>
}

/** @param tests that are skipped without it @returns null if it is not installed @throws if services are required */
export function findPrometheusProgram(name: 'prometheus' | 'promtool', tests: string): string | null {
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    fileURLToPath(new URL('../../.build-tools', import.meta.url)),
  ]
  const file = folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
  if (file !== undefined) return file
  const problem = `${name} is not installed: apt-get install --no-install-recommends prometheus`
  if (process.env.WEIR_TEST_REQUIRE_SERVICES === '1') throw new Error(problem)
  console.warn(`skipped: ${tests}, since ${problem}`)
  return null
}

const file = findPrometheusProgram('promtool', 'checks of metrics and alert rules')

/** Null if it is not installed. */
export const promtool: Promtool | null = file === null ? null : { run: (...call) => run(file, ...call) }

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
