/** Settings of mesh-valkey with the defaults filled in, for tests that use an engine without a gateway. */
import type { ValkeyConfig } from '../../plugins/mesh/valkey/config.ts'

export function engineConfig(url: string, timeoutMs: number): ValkeyConfig {
  return {
    url,
    timeoutMs,
    caFile: null,
    sentinels: [],
    name: 'mymaster',
    sentinelPassword: null,
    cluster: false,
  }
}
