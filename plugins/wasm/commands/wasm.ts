/** `weir wasm`: from a new module to one that runs in the gateway; each action is loaded when it is asked for. */
import { type Command, Option } from 'commander'
import { repeatable } from '../../cli/config-options.ts'
import { withGateway } from '../../cli/gateway-client.ts'

const EXAMPLES = `
Examples:
  weir wasm new my-module --lang assemblyscript          a project from a template
  weir wasm build my-module                              writes my-module/build/module.wasm
  weir wasm check my-module/build/module.wasm            would the gateway take it?
  weir wasm test my-module                               plays my-module/cases/*.json, no gateway needed
  weir wasm bench my-module/build/module.wasm            calls per second, fresh and warm instances
  weir wasm add my-module --on-failure closed            registers it with a running gateway
  weir wasm replace my-module my-module                 a new build in its place, on every thread at once
  weir wasm history my-module                           its versions
  weir wasm rollback my-module                          back to the one before
  weir wasm dev my-module --watch                       builds and replaces at every change
  weir wasm record my-module/cases/live.json            live requests as a case, redacted
  weir wasm list
  weir wasm remove my-module

The tutorial is wasm-sdk/README.md; what modules and the gateway agree on is wasm-sdk/ABI.md.`

const NEW_EXAMPLES = `
Examples:
  weir wasm new my-module
  weir wasm new audit --lang rust --attach OnResponse,OnError --dir modules/audit`

const BUILD_EXAMPLES = `
Examples:
  weir wasm build my-module
  weir wasm build my-module --debug --out /tmp/my-module.wasm`

const CHECK_EXAMPLES = `
Examples:
  weir wasm check my-module
  weir wasm check auth.wasm --attach OnRequest --config jwt_secret=any
  weir wasm check auth.wasm --gateway-config weir.yaml --json | jq .findings`

const BENCH_EXAMPLES = `
Examples:
  weir wasm bench my-module                              inputs from its cases, or plain ones
  weir wasm bench auth.wasm --duration-ms 5000 --json`

const TEST_EXAMPLES = `
Examples:
  weir wasm test my-module                               builds it first, then plays its cases
  weir wasm test build/module.wasm --cases recorded      a module and cases of any place
  weir wasm test my-module --update                      writes what the module does into the cases
  weir wasm test my-module --gateway-config weir.yaml    with the limits of that gateway

A case is a JSON file: a title, settings, and steps, each with what goes in and what is expected; only what
'expect' names is compared. Give a step no 'expect' and run with --update to record what it does now.`

const ADD_EXAMPLES = `
Examples:
  weir wasm add my-module
  weir wasm add build/module.wasm --name auth --attach OnRequest --on-failure closed --config realm=demo
  weir wasm add auth.wasm --config-env jwt_secret=JWT_SECRET --timeout-ms 50
  weir wasm add my-module --match models=gpt-*,demo --match header:x-beta=on --priority 5`

export function defineWasm(command: Command): void {
  command.addHelpText('after', EXAMPLES)
  defineProject(command)
  defineTrials(command)
  defineRegistered(command)
}

function defineProject(command: Command): void {
  command
    .command('new <name>')
    .description('Make a folder with a module that works, from a template.')
    .addOption(language())
    .option('--attach <points>', 'handlers to begin with, comma-separated (default: OnRequest)')
    .option('--dir <folder>', 'where to make it (default: a folder of that name)')
    .addHelpText('after', NEW_EXAMPLES)
    .action(async (name, options) => (await import('./new.ts')).makeProject(name, options))

  command
    .command('build [dir]')
    .description('Compile a module project; what a language needs is said where it is missing.')
    .option('--out <file>', 'where to write the module (default: build/module.wasm in the project)')
    .option('--debug', 'no optimisation, names of functions stay')
    .option('--json', 'print JSON')
    .addHelpText('after', BUILD_EXAMPLES)
    .action(async (folder, options) => (await import('./build.ts')).buildProject(folder ?? '.', options))
}

function language(): Option {
  return new Option('--lang <language>', 'language')
    .choices(['assemblyscript', 'rust', 'go', 'c', 'wat'])
    .default('assemblyscript')
}

function defineTrials(command: Command): void {
  withLimits(
    command
      .command('check <file-or-dir>')
      .description('Say what a module is and whether the gateway takes it; exit code 1 when not.'),
  )
    .option('--attach <points>', 'where it is to be attached, comma-separated (default: wherever it can be)')
    .addOption(repeatable('--config <key=value>', 'setting that the module needs to run; repeatable'))
    .option('--wasi', 'it will be registered with WASI')
    .option('--json', 'print JSON')
    .addHelpText('after', CHECK_EXAMPLES)
    .action(async (file, options) => (await import('./check.ts')).checkFile(file, options))

  withLimits(
    command
      .command('test <file-or-dir>')
      .description('Play cases through a module, without a gateway; exit code 1 when one differs.'),
  )
    .option('--cases <dir>', 'folder or file of cases (default: cases beside the module or above it)')
    .addOption(
      new Option('--instance <kind>', 'as it will be registered (default: as the module says)').choices([
        'fresh',
        'reuse',
        'shared',
      ]),
    )
    .option('--wasi', 'it will be registered with WASI')
    .option('--update', 'write what the module does into the cases, in place of what differs')
    .option('--json', 'print JSON')
    .addHelpText('after', TEST_EXAMPLES)
    .action(async (place, options) => (await import('./test.ts')).testModule(place, options))

  withLimits(
    command
      .command('bench <file-or-dir>')
      .description('Measure calls of a module, by attach point, with fresh and warm instances.'),
  )
    .option('--duration-ms <ms>', 'time for each measurement, milliseconds', '1000')
    .option(
      '--cases <dir>',
      'take the inputs from cases (default: cases beside the module, else plain inputs)',
    )
    .addOption(repeatable('--config <key=value>', 'setting of the module; repeatable'))
    .option('--wasi', 'it will be registered with WASI')
    .option('--json', 'print JSON')
    .addHelpText('after', BENCH_EXAMPLES)
    .action(async (file, options) =>
      (await importQuietly(() => import('./bench.ts'))).benchModule(file, options),
    )
}

