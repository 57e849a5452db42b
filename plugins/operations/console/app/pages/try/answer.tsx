/** The text of an answer, and the events that it came in. */
import { useState } from 'preact/hooks'
import { count, milliseconds } from '../../data/format.ts'
import { linkTo } from '../../data/route.ts'
import { Failure, Panel } from '../../parts/basics.tsx'
import { type Exchange, MAX_EVENTS } from './exchange.ts'

/** Events that are drawn at once. */
const SHOWN_EVENTS = 200

export function Answer({ exchange }: { exchange: Exchange }) {
  const { text, reasoning, error, isRunning, usage, firstTokenMs, totalMs, status, requestId } = exchange
  const isIdle = status === null && error === null && !isRunning
  const betweenMs =
    usage !== null && usage.output > 1 && totalMs !== null && firstTokenMs !== null
      ? (totalMs - firstTokenMs) / (usage.output - 1)
      : null
  return (
    <Panel title="Answer">
      {isIdle && <p class="note">Send a prompt to see its answer here.</p>}
      {error !== null && <Failure error={new Error(error)} />}
      {reasoning !== '' && (
        <details>
          <summary>Reasoning</summary>
          <p class="answer">{reasoning}</p>
        </details>
      )}
      <p class="answer" aria-busy={isRunning}>
        {text}
        {isRunning && <span class="cursor" aria-hidden="true" />}
      </p>
      {!isIdle && (
        <dl class="line">
          <div>
            <dt>Status</dt>
            <dd>{isRunning && status === null ? 'waiting' : (status ?? '–')}</dd>
          </div>
          <div>
            <dt>First token</dt>
            <dd>{milliseconds(firstTokenMs)}</dd>
          </div>
          <div>
            <dt>Between tokens</dt>
            <dd>{milliseconds(betweenMs)}</dd>
          </div>
          <div>
            <dt>Total</dt>
            <dd>{milliseconds(totalMs)}</dd>
          </div>
          <div>
            <dt>Tokens</dt>
            <dd>
              {count(usage?.input)} in, {count(usage?.output)} out
            </dd>
          </div>
          {requestId !== null && (
            <div>
              <dt>Request</dt>
              <dd>
                <a href={linkTo('requests', { id: requestId })}>{requestId}</a>
              </dd>
            </div>
          )}
        </dl>
      )}
    </Panel>
  )
}

export function Events({ exchange, isStreamed }: { exchange: Exchange; isStreamed: boolean }) {
  const [page, setPage] = useState(0)
  const { events, eventCount } = exchange
  const pages = Math.max(1, Math.ceil(events.length / SHOWN_EVENTS))
  const current = Math.min(page, pages - 1)
  const first = current * SHOWN_EVENTS
  return (
    <Panel
      title={isStreamed ? `Events (${count(eventCount)})` : 'Body'}
      actions={
        pages > 1 && (
          <>
            <button type="button" disabled={current === 0} onClick={() => setPage(current - 1)}>
              Previous
            </button>
            <button type="button" disabled={current === pages - 1} onClick={() => setPage(current + 1)}>
              Next
            </button>
          </>
        )
      }
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region needs the keyboard */}
      <ol class="events" start={first + 1} tabIndex={0} aria-label="Events">
        {events.slice(first, first + SHOWN_EVENTS).map((data, index) => (
          <li key={index}>
            <code>{data}</code>
          </li>
        ))}
      </ol>
      {eventCount > MAX_EVENTS && <p class="note">The first {count(MAX_EVENTS)} are kept.</p>}
    </Panel>
  )
}
