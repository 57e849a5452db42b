/** Keys of tenants and operators: create, rotate, revoke. */
import { useState } from 'preact/hooks'
import { call, withQuery } from '../../data/api.ts'
import { counted, dateTime, UNKNOWN } from '../../data/format.ts'
import { useMayWrite } from '../../data/session.ts'
import { useData } from '../../data/use-data.ts'
import { Badge, Empty, Loaded, PageHead } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { type Column, Pager, Table } from '../../parts/table.tsx'
import { bodyOf, createKey, NewKeyDialog, ShownKey } from './new-key.tsx'
import type { Key, KeyList } from './wire.ts'

const PAGE_SIZE = 50

export function Keys() {
  const mayWrite = useMayWrite()
  const [page, setPage] = useState({ before: [] as readonly string[], after: '' })
  const [isOpen, setOpen] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const list = useData<KeyList>(withQuery('/keys', { limit: PAGE_SIZE, after: page.after }))
  const revoke = async ({ id }: Key) => {
    await call('DELETE', `/keys/${encodeURIComponent(id ?? '')}`)
    await list.reload()
  }
  const rotate = async (key: Key) => {
    setSecret(await createKey(bodyOf(key)))
    await revoke(key)
  }
  const [key, owner, ...others] = readColumns
  // Beside key and owner, where narrow windows show them.
  const columns = mayWrite ? [key, owner, actionsColumn(rotate, revoke), ...others] : readColumns
  return (
    <>
      <PageHead title="Keys">
        {mayWrite && (
          <button type="button" class="primary" onClick={() => setOpen(true)}>
            Create key
          </button>
        )}
      </PageHead>
      {isOpen && (
        <NewKeyDialog
          close={() => setOpen(false)}
          onCreated={(key) => {
            setSecret(key)
            list.reload()
          }}
        />
      )}
      {secret !== null && <ShownKey secret={secret} close={() => setSecret(null)} />}
      <Loaded data={list}>
        {({ keys, next }) =>
          keys.length === 0 ? (
            <Empty title="No keys">Without keys, everyone may call the gateway.</Empty>
          ) : (
            <>
              <Table
                label="Keys"
                columns={columns}
                rows={keys}
                keyOf={({ id, setting }) => id ?? setting ?? ''}
              />
              <Pager
                before={page.before}
                after={page.after}
                next={next}
                note={counted(keys.length, 'keys')}
                onChange={(before, after) => setPage({ before, after })}
              />
            </>
          )
        }
      </Loaded>
    </>
  )
}

const readColumns: readonly Column<Key>[] = [
  { name: 'Key', show: ({ id, hint, setting }) => (hint === undefined ? (id ?? setting) : `${hint}…`) },
  {
    name: 'Owner',
    show: ({ tenant, principal, role }) => (
      <>
        {tenant ?? principal}
        <small class="second">
          {tenant === undefined ? 'operator' : principal === undefined ? 'tenant' : 'tenant and operator'}
          {role !== undefined && `, role ${role}`}
        </small>
      </>
    ),
  },
  { name: 'Description', show: ({ name }) => name ?? UNKNOWN },
  {
    name: 'State',
    show: ({ status }) => <Badge tone={status === 'active' ? 'good' : 'idle'}>{status}</Badge>,
  },
  { name: 'Valid until', show: ({ expiresAt }) => (expiresAt === null ? 'no end' : dateTime(expiresAt)) },
  { name: 'Models', show: ({ models }) => models?.join(', ') ?? 'all' },
  { name: 'Routes', show: ({ routes }) => routes?.join(', ') ?? 'all' },
  {
    name: 'Created',
    show: ({ source, createdAt }) => (source === 'file' ? 'in the configuration' : dateTime(createdAt)),
  },
]

type Act = (key: Key) => Promise<void>

function actionsColumn(rotate: Act, revoke: Act): Column<Key> {
  return {
    name: 'Actions',
    show: (key) =>
      key.source === 'file' ? (
        UNKNOWN
      ) : (
        <div class="actions tight">
          <Confirm label="Rotate" title="Rotate the key?" action={() => rotate(key)}>
            A new key with the same owner and scope is shown once, and {key.hint}… is revoked at once.
          </Confirm>
          <Confirm label="Revoke" title="Revoke the key?" isDanger action={() => revoke(key)}>
            No thread accepts {key.hint}… any more; running requests finish.
          </Confirm>
        </div>
      ),
  }
}
