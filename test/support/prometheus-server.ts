/** A real Prometheus server that scrapes one target each second and evaluates the alert rules of the examples. */
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from './built-command.ts'
import { endsWithTest } from './child-processes.ts'
import { freePort } from './free-port.ts'
import { findPrometheusProgram } from './promtool.ts'

const RULES = fileURLToPath(new URL('../../examples/observability/alerts.yml', import.meta.url))

const program = findPrometheusProgram('prometheus', 'alerts of a live gateway')

/** False if it is not installed. */
export const hasPrometheus = program !== null

interface Alert {
  readonly state: 'pending' | 'firing'
  readonly labels: Readonly<Record<string, string>>
}

export class PrometheusServer {
  readonly #url: string

  /** Use `startPrometheus`. */
  constructor(url: string) {
    this.#url = url
  }

  /** Firing alerts: their names, each with the worker it is about. */
  async firing(): Promise<string[]> {
    const { alerts } = (await this.#get('alerts')) as { alerts: Alert[] }
    const names = alerts
      .filter(({ state }) => state === 'firing')
      .map(({ labels: { alertname, worker } }) =>
        worker === undefined ? alertname : `${alertname} ${worker}`,
      )
    return [...new Set(names)].sort()
  }

  /** Number of scrapes of the target so far, failed ones included. */
  async scrapes(): Promise<number> {
    const { result } = (await this.#get('query?query=count_over_time(up[1h])')) as {
      result: { value: [number, string] }[]
    }
    return Number(result[0]?.value[1] ?? 0)
  }

  async #get(path: string): Promise<unknown> {
    const response = await fetch(`${this.#url}/api/v1/${path}`)
    return ((await response.json()) as { data: unknown }).data
  }
}

/** @param folder for its data @param target URL of the metrics of a gateway */
export async function startPrometheus(folder: string, target: string): Promise<PrometheusServer> {
  if (program === null) throw new Error('prometheus is not installed')
  const { host, pathname } = new URL(target)
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    scrape_configs: [{ job_name: 'weir', metrics_path: pathname, static_configs: [{ targets: [host] }] }],
    rule_files: ['alerts.yml'],
  }
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'alerts.yml'), readFileSync(RULES, 'utf8').replace(/^( *for:).*$/gm, '$1 1s'))
  // JSON is YAML.
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const flags = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=error',
  ]
  const child = endsWithTest(spawn(program, flags, { stdio: ['ignore', 'inherit', 'inherit'] }))
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`prometheus ended with code ${child.exitCode}`)
    return fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  })
  return new PrometheusServer(url)
}
