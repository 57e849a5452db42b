/** The mcp plugin: runs tools on servers of the Model Context Protocol. */
import {
  definePlugin,
  Generations,
  OutgoingHttp,
  RequestSteps,
  RequestTracing,
  ToolCallGuards,
  ToolLoop,
} from '#kernel'
import { mcpConfig } from './config.ts'
import { ConnectionPool } from './connection/connection-pool.ts'
import { ServerConnection } from './connection/server-connection.ts'
import { ToolCallGuardList, ToolMetrics, ToolRunner } from './loop/run-tool.ts'
import { GatewayToolLoop } from './tool-loop-service.ts'
import { ConfiguredServers } from './tools/configured-servers.ts'

export default definePlugin({
  manifest: {
    name: 'mcp',
    version: '0.1.0',
    description: 'Tools that the gateway runs: MCP servers, built-in tools, policy and audit.',
    provides: [ToolLoop, ToolCallGuards],
    uses: [Generations],
    usesOptionally: [RequestSteps, RequestTracing, OutgoingHttp],
    config: mcpConfig,
  },
  register(host, config) {
    const servers = new ConfiguredServers(config)
    if (!host.isData) return
    const { limits } = config
    const http = host.find(OutgoingHttp) ?? null
    const pool = new ConnectionPool(limits, (target, facts) =>
      ServerConnection.open(target, limits, host.log, http, facts),
    )
    const guards = new ToolCallGuardList()
    const metrics = new ToolMetrics(host.metrics, () => pool.size)
    const runner = new ToolRunner(config, guards, metrics, host.find(RequestSteps))
    host.provide(ToolCallGuards, guards)
    const tracing = host.find(RequestTracing)
    host.provide(ToolLoop, new GatewayToolLoop(host, { config, servers, pool, runner, metrics, tracing }))
    return { stop: () => pool.close() }
  },
})
