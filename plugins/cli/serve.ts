/** `weir serve`: runs the gateway until a signal stops it. */
import { flushCompileCache } from 'node:module'
import type { Command } from 'commander'
import { addConfigOptions, loadFromOptions } from './config-options.ts'

const EXAMPLES = `
Examples:
  weir serve --worker-url http://10.0.0.1:8000 --worker-url http://10.0.0.2:8000
  WEIR_API_KEY=secret weir serve --host 0.0.0.0 --data-dir ./data
  weir serve --config weir.yaml --port 8080
  weir serve --config weir.yaml --watch        development: takes changed files while it runs
  weir serve --plugin sim --worker-url http://127.0.0.1:9001 --quick-start

A flag has precedence over its environment variable (in brackets above), which has precedence over the file.`

export async function defineServe(command: Command, args: readonly string[]): Promise<void> {
  await addConfigOptions(command, args)
  command
    .option('--quick-start', 'print a curl command and a client snippet that work unchanged')
    .option('--watch', 'development: take changes of the configuration, plugin files and modules')
    .option('--dry-run', 'load and check the configuration and the plugins like a start, then exit')
    .addHelpText('after', EXAMPLES)
    .action((options: ServeOptions) =>
      options.watch === true ? watchArguments(args) : runServe(command, options),
    )
}

interface ServeOptions {
  readonly quickStart?: boolean
  readonly watch?: boolean
  readonly dryRun?: boolean
}

async function watchArguments(args: readonly string[]): Promise<void> {
  const { watchGateway } = await import('./watch.ts')
  await watchGateway(args.filter((arg) => arg !== '--watch'))
}

async function runServe(
  command: Command,
  { quickStart: showQuickStart, dryRun }: ServeOptions,
): Promise<void> {
  const [{ exposureWarning }, { quickStart, readyBlock, reportToWatcher }, { readVersion }] =
    await Promise.all([
      import('./exposure.ts'),
      import('./ready-block.ts'),
      import('../../kernel/version.ts'),
    ])
  const config = await loadFromOptions(command)
  if (dryRun === true) return (await import('./dry-boot.ts')).dryBoot(config)
  const warning = exposureWarning(config)
  if (warning !== null) console.error(`weir: warning: ${warning}`)
  for (const notice of config.notices) console.error(`weir: note: ${notice}`)

  const { runGateway } = await import('./run-gateway.ts')
  await runGateway(config, {
    async reload(given) {
      const [next, { dryBoot }] = await Promise.all([
        loadFromOptions(command, undefined, given),
        import('./dry-boot.ts'),
      ])
      await dryBoot(next)
      return next
    },
    onReady(info) {
      process.stderr.write(readyBlock(config, info, readVersion()))
      if (showQuickStart && info.url !== null) process.stderr.write(quickStart(config, info.url))
      // The next start has the code compiled so far even if this process is killed.
      flushCompileCache()
      reportToWatcher(config, info)
    },
  })
}
