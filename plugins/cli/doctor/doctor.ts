/** `weir doctor`: checks a running gateway against its configuration file. */
import type { Command } from 'commander'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import { findFlags } from '../config-options.ts'
import { ConfigError, describeProblem } from '../configuration/config-error.ts'
import { loadConfig } from '../configuration/load.ts'
import { exposureWarning } from '../exposure.ts'
import { GatewayClient, withGateway } from '../gateway-client.ts'
import { printResult } from '../output.ts'
import { pluginSchemas } from '../plugin-schemas.ts'
import { checkMesh, checkReadiness, checkWorkers, localUrl } from './check-gateway.ts'
import { checkCertificates, checkStores } from './check-machine.ts'
import { checkMetrics } from './check-metrics.ts'
import { type Finding, fail, ok, skip, warn } from './finding.ts'

const EXAMPLES = `
Examples:
  weir doctor --config weir.yaml
  WEIR_ADMIN_KEY=secret weir doctor --config weir.yaml --gateway https://gateway.example --json

Each line begins with ok, warn, fail or skip (not known); the exit code is 1 if a check fails. Run it on the machine and as the
user of the gateway.`

interface DoctorOptions {
  readonly config: string
  readonly gateway: string
  readonly apiKey?: string
  readonly json?: boolean
}

export function defineDoctor(command: Command): void {
  withGateway(command)
    .requiredOption('-c, --config <file>', 'configuration file of the gateway')
    .addHelpText('after', EXAMPLES)
    .action(async (options: DoctorOptions) => {
      const findings = await examine(command, options)
      printResult(options.json, findings, () => render(findings))
      if (findings.some(({ verdict }) => verdict === 'fail')) process.exitCode = 1
    })
}

async function examine(
  command: Command,
  { config: file, gateway, apiKey }: DoctorOptions,
): Promise<Finding[]> {
  let config: LoadedConfig
  try {
    // Not from options: --api-key is the key of this command, not a setting of the gateway.
    const flags = await findFlags({ file })
    config = await loadConfig({ file, flags, env: process.env, pluginSchemas })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const advice = 'correct the file, then run: weir config check'
    return error.problems.map((problem) => fail('configuration', describeProblem(problem), advice))
  }
  const { host, port, tls } = config.kernel
  const isGiven = command.getOptionValueSource('gateway') !== 'default'
  const url = isGiven ? gateway : localUrl(tls === undefined ? 'http' : 'https', host, port)
  const client = new GatewayClient({ url, apiKey })
  const groups = await Promise.all([
    ok('configuration', `${file} is valid`),
    tls === undefined ? skip('certificate', 'TLS is not enabled on the API port') : checkCertificates(tls),
    checkExposure(config),
    checkStores(config),
    checkReadiness(config, url),
    checkMetrics(config),
    checkMesh(config, client),
    checkWorkers(config, client),
  ])
  return groups.flat()
}

function checkExposure(config: LoadedConfig): Finding {
  const warning = exposureWarning(config)
  if (warning === null) return ok('exposure', 'other machines need a key, or cannot connect')
  return warn('exposure', warning, 'configure a key, or listen on loopback: kernel.host')
}

function render(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length))
  const lines = findings.flatMap(({ verdict, check, text, advice }) => [
    `${verdict.padEnd(4)}  ${check.padEnd(width)}  ${text}`,
    ...(advice === undefined ? [] : [`${' '.repeat(width + 8)}→ ${advice}`]),
  ])
  return lines.join('\n')
}
