/** Token usage by worker and by tenant, one lookup per response each. @hot */
import type { CounterHandle, MetricFamily, Metrics, TokenUsage } from '#kernel'
import { LabelLimit } from '#shared'

/** Further tenants are counted as `other`; tokens and trusted headers may name any number of them. */
const MAX_TENANTS = 100
/** Further workers are counted as `other`. */
const MAX_WORKERS = 1_000

export class UsageMetrics {
  readonly #workers: NamedCounters
  readonly #tenants: NamedCounters

  constructor(metrics: Metrics) {
    const worker = metrics.counter({
      name: 'weir_worker_tokens_total',
      help: 'Tokens that workers report; cached ones are part of the input, reasoning is part of the output.',
      labels: ['worker', 'token_type'],
    })
    const tenant = metrics.counter({
      name: 'weir_tenant_tokens_total',
      help: 'Tokens of the requests of tenants; `other` beyond 100 tenants.',
      labels: ['tenant', 'token_type'],
    })
    this.#workers = new NamedCounters(worker, MAX_WORKERS)
    this.#tenants = new NamedCounters(tenant, MAX_TENANTS)
  }

  onUsage(tenant: string, workerUrl: string, usage: TokenUsage): void {
    this.#workers.of(workerUrl).add(usage)
    this.#tenants.of(tenant).add(usage)
  }
}

/** Tokens by type. */
export class TokenCounters {
  readonly #input: CounterHandle
  readonly #output: CounterHandle
  readonly #cached: CounterHandle
  readonly #reasoning: CounterHandle

  /** @param labels of all series but the token type */
  constructor(family: MetricFamily<CounterHandle>, ...labels: readonly string[]) {
    this.#input = family.labels(...labels, 'input')
    this.#output = family.labels(...labels, 'output')
    this.#cached = family.labels(...labels, 'cached')
    this.#reasoning = family.labels(...labels, 'reasoning')
  }

  add({ input, output, cached, reasoning }: TokenUsage): void {
    this.#input.value += input
    this.#output.value += output
    this.#cached.value += cached
    this.#reasoning.value += reasoning
  }
}

/** Token counters by name, bounded in number. */
class NamedCounters {
  readonly #family: MetricFamily<CounterHandle>
  readonly #limit: LabelLimit
  readonly #byName = new Map<string, TokenCounters>()

  constructor(family: MetricFamily<CounterHandle>, max: number) {
    this.#family = family
    this.#limit = new LabelLimit(max)
  }

  of(name: string): TokenCounters {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const label = this.#limit.admit(name)
    const counters = this.#byName.get(label) ?? new TokenCounters(this.#family, label)
    this.#byName.set(label, counters)
    return counters
  }
}
