/** Metrics of tools that the gateway runs. Labels have configured values only: names from clients are unbounded. */
import type { Metrics } from '#kernel'

export class ToolMetrics {
  readonly #calls
  readonly #seconds
  readonly #turns

  constructor(metrics: Metrics, openConnections: () => number) {
    this.#calls = metrics.counter({
      name: 'weir_mcp_tool_calls_total',
      help: 'Tool calls that the gateway ran, by server and outcome.',
      labels: ['server', 'outcome'],
    })
    this.#seconds = metrics.histogram({
      name: 'weir_mcp_tool_call_duration_seconds',
      help: 'Duration of tool calls.',
      labels: ['server'],
    })
    this.#turns = metrics.histogram({
      name: 'weir_mcp_turn_iterations',
      help: 'Model turns per request with tools of the gateway.',
      buckets: [1, 2, 3, 5, 8, 13, 21, 34],
    })
    const connections = metrics
      .gauge({ name: 'weir_mcp_connections', help: 'Open connections to tool servers.' })
      .labels()
    metrics.onCollect(() => {
      connections.value = openConnections()
    })
  }

  /** @param server configured label, type of a built-in tool, or `client` for servers named by clients */
  onCall(server: string, outcome: string, durationMs: number): void {
    this.#calls.labels(server, outcome).inc()
    this.#seconds.labels(server).observe(durationMs / 1_000)
  }

  onTurn(iterations: number): void {
    this.#turns.labels().observe(iterations)
  }
}
