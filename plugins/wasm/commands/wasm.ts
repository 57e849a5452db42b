/** `weir wasm`: defines the subcommands; each action is loaded on demand. */
import { type Command, Option } from 'commander'
import { repeatable } from '../../cli/config-options.ts'
import { withGateway } from '../../cli/gateway-client.ts'
import { LANGUAGES } from '../project/build-result.ts'

const EXAMPLES = `
Examples:
  weir wasm new my-module --lang assemblyscript          a project from a template
  weir wasm build my-module                              writes my-module/build/module.wasm
  weir wasm check my-module/build/module.wasm            does the gateway accept it?
  weir wasm test my-module                               runs my-module/cases/*.json, no gateway needed
  weir wasm bench my-module/build/module.wasm            calls per second, fresh and warm instances
  weir wasm add my-module --on-failure closed            registers it with a running gateway
  weir wasm replace my-module my-module                 switch to a new build, on every thread at once
  weir wasm history my-module                           list its versions
  weir wasm rollback my-module                          return to the earlier version
  weir wasm dev my-module --watch                       build and replace at every change
  weir wasm record my-module/cases/live.json            record live requests as a case, redacted
  weir wasm push ghcr.io/team/my-module:1.0 my-module   store it in an OCI registry
  weir wasm list
  weir wasm remove my-module

Tutorial: wasm-sdk/README.md. Interface: wasm-sdk/ABI.md.`

const NEW_EXAMPLES = `
Examples:
  weir wasm new my-module
  weir wasm new audit --lang rust --attach OnResponse,OnError --dir modules/audit
  weir wasm new keys --example wasm-auth

A project has its library, and a package.json with the gateway and the compiler that npm can install: it builds on other
machines after npm ci.`

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
  weir wasm bench my-module                              inputs from its cases, or samples
  weir wasm bench auth.wasm --duration-ms 5000 --json`

const TEST_EXAMPLES = `
Examples:
  weir wasm test my-module                               builds it first, then runs its cases
  weir wasm test build/module.wasm --cases recorded      a module and cases from any folder
  weir wasm test my-module --update                      writes the results into the cases
  weir wasm test my-module --gateway-config weir.yaml    with the limits of that gateway

A case is a JSON file with a title, settings and steps. Each step has an input and an expected result; only the
members of 'expect' are compared. Omit 'expect' and run with --update to record the current result.`

const ADD_EXAMPLES = `
Examples:
  weir wasm add my-module
  weir wasm add build/module.wasm --name auth --attach OnRequest --on-failure closed --config realm=demo
  weir wasm add auth.wasm --config-env jwt_secret=JWT_SECRET --timeout-ms 50
  weir wasm add oci://ghcr.io/team/auth:1.0 --sha256 … --attach OnRequest
  weir wasm add my-module --match models=gpt-*,demo --match header:x-beta=on --priority 5`

const PUSH_EXAMPLES = `
Examples:
  weir wasm push ghcr.io/team/my-module:1.0 my-module --username me --password-env REGISTRY_TOKEN
  weir wasm push localhost:5000/my-module build/module.wasm --plain-http

