/** The limits plugin: how many requests run at once, how many begin, who goes first, and what each tenant may use. */
import { definePlugin } from '#kernel'
import { limitsConfig } from './config.ts'
import { limitsFlags } from './flags.ts'
import {
  ChangeLimits,
  changedLimits,
  isCountingTokens,
  isLimiting,
  LimitsReplica,
  limitsProblems,
} from './limits-settings.ts'
import { limitsRoutes } from './routes.ts'
import { ThreadLimits } from './thread-limits.ts'
import { PRIORITY_HEADERS } from './turnstile.ts'

export default definePlugin({
  manifest: {
    name: 'limits',
    version: '0.1.0',
    description: 'Limits of concurrency and rate, limits of tenants, admission by priority.',
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
    // A thread that replaces a dead one finds what was changed since the boot.
    const limits = new ThreadLimits(host, replica.current ?? config)
    const { admission } = limits
    // Late: what other hooks answer themselves takes no place.
    const serving = {
      scope: 'all',
      order: 'late',
      routes: (route: { access: string }) => route.access === 'api',
      startsOff: true,
    } as const
    const gates = [
      // Queues have limits of their own.
      host.hook('onRequest', (ctx) => admission.enter(ctx), { ...serving, timeoutMs: 0 }),
      // The client's request is admitted once; each further generation that a tool loop makes of it counts for its tenant.
      host.hook('onGeneration', (ctx, generation) => admission.onGeneration(ctx, generation), serving),
      host.hook('onDone', (ctx) => admission.end(ctx), serving),
    ]
    const meters = [
      host.hook('onResponse', (ctx, { body }) => admission.onReply(ctx, body), serving),
      host.hook(
        'onChunk',
        (ctx, chunk) => {
          admission.onChunk(ctx, chunk)
          return chunk
        },
        serving,
      ),
    ]
    const flip = () => {
      for (const gate of gates) gate.update({ isOn: isLimiting(limits.settings) })
      for (const meter of meters) meter.update({ isOn: isCountingTokens(limits.settings) })
    }
    flip()
    replica.onChange((next) => {
      limits.setLimits(next ?? config)
      flip()
    })
    const headers = [...PRIORITY_HEADERS, config.tenants.tenantHeaderName]
    for (const route of limitsRoutes(host, headers, (tenant, model) => limits.show(tenant, model)))
      host.route(route)
    host.onCommand(ChangeLimits, async (change) => {
      const next = changedLimits(limits.settings, change)
      await host.publish(LimitsReplica, next)
      return next
    })
    return {
      start: () => limits.start(),
      // What PUT /limits has changed gives way to the file.
      reload: async (next) => {
        if (host.isControl) await host.publish(LimitsReplica, next)
      },
      stop: () => limits.stop(),
    }
  },
})
