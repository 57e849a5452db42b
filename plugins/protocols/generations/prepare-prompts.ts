/** Work on the prompt before a worker is picked: each adapter that has any does it once, for all attempts. */
import type { EngineAdapter, GenerationRequest, PreparedPrompt, RelayContext } from '#kernel'

export interface PreparedPrompts {
  readonly byAdapter: ReadonlyMap<EngineAdapter, PreparedPrompt>
  /** For policies: of the first adapter that has tokenised; null when none has. */
  readonly tokenIds: Uint32Array | null
}

/** @throws GatewayError of an adapter */
export async function preparePrompts(
  adapters: readonly EngineAdapter[],
  source: { request: GenerationRequest; model: string; ctx: RelayContext },
): Promise<PreparedPrompts> {
  const byAdapter = new Map<EngineAdapter, PreparedPrompt>()
  let tokenIds: Uint32Array | null = null
  for (const adapter of adapters) {
    const prepared = await adapter.prepare?.(source.request, source.model, source.ctx)
    if (prepared === undefined) continue
    byAdapter.set(adapter, prepared)
    tokenIds ??= prepared.tokenIds
  }
  return { byAdapter, tokenIds }
}
