/** The metrics of all engines as one text. Anybody may ask, so those who ask at the same time share one answer. */

import type { WorkerControls, WorkerEntry } from '#kernel'
import { printPrometheusText } from '#shared'
import { healthErrors } from './errors.ts'
import { inTurns } from './in-turns.ts'
import { mergeMetrics } from './merge-metrics.ts'
import { type ScrapeOptions, scrapeTargets, scrapeWorkers } from './scrape.ts'

type Controls = Pick<WorkerControls, 'controlOf'>

export class EngineMetricsPage {
  readonly #options: ScrapeOptions
  #reading: Promise<string> | null = null

  constructor(options: ScrapeOptions) {
    this.#options = options
  }

  /** @throws no_engine_metrics (503) */
  read(controls: Controls, workers: readonly WorkerEntry[]): Promise<string> {
    this.#reading ??= this.#read(controls, workers).finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #read(controls: Controls, workers: readonly WorkerEntry[]): Promise<string> {
    const targets = scrapeTargets(controls, workers)
    const answers = await scrapeWorkers(targets, this.#options)
    if (answers.length === 0) throw healthErrors.no_engine_metrics(targets.length)
    return inTurns(printPrometheusText(await inTurns(mergeMetrics(answers))))
  }
}
