/** The phases of one request as bars on one time axis. */
import { counted, milliseconds } from '../../data/format.ts'
import type { Tone } from '../../parts/basics.tsx'
import type { PastRequest } from './wire.ts'

interface Phase {
  readonly name: string
  readonly startMs: number
  readonly durationMs: number
  readonly tone: Tone | 'wait'
}

export function Timeline({ request }: { request: PastRequest }) {
  const phases = phasesOf(request)
  const endMs = Math.max(
    request.duration_ms,
    ...phases.map((phase) => phase.startMs + phase.durationMs),
    0.001,
  )
  return (
    <table class="timeline">
      <caption class="note">
        {milliseconds(request.duration_ms)} from the arrival of the request to its end
      </caption>
      <tbody>
        {phases.map(({ name, startMs, durationMs, tone }, index) => (
          <tr key={index}>
            <th scope="row">{name}</th>
            <td class="track">
              <i
                class={tone}
                style={{
                  marginLeft: `${(100 * startMs) / endMs}%`,
                  width: `max(3px, ${(100 * durationMs) / endMs}%)`,
                }}
              />
            </td>
            <td class="number">
              {durationMs === 0 ? `at ${milliseconds(startMs)}` : milliseconds(durationMs)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const STEP_NAMES = { queue: 'Queue of', module: 'Module', tool: 'Tool' } as const

function phasesOf({ attempts, steps, first_byte_ms, duration_ms }: PastRequest): Phase[] {
  const phases: Phase[] = [
    { name: 'Gateway', startMs: 0, durationMs: attempts[0]?.start_ms ?? duration_ms, tone: 'idle' },
  ]
  for (const { kind, name, start_ms, duration_ms: durationMs, calls, error } of steps) {
    const times = calls > 1 ? `, ${counted(calls, 'calls')}` : ''
    const text = `${STEP_NAMES[kind]} ${name}${times}${error === null ? '' : `: ${error}`}`
    const tone = error !== null ? 'bad' : kind === 'queue' ? 'wait' : 'good'
    phases.push({ name: text, startMs: start_ms, durationMs, tone })
  }
  for (const { number, worker_url, start_ms, first_byte_ms: wait, duration_ms: whole, outcome } of attempts) {
    const tone = outcome === 'success' ? 'good' : outcome === 'cancelled' ? 'warn' : 'bad'
    const name = `Attempt ${number}, ${worker_url}`
    phases.push({ name: `${name}: first byte`, startMs: start_ms, durationMs: wait ?? whole, tone: 'wait' })
    if (wait !== null)
      phases.push({ name: `${name}: ${outcome}`, startMs: start_ms + wait, durationMs: whole - wait, tone })
    else phases.push({ name: `${name}: ${outcome}`, startMs: start_ms + whole, durationMs: 0, tone })
  }
  if (first_byte_ms !== null)
    phases.push({ name: 'First byte to the client', startMs: first_byte_ms, durationMs: 0, tone: 'idle' })
  phases.push({ name: 'End', startMs: duration_ms, durationMs: 0, tone: 'idle' })
  return phases.toSorted((a, b) => a.startMs - b.startMs)
}
