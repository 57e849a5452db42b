/** What the signals of the process ask of the gateway that runs in it. */
import type { GatewayControls } from '../../kernel/serve.ts'

/**
 * SIGHUP reloads. SIGTERM and SIGQUIT drain; SIGINT too, without waiting for balancers to notice; a second one cuts. The others would
 * end the process or open its debugger, and do nothing instead.
 *
 * @returns stops watching
 */
export function watchSignals({ settleMs, log, demandShutdown, reload }: GatewayControls): () => void {
  const drain = () => demandShutdown(settleMs)
  const interrupt = () => demandShutdown(0)
  const ignore = (name: string) =>
    log.info({ signal: name }, 'this signal has no meaning here and is ignored')
  const hangUp = (name: string) => {
    log.info({ signal: name }, 'the configuration is read again')
    reload()
  }
  const handlers: readonly (readonly [NodeJS.Signals, (name: string) => void])[] = [
    ['SIGTERM', drain],
    ['SIGQUIT', drain],
    ['SIGINT', interrupt],
    ['SIGHUP', hangUp],
    ['SIGUSR1', ignore],
    ['SIGUSR2', ignore],
  ]
  for (const [name, handler] of handlers) process.on(name, handler)
  return () => {
    for (const [name, handler] of handlers) process.off(name, handler)
  }
}
