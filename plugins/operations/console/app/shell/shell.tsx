/** The frame of all pages: sign-in, navigation, state of the connection. */
import { useEffect, useRef } from 'preact/hooks'
import { isConnected } from '../data/connection.ts'
import { linkTo, useRoute } from '../data/route.ts'
import { session, signOut, useSession } from '../data/session.ts'
import { useStore } from '../data/store.ts'
import { Empty } from '../parts/basics.tsx'
import { Logo } from './logo.tsx'
import { pages } from './pages.ts'
import { SignIn } from './sign-in.tsx'

export function Shell() {
  const info = useStore(session)
  const isReachable = useStore(isConnected)
  return (
    <>
      {!isReachable && (
        <p class="banner" role="alert">
          The gateway does not respond. The page continues when it is back.
        </p>
      )}
      {info === null && isReachable && <p class="loading">Loading …</p>}
      {info !== null && (info.is_required && info.principal === null ? <SignIn /> : <Frame />)}
    </>
  )
}

function Frame() {
  const { page } = useRoute()
  const { gateway, version, principal, features } = useSession()
  const current = pages.find(({ name }) => name === page)
  useEffect(() => {
    document.title = `${current?.title ?? 'Not found'} · ${gateway} · Weir`
  }, [current, gateway])
  // Narrow windows show some of the tabs only.
  const tabs = useRef<HTMLElement>(null)
  useEffect(() => {
    tabs.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [page])
  const missing = current?.needs.find((plugin) => !features.includes(plugin))
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={focusMain}>
        Skip to the content
      </button>
      <header class="top">
        <span class="brand">
          <Logo /> Weir
        </span>
        <span class="gateway" title="This gateway and its version">
          {gateway} <small>{version}</small>
        </span>
        {principal !== null && (
          <span class="who">
            <span>
              {principal.owner}
              {principal.role === 'user' && ' (read only)'}
            </span>
            <button type="button" onClick={signOut}>
              Sign out
            </button>
          </span>
        )}
      </header>
      <nav ref={tabs} class="pages" aria-label="Pages">
        {pages.map(({ name, title }) => (
          <a key={name} href={linkTo(name)} aria-current={name === page ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        {current === undefined ? (
          <Empty title="No such page">Choose one of the pages of the navigation.</Empty>
        ) : missing === undefined ? (
          <current.Page />
        ) : (
          <Empty title={`${current.title} needs the plugin ${missing}`}>
            Add{' '}
            <code>
              {missing}: {'{}'}
            </code>{' '}
            to the section <code>plugins</code> of the configuration, and restart the gateway.
          </Empty>
        )}
      </main>
    </div>
  )
}

/** A button, because the hash of the URL is the page. */
function focusMain(): void {
  document.getElementById('main')?.focus()
}
