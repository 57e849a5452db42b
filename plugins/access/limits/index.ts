/** The limits plugin: concurrency, request rate, priority scheduling and tenant limits. */
import { definePlugin, Mesh, ModelTargets, RequestSteps } from '#kernel'
import { LimitSharingReplica } from './allowance/allowance.ts'
import { MeshLimits } from './allowance/mesh-limits.ts'
import { PRIORITY_HEADERS } from './concurrency-limiter.ts'
import { limitsConfig } from './config.ts'
import { limitsFlags } from './flags.ts'
import {
  ChangeLimits,
  changedLimits,
  isCountingTokens,
  LimitsReplica,
  limitsProblems,
} from './limits-settings.ts'
import { limitsRoutes } from './routes.ts'
import { nowMs, ThreadLimits } from './thread-limits.ts'

export default definePlugin({
  manifest: {
    name: 'limits',
    version: '0.1.0',
    description: 'Concurrency and rate limits, tenant limits, priority scheduling.',
    usesOptionally: [Mesh, ModelTargets, RequestSteps],
    config: limitsConfig,
    flags: limitsFlags,
    reloads: [
      'maxConcurrentRequests',
      'queueSize',
      'queueTimeoutMs',
      'requestsPerSecond',
      'burst',
      'tenants.default',
      'tenants.overrides',
      'tenants.trustTenantHeader',
      'scheduler',
    ],
  },
  check: limitsProblems,
  register(host, config) {
    const replica = host.replica(LimitsReplica)
    // A thread that replaces a dead one starts with the current settings.
    const limits = new ThreadLimits(host, replica.current ?? config)
    const { admission } = limits
    const sharing = host.replica(LimitSharingReplica)
    const mesh = host.isControl ? host.find(Mesh) : undefined
    // Late: requests that other hooks respond to are not counted.
    const serving = {
      scope: 'all',
      order: 'late',
      routes: (route: { access: string }) => route.access === 'api',
      startsOff: true,
    } as const
    const gates = [
      // The queues have their own timeouts.
      host.hook('onRequest', (ctx) => admission.enter(ctx), { ...serving, timeoutMs: 0 }),
      // Admission happens once per request; each further generation of a tool loop counts for the tenant.
      host.hook('onGeneration', (ctx, generation) => admission.onGeneration(ctx, generation), serving),
      host.hook('onDone', (ctx) => admission.end(ctx), serving),
    ]
    const flip = () => {
      for (const gate of gates) gate.update({ isOn: limits.isLimiting })
      if (isCountingTokens(limits.settings)) host.upstream.countUsage()
    }
    // Of the configuration file.
    let own = config
    const share = () => {
      limits.setSharing(sharing.current)
      flip()
    }
    share()
    sharing.onChange(share)
    replica.onChange((next) => {
      limits.setLimits(next ?? own)
      flip()
    })
    const headers = [...PRIORITY_HEADERS, config.tenants.tenantHeaderName]
    for (const route of limitsRoutes(host, headers, (tenant, model) => limits.show(tenant, model)))
      host.route(route)
    const gateways =
      mesh === undefined
        ? null
        : new MeshLimits(host, mesh, limits.openAllowanceMemory(), nowMs, () => limits.settings)
    gateways?.check(config)
    host.onCommand(ChangeLimits, async (change) => {
      if (gateways?.isShared) await gateways.change(change)
      else await host.publish(LimitsReplica, changedLimits(limits.settings, change))
    })
    return {
      start: async () => {
        limits.start()
        await gateways?.start()
      },
      // The file replaces changes made by PUT /limits.
      reload: async (next) => {
        gateways?.check(next)
        own = next
        if (!host.isControl) return
        if (gateways?.isShared) await gateways.reset()
        await host.publish(LimitsReplica, next)
      },
      stop: async () => {
        limits.stop()
        await gateways?.stop()
      },
    }
  },
})
