/** The page and its filters in the hash part of the URL, such as `#/workers?status=ready`. */
import { Store, useStore } from './store.ts'

export interface Route {
  readonly page: string
  readonly params: Readonly<Record<string, string>>
}

const route = new Store(read())
window.addEventListener('hashchange', () => route.set(read()))

function read(): Route {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?')
  return { page: path || 'overview', params: Object.fromEntries(new URLSearchParams(query)) }
}

export function useRoute(): Route {
  return useStore(route)
}

export function linkTo(page: string, params: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== '')).toString()
  return `#/${page}${query === '' ? '' : `?${query}`}`
}

/** Changes filters of the current page; empty values remove them. */
export function setParams(changes: Readonly<Record<string, string>>): void {
  const { page, params } = route.value
  history.replaceState(null, '', linkTo(page, { ...params, ...changes }))
  route.set(read())
}
