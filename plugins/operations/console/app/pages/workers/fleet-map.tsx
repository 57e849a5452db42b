/** The fleet by model: one tile per model with a bar of its workers by state. */
import { setParams } from '../../data/route.ts'
import { STATUSES } from './states.tsx'
import type { ModelWorkers } from './wire.ts'

/** Tiles that are shown before the list is cut. */
const MAX_TILES = 60

export function FleetMap({ models, selected }: { models: readonly ModelWorkers[]; selected: string }) {
  return (
    <ul class="fleet" aria-label="Workers by model">
      {models.slice(0, MAX_TILES).map(({ model, by_status }) => {
        const total = Object.values(by_status).reduce((sum, count) => sum + count, 0)
        const ready = by_status.ready ?? 0
        const isSelected = model !== null && model === selected
        return (
          <li key={model ?? ''}>
            <button
              type="button"
              class={ready === 0 ? 'tile bad' : 'tile'}
              aria-pressed={isSelected}
              disabled={model === null}
              onClick={() => setParams({ model: isSelected ? '' : (model ?? '') })}
            >
              <span class="name">{model ?? 'any model'}</span>
              <span class="cells" aria-hidden="true">
                {STATUSES.filter(([status]) => (by_status[status] ?? 0) > 0).map(([status, , tone]) => (
                  <i key={status} class={tone} style={{ flexGrow: by_status[status] }} />
                ))}
              </span>
              <small>
                {ready} of {total} ready
              </small>
            </button>
          </li>
        )
      })}
      {models.length > MAX_TILES && <li class="note">and {models.length - MAX_TILES} more models</li>}
    </ul>
  )
}
