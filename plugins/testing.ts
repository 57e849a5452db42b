/** Helper for tests of plugins: runs the `weir` command of this package with a configuration file. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface TestGateway {
  /** Base URL, such as `http://127.0.0.1:41234`. */
  readonly url: string
  /** Stops the gateway, and resolves when its process has ended. */
  stop(): Promise<void>
}

/**
 * Starts a gateway on free ports and waits until it is ready. Its log goes to the output of the test.
 *
 * @param config path of a configuration file; relative to the working directory
 * @param flags further flags of `weir serve`
 * @throws Error with the output of the gateway if it ends before it is ready
 */
export async function startGateway(config: string, flags: readonly string[] = []): Promise<TestGateway> {
  const suffix = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const command = fileURLToPath(new URL(`./cli.${suffix}`, import.meta.url))
  const args = [command, 'serve', '--config', config, '--port', '0', '--metrics-port', '0', ...flags]
  const child = spawn(process.execPath, [...process.execArgv, ...args], {
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  const exited = once(child, 'exit')
  const output: string[] = []
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stderr })
      .on('line', (line) => {
        output.push(line)
        const [, found] = /^ {2}API +(http\S+)/.exec(line) ?? []
        if (found !== undefined) resolve(found)
      })
      .on('close', () => reject(new Error(`the gateway ended before it was ready:\n${output.join('\n')}`)))
  })
  return {
    url,
    async stop() {
      child.kill('SIGINT')
      await exited
    },
  }
}
