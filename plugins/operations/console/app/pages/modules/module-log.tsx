/** The latest log lines of a module. */

import { dateTime } from '../../data/format.ts'
import { useMayWrite } from '../../data/session.ts'
import { useData } from '../../data/use-data.ts'
import { Badge, Empty, Loaded, type Tone } from '../../parts/basics.tsx'
import { type Column, PagedTable } from '../../parts/table.tsx'
import type { LogLine, ModuleLog } from './wire.ts'

const REFRESH_MS = 2_000
const TONES: Readonly<Record<string, Tone>> = { warn: 'warn', error: 'bad' }

/** @param uuid version of the module */
export function ModuleLogLines({ uuid, title }: { uuid: string; title: string }) {
  const mayRead = useMayWrite()
  const log = useData<ModuleLog>(mayRead ? `/wasm/${uuid}/logs` : null, REFRESH_MS)
  if (!mayRead) return <p class="note">The log lines are shown to operators with role admin.</p>
  return (
    <>
      <h3>{title}</h3>
      <Loaded data={log}>
        {({ lines }) =>
          lines.length === 0 ? (
            <Empty title="No lines">The module has logged nothing on this gateway.</Empty>
          ) : (
            <PagedTable
              label={title}
              what="lines"
              pageSize={10}
              columns={columns}
              rows={lines.map((line, index) => ({ ...line, key: `${lines.length - index}` }))}
              keyOf={({ key }) => key}
            />
          )
        }
      </Loaded>
    </>
  )
}

const columns: readonly Column<LogLine>[] = [
  { name: 'Time', show: ({ time }) => dateTime(time) },
  { name: 'Level', show: ({ level }) => <Badge tone={TONES[level] ?? 'idle'}>{level}</Badge> },
  { name: 'Text', show: ({ text }) => <code>{text}</code> },
  {
    name: 'Request',
    show: ({ request_id }) => <a href={`#/requests?id=${encodeURIComponent(request_id)}`}>{request_id}</a>,
  },
  { name: 'Thread', isNumber: true, show: ({ thread }) => thread },
]
