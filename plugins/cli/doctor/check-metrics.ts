/** Checks a running gateway by its metrics: the last reload, the certificate in use and the descriptor limit. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type PrometheusFamily, parsePrometheusText } from '#shared'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import { get, localUrl, reasonOf } from './check-gateway.ts'
import { type Finding, fail, ok, skip, warn } from './finding.ts'

/** Descriptors for files, listeners and threads; the others are for connections. */
const OWN_DESCRIPTORS = 128
/** Below this limit, a default configuration accepts fewer than about 2,000 connections. */
const LOW_DESCRIPTORS = 4_096

export async function checkMetrics({ kernel, plugins }: LoadedConfig): Promise<Finding[]> {
  const { metrics } = plugins
  if (metrics === undefined) {
    const text = 'the limit of the gateway is not known: the metrics plugin is not enabled'
    return [skip('descriptors', text, 'add `metrics: {}` under plugins')]
  }
  if (metrics.port === 0)
    return [skip('metrics', 'plugins.metrics.port is 0, so the port is known to the running gateway only')]
  const url = `${localUrl('http', String(metrics.host), Number(metrics.port))}/metrics`
  let families: readonly PrometheusFamily[]
  try {
    families = [...parsePrometheusText(await (await get(url)).text())]
  } catch (error) {
    const problem = `${url} cannot be reached: ${reasonOf(error)}`
    return [
      fail('metrics', problem, 'is the gateway running with this configuration file?'),
      skip('descriptors', 'the limit of the gateway is not known without metrics'),
    ]
  }
  const found = [ok('metrics', `${url} is reachable`), judgeReload(families)]
  if (kernel.tls !== undefined) found.push(...judgeCertificate(families, kernel.tls.certFile))
  // The limit of the running process, which is not that of this shell.
  const limit = sampleOf(families, 'weir_process_max_fds')
  if (limit === 0) return [...found, skip('descriptors', 'the limit is not known on this system')]
  return [...found, judgeLimit(limit, kernel.http.maxConnections)]
}

/** The first sample of a metric; 0 without one. */
function sampleOf(families: readonly PrometheusFamily[], metric: string): number {
  return Number(families.find(({ name }) => name === metric)?.samples[0]?.value ?? 0)
}

function judgeReload(families: readonly PrometheusFamily[]): Finding {
  if (sampleOf(families, 'weir_config_last_reload_successful') === 1)
    return ok('reload', 'the gateway uses the configuration that it read last')
  return fail(
    'reload',
    'the gateway rejected its configuration file and runs with the previous one',
    'see the problem with weir config plan or in the log, correct the file, then run: weir config apply (or send SIGHUP)',
  )
}

/** A renewed file is used after a reload only. The validity of the file is checked without the gateway. */
function judgeCertificate(families: readonly PrometheusFamily[], certFile: string): Finding[] {
  const usedUntilSecs = sampleOf(families, 'weir_tls_certificate_expiry_timestamp_seconds')
  try {
    const { validToDate } = new X509Certificate(readFileSync(certFile))
    if (usedUntilSecs === 0 || usedUntilSecs === validToDate.getTime() / 1000) return []
  } catch {
    return []
  }
  const day = new Date(usedUntilSecs * 1000).toISOString().slice(0, 10)
  const text = `the gateway uses a certificate that expires on ${day}, which is no longer the one in ${certFile}`
  return [warn('certificate', text, 'run: weir config apply (or send SIGHUP)')]
}

/** A request takes the connection of its client and one to a worker. */
export function judgeLimit(limit: number, maxConnections: number | undefined): Finding {
  const advice = 'raise LimitNOFILE of the unit, or ulimit -n of the container'
  if (maxConnections === undefined) {
    const text = `limit of ${limit}; by default half of it is for client connections`
    return limit < LOW_DESCRIPTORS ? warn('descriptors', text, advice) : ok('descriptors', text)
  }
  const needed = 2 * maxConnections + OWN_DESCRIPTORS
  const text = `limit of ${limit}; ${maxConnections} client connections and theirs to workers need ${needed}`
  if (limit >= needed) return ok('descriptors', text)
  const orLess = `${advice}, or lower kernel.http.maxConnections`
  return limit < maxConnections + OWN_DESCRIPTORS
    ? fail('descriptors', text, orLess)
    : warn('descriptors', text, orLess)
}
