/** The store over LevelDB as it is built, without a gateway around it. */

export interface BuiltStore {
  open(): Promise<void>
  write(changes: readonly object[], options?: object): Promise<unknown>
  close(): Promise<void>
}

/** Open on that directory. */
export async function openBuiltStore(dir: string): Promise<BuiltStore> {
  const url = new URL('../../dist/plugins/state/storage/level-store.js', import.meta.url).href
  const { LevelStore } = (await import(url)) as { LevelStore: new (dir: string) => BuiltStore }
  const store = new LevelStore(dir)
  await store.open()
  return store
}
