/** Token usage by worker and by tenant, one lookup per response each. @hot */
import type { CounterHandle, MetricFamily, Metrics, TokenUsage } from '#kernel'
import { LabelLimit } from '#shared'

/** Further tenants are counted as `other`; tokens and trusted headers may name any number of them. */
const MAX_TENANTS = 100
/** Further workers are counted as `other`. */
const MAX_WORKERS = 1_000

export class UsageMetrics {
  readonly #workers: TokenCounters
  readonly #tenants: TokenCounters

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
    this.#workers = new TokenCounters(worker, MAX_WORKERS)
    this.#tenants = new TokenCounters(tenant, MAX_TENANTS)
  }

  onUsage(tenant: string, workerUrl: string, usage: TokenUsage): void {
    this.#workers.add(workerUrl, usage)
    this.#tenants.add(tenant, usage)
  }
}

interface Counters {
  readonly input: CounterHandle
  readonly output: CounterHandle
  readonly cached: CounterHandle
  readonly reasoning: CounterHandle
}

class TokenCounters {
  readonly #family: MetricFamily<CounterHandle>
  readonly #limit: LabelLimit
  readonly #byName = new Map<string, Counters>()

  constructor(family: MetricFamily<CounterHandle>, max: number) {
    this.#family = family
    this.#limit = new LabelLimit(max)
  }

  add(name: string, { input, output, cached, reasoning }: TokenUsage): void {
    const counters = this.#byName.get(name) ?? this.#open(name)
    counters.input.value += input
    counters.output.value += output
    counters.cached.value += cached
    counters.reasoning.value += reasoning
  }

  #open(name: string): Counters {
    const label = this.#limit.admit(name)
    const known = this.#byName.get(label)
    if (known !== undefined) return known
    const counter = (type: string) => this.#family.labels(label, type)
    const counters = {
      input: counter('input'),
      output: counter('output'),
      cached: counter('cached'),
      reasoning: counter('reasoning'),
    }
    this.#byName.set(label, counters)
    return counters
  }
}