/** Limits of a gateway; by default those it has by default. */
function withLimits(command: Command): Command {
  return command
    .option('--gateway-config <file>', 'take the limits from the wasm section of this file')
    .option('--timeout-ms <ms>', 'longest call, milliseconds')
    .option('--memory-pages <count>', 'most memory of the module, pages of 64 KiB')
}

/** What a registration says of a module. */
function withDescriptor(command: Command): Command {
  return command
    .option('--name <name>', 'name of the module (default: that of the file or the project)')
    .option('--attach <points>', 'where to attach it, comma-separated (default: wherever it can be)')
    .addOption(repeatable('--config <key=value>', 'setting of the module; repeatable'))
    .addOption(
      repeatable(
        '--config-env <key=VARIABLE>',
        'setting from an environment variable, for secrets; repeatable',
      ),
    )
    .addOption(
      new Option('--on-failure <policy>', 'what a failed call does (default: as the module says)').choices([
        'open',
        'closed',
      ]),
    )
    .addOption(
      new Option('--instance <kind>', 'fresh or warm instances (default: as the module says)').choices([
        'fresh',
        'reuse',
        'shared',
      ]),
    )
    .addOption(
      new Option('--placement <place>', 'where it runs (default: as the gateway says)').choices([
        'pool',
        'inline',
        'auto',
      ]),
    )
    .addOption(
      repeatable(
        '--match <member=value>',
        'requests that it is for: routes, models or tenants and a list, header:NAME, share; repeatable (default: all)',
      ),
    )
    .option('--priority <number>', 'modules of a higher one run first (default: 0)')
    .option('--fuel <units>', 'units that a call may burn (default: as the gateway says)')
    .option('--timeout-ms <ms>', 'longest call, milliseconds (default: as the gateway says)')
    .option('--wasi', 'the module imports WASI preview 1')
    .option('--allow-host <origins...>', 'where it may fetch from, such as https://api.example.com')
}

function defineRegistered(command: Command): void {
  withDescriptor(
    withGateway(
      command
        .command('add <file-or-dir>')
        .description('Register a module with a running gateway, which must see the same file.'),
    ),
  )
    .addHelpText('after', ADD_EXAMPLES)
    .action(async (place, options, self) => (await import('./registered.ts')).addModule(self, place, options))

  withDescriptor(
    withGateway(
      command
        .command('replace <name-or-uuid> <file-or-dir>')
        .description('Put a new version in the place of a module; what is not said stays as it is.'),
    ),
  )
    .option('--canary <percent>', 'on trial: this part of the requests gets the new version')
    .option('--shadow', 'on trial: the new version sees every request, and what it says is only compared')
    .action(async (nameOrUuid, place, options, self) =>
      (await import('./registered.ts')).replaceModule(self, nameOrUuid, place, options),
    )

  for (const [action, description] of [
    ['promote', 'Let the version on trial take over.'],
    ['rollback', 'End a trial, or go back to the version before.'],
  ] as const) {
    withGateway(command.command(`${action} <name-or-uuid>`).description(description)).action(
      async (nameOrUuid, options, self) =>
        (await import('./registered.ts')).changeVersion(self, action, nameOrUuid, options),
    )
  }

  withGateway(
    command
      .command('history <name-or-uuid>')
      .description('Show the versions of a module: the one that runs, one on trial, and those before.'),
  ).action(async (nameOrUuid, options, self) =>
    (await import('./history.ts')).showHistory(self, nameOrUuid, options),
  )

  withDescriptor(
    withGateway(
      command
        .command('dev <dir>')
        .description(
          'Build a project and put it into a running gateway, in the place of the module of its name.',
        ),
    ),
  )
    .option('--watch', 'again at every change of its sources, until interrupted')
    .action(async (place, options, self) => (await import('./dev.ts')).developModule(self, place, options))

  withGateway(
    command
      .command('record <file>')
      .description('Write what modules are shown of live requests into a case, without credentials.'),
  )
    .option('--count <count>', 'steps, at most', '10')
    .option('--seconds <seconds>', 'time, at most; 25 is the longest', '20')
    .option('--bodies', 'with bodies and events of streams, as they came')
    .option('--title <title>', 'of the case')
    .action(async (file, options, self) => (await import('./record.ts')).recordCase(self, file, options))

  withGateway(
    command.command('list').description('Show the modules of a running gateway and what their calls took.'),
  ).action(async (options, self) => (await import('./registered.ts')).listModules(self, options))

  withGateway(
    command.command('remove <name-or-uuid>').description('Remove a module; calls under way finish.'),
  ).action(async (nameOrUuid, options, self) =>
    (await import('./registered.ts')).removeModule(self, nameOrUuid, options),
  )
}

/** The host of modules makes Node warn of WASI, whether a module uses it or not. */
async function importQuietly<T>(load: () => Promise<T>): Promise<T> {
  process.removeAllListeners('warning')
  return load()
}
