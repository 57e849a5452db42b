/** The command tree: loads only the requested subcommand and converts failures to exit codes. */
import { Command, CommanderError } from 'commander'
import { readVersion } from '../../kernel/version.ts'
import { CliError } from './output.ts'

interface Subcommand {
  readonly name: string
  readonly summary: string
  /** Adds options, examples and the action. */
  readonly load: () => Promise<(command: Command, args: readonly string[]) => void | Promise<void>>
}

const SUBCOMMANDS: readonly Subcommand[] = [
  {
    name: 'serve',
    summary: 'run the gateway',
    load: async () => (await import('./serve.ts')).defineServe,
  },
  {
    name: 'sim',
    summary: 'run a simulated engine, to try the gateway without a GPU',
    load: async () => (await import('../sim/commands/sim.ts')).defineSim,
  },
  {
    name: 'workers',
    summary: 'list, add, drain and remove workers of a running gateway',
    load: async () => (await import('../workers/registry/commands/workers.ts')).defineWorkers,
  },
  {
    name: 'keys',
    summary: 'create, list and revoke API keys of a running gateway',
    load: async () => (await import('../access/keys/commands/keys.ts')).defineKeys,
  },
  {
    name: 'plugins',
    summary: 'list plugins, why each is enabled and what it costs',
    load: async () => (await import('./plugins.ts')).definePlugins,
  },
  {
    name: 'plugin',
    summary: 'create a plugin of your own',
    load: async () => (await import('./plugin.ts')).definePlugin,
  },
  {
    name: 'config',
    summary: 'check, show, plan, apply and roll back the configuration',
    load: async () => (await import('./config.ts')).defineConfig,
  },
  {
    name: 'doctor',
    summary: 'check a running gateway and say what to do',
    load: async () => (await import('./doctor/doctor.ts')).defineDoctor,
  },
  {
    name: 'history',
    summary: 'count, move and prune stored responses and conversations',
    load: async () => (await import('../state/history/commands/history.ts')).defineHistory,
  },
  {
    name: 'usage',
    summary: 'show tokens, requests and costs of tenants, keys and models',
    load: async () => (await import('../access/usage/commands/usage.ts')).defineUsage,
  },
  {
    name: 'mesh',
    summary: 'show the gateways of a mesh, leave it, and restore its records',
    load: async () => (await import('../mesh/mesh/commands/mesh.ts')).defineMesh,
  },
  {
    name: 'wasm',
    summary: 'write, check, test and register middleware modules in WebAssembly',
    load: async () => (await import('../wasm/commands/wasm.ts')).defineWasm,
  },
  {
    name: 'mcp',
    summary: 'check tool servers',
    load: async () => (await import('../tools/mcp/commands/mcp.ts')).defineMcp,
  },
  {
    name: 'tokenizers',
    summary: 'check the files of a tokenizer and its chat templates',
    load: async () => (await import('../models/tokenizers/commands/tokenizers.ts')).defineTokenizers,
  },
]

const EXAMPLES = `
Examples:
  weir sim --model demo                                  a simulated engine on port 9001
  weir serve --worker-url http://127.0.0.1:9001          a gateway in front of it
  weir serve --config weir.yaml                          configured by a file
  weir workers list                                      list the registered workers
  weir config check weir.yaml                            validate the configuration

Run 'weir <command> --help' for the options of a command.`

/** Exit codes: 0 success, 1 failure, 2 invalid command line or configuration. */
export async function runCommand(args: readonly string[]): Promise<void> {
  // A reader such as `head` may close the pipe early.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  try {
    const program = await buildProgram(args)
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    process.exitCode = report(error)
  }
}

/** The command tree; only the command in the arguments is loaded. */
export async function buildProgram(args: readonly string[]): Promise<Command> {
  const program = new Command('weir')
    .description('Weir, an inference gateway: one address in front of many model servers.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .showHelpAfterError("(run 'weir --help' for the list of commands)")
    .exitOverride()
    .addHelpText('after', EXAMPLES)
  const requested = args.find((arg) => SUBCOMMANDS.some(({ name }) => name === arg))
  for (const { name, summary, load } of SUBCOMMANDS) {
    const command = program.command(name).summary(summary).description(sentence(summary))
    command.helpOption('-h, --help', 'print help')
    command.showHelpAfterError(`(run 'weir ${name} --help' for its options)`)
    if (name === requested) await (await load())(command, args)
  }
  return program
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`
}

/** Prints a failure, with a stack only if it is unexpected. @returns the exit code */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (!(error instanceof Error)) {
    console.error(`weir: ${String(error)}`)
    return 1
  }
  const lines = error.message.split('\n')
  const list = lines.map((line) => `  ${line}`).join('\n')
  if (error.name === 'ConfigError') {
    const count = lines.length === 1 ? 'a problem' : `${lines.length} problems`
    console.error(`weir: the configuration has ${count}\n${list}`)
    return 2
  }
  if (error.name === 'BootError' && lines.length > 1) {
    console.error(`weir: ${lines.length} problems keep the gateway from starting\n${list}`)
    return 1
  }
  const isExpected =
    error instanceof CliError || ['BootError', 'ControlError', 'GatewayError'].includes(error.name)
  console.error(`weir: ${isExpected ? error.message : (error.stack ?? error.message)}`)
  return 1
}
