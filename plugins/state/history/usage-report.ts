/** Reports the stored bytes of tenants as a metric, and corrects their totals from time to time. Runs on control. */
import type { Metrics } from '#kernel'
import { LabelLimit, tenantsOf } from '#shared'
import type { Collections } from './collections.ts'
import type { TenantUsage } from './tenant-usage.ts'

const MAX_TENANT_LABELS = 100
const RECOUNT_MS = 3_600_000

export class UsageReport {
  readonly #usage: TenantUsage
  readonly #tenants: Collections['usage']
  readonly #labels = new LabelLimit(MAX_TENANT_LABELS)
  readonly #gauge: ReturnType<Metrics['gauge']>
  #recountAtMs = 0

  constructor(usage: TenantUsage, tenants: Collections['usage'], metrics: Metrics) {
    this.#usage = usage
    this.#tenants = tenants
    this.#gauge = metrics.gauge({
      name: 'weir_history_stored_bytes',
      help: 'Bytes of JSON of stored responses and conversations, by tenant; `other` beyond 100 tenants.',
      labels: ['tenant'],
    })
  }

  /** Reads the totals of all tenants; the first time and then once an hour, counts them first. */
  async refresh(): Promise<void> {
    const isRecount = performance.now() >= this.#recountAtMs
    if (isRecount) this.#recountAtMs = performance.now() + RECOUNT_MS
    const bytesOf = new Map<string, number>()
    for await (const tenant of tenantsOf(this.#tenants)) {
      if (isRecount) await this.#usage.recount(tenant)
      const { bytes } = await this.#usage.totals(tenant)
      const label = this.#labels.admit(tenant)
      bytesOf.set(label, (bytesOf.get(label) ?? 0) + bytes)
    }
    for (const [label, bytes] of bytesOf) this.#gauge.labels(label).value = bytes
  }
}