It prints file_path and sha256 as a registration needs them.`

export function defineWasm(command: Command): void {
  command.addHelpText('after', EXAMPLES)
  defineProject(command)
  defineTrials(command)
  defineRegistry(command)
  defineRegistered(command)
}

function defineProject(command: Command): void {
  command
    .command('new <name>')
    .description('Create a module project from a template.')
    .addOption(new Option('--lang <language>', 'language (default: assemblyscript)').choices(LANGUAGES))
    .option('--attach <points>', 'initial handlers, comma-separated (default: OnRequest)')
    .option('--example <name>', 'start from an example of the package, such as wasm-auth, instead')
    .option('--dir <folder>', 'target folder (default: the name)')
    .addHelpText('after', NEW_EXAMPLES)
    .action(async (name, options) => (await import('./new.ts')).makeProject(name, options))

  command
    .command('build [dir]')
    .description('Compile a module project.')
    .option('--out <file>', 'output file (default: build/module.wasm in the project)')
    .option('--debug', 'no optimisation, keep function names')
    .option('--json', 'print JSON')
    .addHelpText('after', BUILD_EXAMPLES)
    .action(async (folder, options) => (await import('./build.ts')).buildProject(folder ?? '.', options))
}

function defineTrials(command: Command): void {
  withLimits(
    command
      .command('check <file-or-dir>')
      .description('Describe a module and check whether the gateway accepts it; exit code 1 if not.'),
  )
    .option('--attach <points>', 'attach points to check, comma-separated (default: all it exports)')
    .addOption(repeatable('--config <key=value>', 'setting of the module; repeatable'))
    .option('--wasi', 'the module will be registered with WASI')
    .option('--json', 'print JSON')
    .addHelpText('after', CHECK_EXAMPLES)
    .action(async (file, options) => (await import('./check.ts')).checkFile(file, options))

  withLimits(
    command
      .command('test <file-or-dir>')
      .description('Run test cases against a module, without a gateway; exit code 1 if one fails.'),
  )
    .option('--cases <dir>', 'folder or file of cases (default: cases beside the module or above it)')
    .addOption(instanceKind())
    .option('--wasi', 'the module will be registered with WASI')
    .option('--update', 'write the results into the cases where they differ')
    .option('--json', 'print JSON')
    .addHelpText('after', TEST_EXAMPLES)
    .action(async (place, options) => (await import('./test.ts')).testModule(place, options))

  withLimits(
    command
      .command('bench <file-or-dir>')
      .description('Measure calls of a module by attach point, with fresh and warm instances.'),
  )
    .option('--duration-ms <ms>', 'time for each measurement, milliseconds', '1000')
    .option('--cases <dir>', 'take inputs from cases (default: cases beside the module, else samples)')
    .addOption(repeatable('--config <key=value>', 'setting of the module; repeatable'))
    .option('--wasi', 'the module will be registered with WASI')
    .option('--json', 'print JSON')
    .addHelpText('after', BENCH_EXAMPLES)
    .action(async (file, options) => (await import('./bench.ts')).benchModule(file, options))
}

function instanceKind(): Option {
  return new Option(
    '--instance <kind>',
    'instance kind (default: from the description of the module)',
  ).choices(['fresh', 'reuse', 'shared'])
}

/** Options for the limits of a gateway. */
function withLimits(command: Command): Command {
  return command
    .option('--gateway-config <file>', 'take the limits from plugins.wasm of this file')
    .option('--timeout-ms <ms>', 'maximum time of a call, milliseconds')
    .option('--memory-pages <count>', 'maximum memory of the module, pages of 64 KiB')
}

/** Options of a registration. */
function withDescriptor(command: Command): Command {
  return command
    .option('--name <name>', 'name of the module (default: name of the file or project)')
    .option('--attach <points>', 'attach points, comma-separated (default: all it exports)')
    .addOption(repeatable('--config <key=value>', 'setting of the module; repeatable'))
    .addOption(
      repeatable(
        '--config-env <key=VARIABLE>',
        'setting from an environment variable, for secrets; repeatable',
      ),
    )
    .addOption(
      new Option(
        '--on-failure <policy>',
        'effect of a failed call (default: from the description of the module)',
      ).choices(['open', 'closed']),
    )
    .addOption(instanceKind())
    .addOption(
      new Option('--placement <place>', 'where it runs (default: plugins.wasm.placement)').choices([
        'pool',
        'inline',
        'auto',
      ]),
    )
    .addOption(
      new Option('--kv <place>', 'where its values are kept (default: memory)').choices([
        'memory',
        'store',
        'mesh',
      ]),
    )
    .addOption(
      repeatable(
        '--match <member=value>',
        'requests to match: routes, models or tenants with a list, header:NAME, share; repeatable (default: all)',
      ),
    )
    .option('--priority <number>', 'modules with a higher priority run first (default: 0)')
    .option('--fuel <units>', 'fuel of a call (default: plugins.wasm.fuel)')
    .option('--timeout-ms <ms>', 'maximum time of a call, milliseconds (default: plugins.wasm.timeoutMs)')
    .option('--wasi', 'the module imports WASI preview 1')
    .option('--sha256 <digest>', 'SHA-256 of the module, hexadecimal; required for a URL')
    .option('--allow-host <origins...>', 'origins it may fetch from, such as https://api.example.com')
}

function defineRegistry(command: Command): void {
  withRegistry(
    command
      .command('push <reference> <file-or-dir>')
      .description('Store a module in an OCI registry, in the layout of wkg and Spin.'),
  )
    .addHelpText('after', PUSH_EXAMPLES)
    .action(async (reference, place, options) =>
      (await import('./registry.ts')).pushModule(reference, place, options),
    )

  withRegistry(
    command.command('pull <reference>').description('Write the module of an OCI registry to a file.'),
  )
    .option('--out <file>', 'output file (default: name of the repository with .wasm)')
    .action(async (reference, options) => (await import('./registry.ts')).pullModule(reference, options))
}

/** Options of the access to a registry. */
function withRegistry(command: Command): Command {
  return command
    .option('--username <name>', 'user of the registry (default: the password is a bearer token)')
    .option('--password-env <variable>', 'environment variable with the password or token')
    .option('--password-file <file>', 'file with the password or token')
    .option('--plain-http', 'without TLS, for a local registry')
    .option('--timeout-ms <ms>', 'maximum time, milliseconds', '60000')
    .option('--json', 'print JSON')
}

function defineRegistered(command: Command): void {
  withDescriptor(
    withGateway(
      command
        .command('add <file-dir-or-url>')
        .description(
          'Register a module with a running gateway, which must be able to read the same file, https URL or OCI reference.',
        ),
    ),
  )
    .addHelpText('after', ADD_EXAMPLES)
    .action(async (place, options, self) => (await import('./registered.ts')).addModule(self, place, options))

  withDescriptor(
    withGateway(
      command
        .command('replace <name-or-uuid> <file-dir-or-url>')
        .description('Replace a module by a new version; options that are not given keep their value.'),
    ),
  )
    .option('--canary <percent>', 'trial: send this percentage of the requests to the new version')
    .action(async (nameOrUuid, place, options, self) =>
      (await import('./registered.ts')).replaceModule(self, nameOrUuid, place, options),
    )

  for (const [action, description] of [
    ['promote', 'Make the version on trial the current one.'],
    ['rollback', 'End a trial, or return to the earlier version.'],
  ] as const) {
    withGateway(command.command(`${action} <name-or-uuid>`).description(description)).action(
      async (nameOrUuid, options, self) =>
        (await import('./registered.ts')).changeVersion(self, action, nameOrUuid, options),
    )
  }

  withGateway(
    command
      .command('history <name-or-uuid>')
      .description('Show the current, trial and earlier versions of a module.'),
  ).action(async (nameOrUuid, options, self) =>
    (await import('./history.ts')).showHistory(self, nameOrUuid, options),
  )

  withDescriptor(
    withGateway(
      command
        .command('dev <dir>')
        .description(
          'Build a project and register it with a running gateway, replacing the module of the same name.',
        ),
    ),
  )
    .option('--watch', 'repeat at every change of its sources, until interrupted')
    .action(async (place, options, self) => (await import('./dev.ts')).developModule(self, place, options))

  withGateway(
    command
      .command('record <file>')
      .description('Record the module inputs of live requests as a case, without credentials.'),
  )
    .option('--count <count>', 'maximum number of steps', '10')
    .option('--seconds <seconds>', 'maximum duration, at most 25', '20')
    .option('--bodies', 'include bodies and stream events')
    .option('--title <title>', 'of the case')
    .action(async (file, options, self) => (await import('./record.ts')).recordCase(self, file, options))

  withGateway(
    command.command('list').description('Show the modules of a running gateway with call statistics.'),
  ).action(async (options, self) => (await import('./registered.ts')).listModules(self, options))

  withGateway(
    command.command('remove <name-or-uuid>').description('Remove a module; calls in progress finish.'),
  ).action(async (nameOrUuid, options, self) =>
    (await import('./registered.ts')).removeModule(self, nameOrUuid, options),
  )
}
